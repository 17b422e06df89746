import { Client, DatabaseError, escapeIdentifier } from "pg";

/** The connection parameters except the database. */
export type Address = { host: string; port: number; user: string; password: string };

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
          "do not belong together. Restore both from the same backup of the data folder.",
      );
    }
    // Full, but up.
    return error instanceof DatabaseError && error.code === "53300";
  }
}

/** Created at every start if missing, not only after initdb, because a crash may have occurred in between. */
export async function ensureDatabase(address: Address, database: string): Promise<void> {
  await withClient(address, "postgres", async (client) => {
    const found = await client.query("select 1 from pg_database where datname = $1", [database]);
    if (found.rowCount === 0) await client.query(`create database ${escapeIdentifier(database)}`);
  });
}

/** Whether the role of `address` exists and can sign in to the database. */
export async function takesPassword(address: Address, database: string): Promise<boolean> {
  try {
    await withClient(address, database, async () => {});
    return true;
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error;
    // All connections are in use: the start fails anyway, and the role's password must not be changed.
    if (error.code === "53300") return true;
    // Another password; no right to connect; no right to sign in at all.
    if (error.code === "28P01" || error.code === "42501" || error.code === "28000") return false;
    throw error;
  }
}

/**
 * Creates the role, or resets it to what it should be: it may connect to one database and nothing else. A single transaction, so
 * that a crash leaves all of it or nothing.
 */
export async function makeServiceRole(
  owner: Address,
  role: string,
  password: string,
  database: string,
): Promise<void> {
  await withClient(owner, "postgres", async (client) => {
    await client.query("begin");
    // By a setting of the transaction: the text of a statement can get into the server's log.
    await client.query(
      `select set_config('latchkey.role', $1, true), set_config('latchkey.password', $2, true),
         set_config('latchkey.database', $3, true)`,
      [role, password, database],
    );
    await client.query(MAKE_ROLE);
    await client.query("commit");
  });
}

const MAKE_ROLE = `do $$
declare
  role text := current_setting('latchkey.role');
  each text;
begin
  if not exists (select from pg_roles where rolname = role) then execute format('create role %I', role); end if;
  execute format('alter role %I login nosuperuser nocreatedb nocreaterole noreplication nobypassrls password %L',
    role, current_setting('latchkey.password'));
  foreach each in array array[current_setting('latchkey.database'), 'postgres', 'template1'] loop
    execute format('revoke all on database %I from public', each);
  end loop;
  execute format('grant connect on database %I to %I', current_setting('latchkey.database'), role);
end $$`;

async function withClient<T>(
  address: Address,
  database: string,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = await connect(address, database);
  try {
    return await work(client);
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
