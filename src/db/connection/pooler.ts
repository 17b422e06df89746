import pg from "pg";
import { areSameDatabase } from "./same-database.ts";
import { SESSION_TIMEOUTS_MS, type Database } from "./pool.ts";

/**
 * What stands between a connection and the server. `session`: nothing, or a pooler that gives a client one connection for as long as it stays.
 * `transaction`: a pooler that gives each transaction another one. `forgetful`: such a one that loses prepared statements.
 */
type Between = "session" | "transaction" | "forgetful";

/** The name of a statement that is prepared on every connection of the server that meets it, so its text must stay. */
const WHICH = { name: "latchkey_which_backend", text: "select pg_backend_pid() as pid" };
/** No such prepared statement; there is one already, of another client. */
const FORGOTTEN = new Set(["26000", "42P05"]);

const REMEDY = "docs/database.md#behind-pgbouncer says how";

/** What prevents the service from running on this database, each with its remedy. `direct`: of DATABASE_DIRECT_URL; null: it is unset. */
export async function listPoolerProblems(db: Database, direct: Database | null): Promise<readonly string[]> {
  const between = await findBetween(db);
  if (direct === null) return between === "session" ? [] : [NEEDS_DIRECT];
  const problems: string[] = [];
  if (between === "forgetful")
    problems.push(
      "The pooler of DATABASE_URL loses prepared statements. Use PgBouncer 1.21 or newer, and set max_prepared_statements to 200 or more.",
    );
  if (!(await areSameDatabase(direct, db)))
    problems.push(
      "DATABASE_DIRECT_URL and DATABASE_URL lead to different databases. Let both lead to the same server and database.",
    );
  if (await isOnPooler(direct))
    problems.push(
      "DATABASE_DIRECT_URL leads to a pooler in transaction mode. Give it the address of the server itself.",
    );
  return [...problems, ...(await listSessionProblems(db, direct))];
}

/** Whether a connection leads to a pooler that gives each transaction another connection of the server. */
export const isOnPooler = async (db: Database): Promise<boolean> => (await findBetween(db)) !== "session";

const NEEDS_DIRECT =
  "DATABASE_URL leads to a pooler that gives each transaction another connection of the server (as PgBouncer with pool_mode=transaction). A " +
  `worker's lock and notifications need one of their own: set DATABASE_DIRECT_URL to the address of the server itself; ${REMEDY}.`;

/** What a pooler says that was not told to ignore what each connection of Latchkey asks for. */
export const isRefusedByPooler = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && /unsupported startup parameter/.test(error.message);

/** For an error of `isRefusedByPooler`. */
export const REFUSED_BY_POOLER = `it leads to a pooler: set DATABASE_DIRECT_URL to the address of the server itself; ${REMEDY}`;

async function findBetween(db: Database): Promise<Between> {
  const one = await db.pool.connect();
  let other: pg.PoolClient | undefined;
  let isWhole = false;
  try {
    const first = await backendOf(one);
    // A pooler gives its clients numbers of its own.
    if (first === announcedBackend(one)) return whole("session");
    other = await db.pool.connect();
    await other.query("begin");
    const held = await backendOf(other);
    const second = await backendOf(one);
    await other.query("rollback");
    return whole(held === first || second !== first ? "transaction" : "session");
  } catch (error) {
    if (error instanceof pg.DatabaseError && FORGOTTEN.has(error.code ?? "")) return "forgetful";
    throw error;
  } finally {
    for (const client of [one, other]) client?.release(!isWhole);
  }

  function whole(between: Between): Between {
    isWhole = true;
    return between;
  }
}

const backendOf = async (client: pg.PoolClient): Promise<number> =>
  (await client.query<{ pid: number }>(WHICH)).rows[0]?.pid ?? 0;

/** As the start of the connection has named it. */
const announcedBackend = (client: pg.PoolClient): unknown =>
  (client as pg.PoolClient & { readonly processID?: unknown }).processID;

/** docs/decisions/0026: every wait has a limit, which a connection through a pooler has from its role. */
async function listSessionProblems(db: Database, direct: Database): Promise<readonly string[]> {
  const ask = `select current_user as role, quote_ident(current_user) as "quotedRole", quote_ident(current_database()) as database,
    array(select name from pg_settings where name = any($1) and setting = '0' order by name) as unlimited`;
  const values = [Object.keys(SESSION_TIMEOUTS_MS)];
  const [pooled] = await db.query<Session>(ask, values);
  const [own] = await direct.query<Session>(ask, values);
  if (pooled === undefined || own === undefined) return [];
  const problems: string[] = [];
  if (pooled.role !== own.role)
    problems.push(
      `DATABASE_DIRECT_URL has the role ${own.role} and DATABASE_URL the role ${pooled.role}. Give both the same.`,
    );
  if (pooled.unlimited.length > 0) {
    const statements = pooled.unlimited.map(
      (name) =>
        `alter role ${pooled.quotedRole} in database ${pooled.database} set ${name} = '${SESSION_TIMEOUTS_MS[name]}ms';`,
    );
    problems.push(
      `Connections through the pooler of DATABASE_URL wait without a limit (${pooled.unlimited.join(", ")}). Run, as that role or as a superuser: ` +
        `${statements.join(" ")} Then let the pooler reconnect (in PgBouncer's console: RECONNECT).`,
    );
  }
  return problems;
}

interface Session {
  readonly role: string;
  readonly quotedRole: string;
  readonly database: string;
  /** Time limits that are off. */
  readonly unlimited: readonly string[];
}
