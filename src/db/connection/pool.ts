import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { limits } from "#domain/limits.ts";
import { assert } from "#lib/assert.ts";
import { systemClock, type Clock } from "#lib/clock.ts";
import { noteFullDisk } from "#lib/full-disks.ts";
import { SERVER_LIFE, wasCommitted, type BegunTransaction } from "./settle-commit.ts";
import { typeParser } from "./type-parser.ts";

/**
 * The address of a server: a URL, or the embedded one's address (`host` is a socket's folder). With `direct`, the URL leads to a pooler that may
 * give each transaction another connection of the server, and `direct` leads to the server, for what needs a session.
 */
export type DatabaseSource =
  | { connectionString: string; direct?: string | undefined }
  | { host: string; port: number; user: string; password: string; database: string };

/** A statement; with a `name` it is prepared once a connection. `timeoutMs` replaces the pool's wait for the answer. */
export type Statement = {
  name?: string | undefined;
  text: string;
  values?: readonly unknown[] | undefined;
  timeoutMs?: number | undefined;
};

export type Database = {
  /** The rows. An error of the server is a `pg.DatabaseError` with its SQLSTATE in `code`. */
  query<T = Record<string, unknown>>(
    statement: string | Statement,
    values?: readonly unknown[],
  ): Promise<T[]>;
  /**
   * Executes `fn` in a transaction on one connection. Inside a transaction, uses a savepoint, so that this part can fail by
   * itself. `retry`: up to three attempts after errors that can be retried (40001, 40P01); only for a repeatable `fn`. `settle`:
   * if the connection dies during COMMIT, a new connection asks the server for the outcome. `lockTimeoutMs` replaces the pool's,
   * in this transaction.
   */
  transaction<T>(fn: (tx: Database) => Promise<T>, options?: TransactionOptions): Promise<T>;
  /**
   * One statement as a separate transaction, with `settle`. BEGIN is sent together with the statement, which saves a round trip.
   * `beforeCommit` is called with its rows.
   */
  transact<T>(
    statement: Statement,
    options: LockOptions,
    beforeCommit: (rows: readonly T[]) => Promise<void>,
  ): Promise<readonly T[]>;
  /**
   * Statements as one transaction, all sent together with its BEGIN and COMMIT: one round trip. Each statement sees what was
   * committed before it began, so one may lock what the next one counts. Returns the rows of each.
   */
  transactAll(
    statements: readonly Statement[],
    options?: LockOptions,
  ): Promise<readonly (readonly unknown[])[]>;
  end(): Promise<void>;
  /** The clock for the waits of its callers. */
  clock: Clock;
  pool: pg.Pool;
};

export type TransactionOptions = {
  retry?: boolean | undefined;
  settle?: boolean | undefined;
  lockTimeoutMs?: number | undefined;
};
type LockOptions = Pick<TransactionOptions, "lockTimeoutMs">;

export type PoolOptions = {
  /** The maximum number of connections. */
  max?: number | undefined;
  /** Shown in `pg_stat_activity` and the server's log. */
  applicationName: string;
  /** The longest wait for a free connection, new or from the pool. docs/decisions/0026. */
  connectTimeoutMs?: number | undefined;
  /** The server cancels a statement after this time. */
  statementTimeoutMs?: number | undefined;
  /** The client stops waiting for an answer after this time: by itself, `pg` hangs forever on a half-open connection. */
  queryTimeoutMs?: number | undefined;
  lockTimeoutMs?: number | undefined;
  idleInTransactionTimeoutMs?: number | undefined;
  /** Called for idle connections that were lost; the pool replaces them. */
  log?: ((message: string) => void) | undefined;
};

/** docs/decisions/0026: no request hangs longer than 10 s, the wait for a connection included. */
const defaults = {
  max: limits.databaseConnectionsMax,
  connectTimeoutMs: 2_000,
  statementTimeoutMs: 7_000,
  queryTimeoutMs: 7_500,
  lockTimeoutMs: 5_000,
  idleInTransactionTimeoutMs: 10_000,
  keepAliveDelayMs: 10_000,
};
const triesMax = 3;

