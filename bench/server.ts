/** The PostgreSQL of a bench: a cluster of its own on the disk, so that its CPU time and its log are those of what is measured. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEmbeddedPostgres } from "#db/embedded/start.ts";
import { openPool, urlOf, type Database } from "#db/connection/pool.ts";
import { postmasterOf } from "../test/postmaster.ts";

export interface BenchServer extends AsyncDisposable {
  /** As the superuser; its database has the extensions that costs are read with, and nothing else. */
  readonly connectionString: string;
  readonly db: Database;
  /** The process that all others of the server come from. */
  readonly postmaster: number;
}

export interface ServerOptions {
  /** False where two servers are compared: a vacuum that meets only one of them would count against it. */
  readonly autovacuum: boolean;
  /** Whether statements are counted, which costs each of them a microsecond or two. */
  readonly statements: boolean;
}

/** With fsync on, as the service has it. */
export async function openServer({ autovacuum, statements }: ServerOptions): Promise<BenchServer> {
  await using opened = new AsyncDisposableStack();
  const dataDir = mkdtempSync(join(tmpdir(), "latchkey-bench-"));
  opened.defer(() => rmSync(dataDir, { recursive: true, force: true }));
  await configure(dataDir, [
    "shared_preload_libraries = 'pg_stat_statements'",
    `pg_stat_statements.track = '${statements ? "all" : "none"}'`,
    `autovacuum = ${autovacuum ? "on" : "off"}`,
    // The log of a measurement is read after it.
    "wal_keep_size = '2GB'",
  ]);
  const server = await startEmbeddedPostgres({ dataDir });
  opened.defer(async () => await server.stop());
  const connectionString = urlOf(server.ownerConnection);
  const db = openPool({ connectionString }, { applicationName: "bench", max: 1, ...PATIENCE });
  opened.defer(async () => await db.end());
  for (const extension of ["pg_walinspect", "pg_stat_statements"])
    await db.query(`create extension if not exists ${extension}`);
  const kept = opened.move();
  return {
    connectionString,
    db,
    postmaster: postmasterOf(dataDir).pid,
    [Symbol.asyncDispose]: async () => await kept.disposeAsync(),
  };
}

/** Reading the log of a measurement takes seconds. */
const PATIENCE = { statementTimeoutMs: 60_000, queryTimeoutMs: 65_000 };

/** Some settings hold from the next start. */
async function configure(dataDir: string, settings: readonly string[]): Promise<void> {
  const server = await startEmbeddedPostgres({ dataDir });
  const db = openPool(server.ownerConnection, { applicationName: "bench", max: 1 });
  for (const setting of settings) await db.query(`alter system set ${setting}`);
  await db.end();
  await server.stop();
}

/** The server on which `install` makes its databases, as for tests. */
export function makeDatabasesOn(server: BenchServer): void {
  process.env["LATCHKEY_TEST_DATABASE"] = server.connectionString;
}
