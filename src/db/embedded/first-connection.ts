import { Client, DatabaseError, escapeIdentifier } from "pg";

/** What opens a connection to the server, the database aside. */
type Address = { host: string; port: number; user: string; password: string };

const connectTimeoutMs = 5_000;

/** Whether the server takes connections. False while it starts or stops; a wrong password is an error. */
export async function answers(address: Address): Promise<boolean> {
  try {
    const client = await connect(address, "postgres");
    await client.end();
    return true;
  } catch (error) {
    if (error instanceof DatabaseError && error.code === "28P01") {
      throw new Error(
        "The embedded PostgreSQL does not accept the password in postgres-password: the file and the database " +
          "are not of the same age. Restore both from one backup of the data folder.",
      );
    }
    // Full, but up.
    return error instanceof DatabaseError && error.code === "53300";
  }
}

/** Made at every start when missing, not only after initdb: a crash may have come between the two. */
export async function ensureDatabase(address: Address, database: string): Promise<void> {
  const client = await connect(address, "postgres");
  try {
    const found = await client.query("select 1 from pg_database where datname = $1", [database]);
    if (found.rowCount === 0) await client.query(`create database ${escapeIdentifier(database)}`);
  } finally {
    await client.end();
  }
}

async function connect({ host, port, user, password }: Address, database: string): Promise<Client> {
  const client = new Client({
    host,
    port,
    user,
    password,
    database,
    connectionTimeoutMillis: connectTimeoutMs,
  });
  client.on("error", () => {}); // a connection lost after the answer is not our business here
  try {
    await client.connect();
  } catch (error) {
    await client.end().catch(() => {});
    throw error;
  }
  return client;
}