/** The pool of a process. Opens no connection yet. */
export function openPool(source: DatabaseSource, options: PoolOptions): Database {
  const pool = new pg.Pool({ ...clientConfig(source, options), max: options.max ?? defaults.max });
  const log = options.log ?? (() => {});
  // Without these listeners a broken connection, idle or in use, ends the process. docs/decisions/0026.
  pool.on("error", (error) => log(`A database connection was lost: ${error.message}`));
  pool.on("connect", (client) => {
    client.on("error", () => {});
    if (isPooled(source)) sharing.add(client);
  });
  let ended: Promise<void> | null = null;
  return {
    query: (statement, values) => withClient(pool, (client) => run(client, statement, values)),
    transaction: (fn, { retry = false, ...options } = {}) =>
      repeat(retry, () => withClient(pool, (client) => inTransaction(pool, client, fn, options))),
    transact: (statement, options, beforeCommit) =>
      withClient(pool, (client) => transact(pool, client, statement, options, beforeCommit)),
    transactAll: (statements, options) =>
      withClient(pool, (client) => transactAll(pool, client, statements, options)),
    end: () => (ended ??= pool.end()),
    clock: systemClock,
    pool,
  };
}

/**
 * One connection that is opened immediately, for resources with the same lifetime (a session advisory lock); past a pooler. Never
 * reconnects: when it breaks, `onLost` is called once and every later query fails.
 */
export async function openSession(
  source: DatabaseSource,
  options: Omit<PoolOptions, "max" | "log"> & { onLost: (error: Error) => void },
): Promise<Database> {
  const db = openPool(directSource(source), { ...options, max: 1 });
  db.pool.options.idleTimeoutMillis = 0;
  let over = false;
  const lost = (error: Error): void => {
    if (over) return;
    over = true;
    void db.end();
    options.onLost(error);
  };
  try {
    await db.query("select 1");
  } catch (error) {
    await db.end();
    throw error;
  }
  db.pool.on("error", lost);
  db.pool.on("release", (error: Error | undefined) => {
    if (error instanceof Error) lost(error);
  });
  const end = (): Promise<void> => {
    over = true;
    return db.end();
  };
  return { ...db, end };
}

/** The URL of a source, for a program that reads DATABASE_URL. It contains the password. */
export function urlOf(source: DatabaseSource): string {
  if ("connectionString" in source) return source.connectionString;
  const [user, password, host] = [source.user, source.password, source.host].map(encodeURIComponent);
  return `postgresql://${user}:${password}@${host}:${source.port}/${encodeURIComponent(source.database)}`;
}

/** Whether a pooler lies before the server. */
export const isPooled = (source: DatabaseSource): boolean =>
  "direct" in source && source.direct !== undefined;

/** The address for connections that stay with one session of the server. */
export const directSource = (source: DatabaseSource): DatabaseSource =>
  "direct" in source && source.direct !== undefined ? { connectionString: source.direct } : source;

function clientConfig(source: DatabaseSource, options: PoolOptions): pg.PoolConfig {
  return {
    ...("connectionString" in source ? { connectionString: source.connectionString } : source),
    application_name: options.applicationName,
    // Statements that are sent without awaiting earlier ones are sent at once: see transact.
    pipeline: true,
    keepAlive: true,
    keepAliveInitialDelayMillis: defaults.keepAliveDelayMs,
    connectionTimeoutMillis: options.connectTimeoutMs ?? defaults.connectTimeoutMs,
    query_timeout: options.queryTimeoutMs ?? defaults.queryTimeoutMs,
    types: { getTypeParser: typeParser },
    // A pooler refuses or drops them, so there the role has them: docs/database.md#behind-pgbouncer.
    ...(isPooled(source) ? {} : timeoutsOf(options)),
  };
}

const timeoutsOf = (options: Partial<PoolOptions>) => ({
  statement_timeout: options.statementTimeoutMs ?? defaults.statementTimeoutMs,
  lock_timeout: options.lockTimeoutMs ?? defaults.lockTimeoutMs,
  idle_in_transaction_session_timeout:
    options.idleInTransactionTimeoutMs ?? defaults.idleInTransactionTimeoutMs,
});

/** The time limits that the server keeps, in milliseconds, by the names of its settings. */
export const SESSION_TIMEOUTS_MS: Readonly<Record<string, number>> = timeoutsOf({});

/** Connections through a pooler: each transaction may be on another connection of the server, and on another server. */
const sharing = new WeakSet<pg.PoolClient>();
/** Connections in an unknown state: nothing more is sent on them, and they never go back to the pool. */
const broken = new WeakSet<pg.PoolClient>();

async function withClient<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    return await work(client);
  } finally {
    // With an error it is destroyed.
    client.release(broken.has(client) ? new Error("the connection broke while it was in use") : undefined);
  }
}

async function run<T>(
  client: pg.PoolClient,
  given: string | Statement,
  values?: readonly unknown[],
): Promise<T[]> {
  const statement: Statement = typeof given === "string" ? { text: given, values } : given;
  const all = statement.values ?? values;
  // Several statements in one string (a migration) have several results. Returns the rows of the last one.
  const result: pg.QueryResult | pg.QueryResult[] = await send(client, {
    text: statement.text,
    ...(statement.name === undefined ? {} : { name: statement.name }),
    ...(all === undefined ? {} : { values: [...all] }),
    ...(statement.timeoutMs === undefined ? {} : { query_timeout: statement.timeoutMs }),
  });
  return ((Array.isArray(result) ? result.at(-1)?.rows : result.rows) ?? []) as T[];
}

async function send(client: pg.PoolClient, config: pg.QueryConfig): Promise<pg.QueryResult> {
  if (broken.has(client)) throw new Error("The database connection broke earlier in this transaction");
  try {
    return await client.query(config);
  } catch (error) {
    if (isDiskFull(error)) noteFullDisk("database");
    if (!leavesConnectionUsable(error)) broken.add(client);
    throw error;
  }
}

const isDiskFull = (error: unknown): boolean => error instanceof pg.DatabaseError && error.code === "53100";

/** An ordinary error of a statement: not of the connection, a timeout, or a server shutdown. */
function leavesConnectionUsable(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError)) return false;
  return !/^(08|57P|XX)/.test(error.code ?? "XX") && error.code !== "25P03";
}

async function inTransaction<T>(
  pool: pg.Pool,
  client: pg.PoolClient,
  fn: (tx: Database) => Promise<T>,
  options: Omit<TransactionOptions, "retry">,
): Promise<T> {
  const { tx, close } = transactionOn(pool, client);
  try {
    const begun = await begin(client, options);
    const result = await fn(tx);
    close();
    await commit(pool, client, begun);
    return result;
  } catch (error) {
    close();
    await rollBack(client);
    throw error;
  }
}

async function transact<T>(
  pool: pg.Pool,
  client: pg.PoolClient,
  statement: Statement,
  { lockTimeoutMs }: LockOptions,
  beforeCommit: (rows: readonly T[]) => Promise<void>,
): Promise<readonly T[]> {
  try {
    const [began, done] = await Promise.allSettled([
      begin(client, { settle: true, lockTimeoutMs }),
      run<T>(client, statement),
    ]);
    if (done.status === "rejected") throw done.reason;
    await beforeCommit(done.value);
    // The BEGIN was cancelled (by a timeout of a server that stood still), so the statement was a transaction by itself.
    if (began.status === "fulfilled") await commit(pool, client, began.value);
    return done.value;
  } catch (error) {
    await rollBack(client);
    throw error;
  }
}

async function transactAll(
  pool: pg.Pool,
  client: pg.PoolClient,
  statements: readonly Statement[],
  options: LockOptions = {},
): Promise<readonly (readonly unknown[])[]> {
  const begun = begin(client, options);
  const done = statements.map(async (statement) => await run(client, statement));
  const ended = commit(pool, client, null);
  // After a failed statement the server refuses all others and treats COMMIT as a rollback, so the first error is the reason.
  const outcomes = await Promise.allSettled([begun, ...done, ended]);
  for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  return await Promise.all(done);
}

async function rollBack(client: pg.PoolClient): Promise<void> {
  if (!broken.has(client)) await send(client, { text: "rollback" }).catch(() => broken.add(client));
}

/** For each connection: the incarnation of its server. */
const serverLives = new WeakMap<pg.PoolClient, string>();

/** Begins a transaction. With `settle`, returns what is needed to settle its COMMIT, in the same round trip. */
async function begin(
  client: pg.PoolClient,
  { settle = false, lockTimeoutMs }: TransactionOptions,
): Promise<BegunTransaction | null> {
  const start =
    lockTimeoutMs === undefined ? "begin" : `begin; set local lock_timeout = ${Math.ceil(lockTimeoutMs)}`;
  if (!settle) {
    await send(client, { text: start });
    return null;
  }
  const known = serverLives.get(client);
  const asked = known === undefined ? `, ${SERVER_LIFE} as life` : "";
  const [row] = await run<{ xid: string; life?: string }>(
    client,
    `${start}; select pg_current_xact_id()::text as xid${asked}`,
  );
  const serverLife = row?.life ?? known;
  assert(row !== undefined && serverLife !== undefined, "a transaction has an id, and a server");
  if (!sharing.has(client)) serverLives.set(client, serverLife);
  return { xid: row.xid, serverLife };
}

/** Commits. If the connection breaks during this, the outcome is unknown, and another connection asks the server. */
async function commit(pool: pg.Pool, client: pg.PoolClient, begun: BegunTransaction | null): Promise<void> {
  try {
    const { command } = await send(client, { text: "commit" });
    // The server answers COMMIT of a failed transaction with ROLLBACK, and no error.
    assert(
      command === "COMMIT",
      "the transaction was rolled back: a statement in it had failed and its error was not passed on",
    );
  } catch (error) {
    if (begun === null || !broken.has(client)) throw error;
    const ask = async (text: string, values: readonly unknown[]) =>
      await withClient(
        pool,
        async (other) => (await run<Record<string, unknown>>(other, text, values))[0],
      ).catch(() => undefined);
    if (!(await wasCommitted(ask, begun))) throw error;
  }
}

function transactionOn(pool: pg.Pool, client: pg.PoolClient): { tx: Database; close: () => void } {
  let open = true;
  let savepoints = 0;
  const tx: Database = {
    query: async (statement, values) => {
      assert(open, "the transaction is over: a query was not awaited in it");
      return await run(client, statement, values);
    },
    transaction: async (fn) => {
      savepoints += 1;
      const name = `savepoint_${savepoints}`;
      await tx.query(`savepoint ${name}`);
      try {
        const result = await fn(tx);
        await tx.query(`release savepoint ${name}`);
        return result;
      } catch (error) {
        if (!broken.has(client)) await tx.query(`rollback to savepoint ${name}`);
        throw error;
      }
    },
    transact: () => Promise.reject(new Error("Use transaction() for a nested transaction")),
    transactAll: () => Promise.reject(new Error("Use transaction() for a nested transaction")),
    end: () => Promise.reject(new Error("A transaction does not end its pool")),
    clock: systemClock,
    pool,
  };
  return { tx, close: () => void (open = false) };
}

/** docs/decisions/0026: serialization failures (40001) and deadlocks (40P01) are retried. */
async function repeat<T>(retry: boolean, attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      const mayWork = error instanceof pg.DatabaseError && (error.code === "40001" || error.code === "40P01");
      if (!retry || !mayWork || tries === triesMax) throw error;
      await sleep(Math.random() * 20 * tries);
    }
  }
}
