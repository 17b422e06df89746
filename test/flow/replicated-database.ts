import { execFileSync } from "node:child_process";
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startEmbeddedPostgres, type EmbeddedConnection, type EmbeddedPostgres } from "#db/embedded/start.ts";
import { openPool, urlOf } from "#db/connection/pool.ts";
import type { TestDatabase } from "../database.ts";
import { openFrozenProxy } from "./frozen-proxy.ts";
import { isRunning } from "#lib/process-mark.ts";
import { eventually } from "../eventually.ts";
import { postmasterOf, runningPostmaster } from "../postmaster.ts";

/** A PostgreSQL server with a synchronous standby, behind one address. */
export interface ReplicatedDatabase extends AsyncDisposable {
  readonly database: TestDatabase;
  /** The primary dies, the standby is promoted, and the address leads to it from then on. */
  failOver(): Promise<void>;
}

export async function startReplicatedDatabase(): Promise<ReplicatedDatabase> {
  await using opened = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), "latchkey-replicated-"));
  opened.defer(() => rmSync(folder, { recursive: true, force: true }));
  const [dataDir, standbyDir] = [join(folder, "primary"), join(folder, "standby")];
  const first = await startEmbeddedPostgres({ dataDir });
  await first.stop();
  // With owners and modes, which PostgreSQL looks at.
  execFileSync("cp", ["-a", dataDir, standbyDir]);
  const primary = await startEmbeddedPostgres({ dataDir });
  opened.defer(async () => await primary.stop());
  const { ownerConnection } = primary;
  follow(standbyDir, ownerConnection);
  // It is ready, and the promise kept, when it has been promoted.
  const promoted = startEmbeddedPostgres({ dataDir: standbyDir });
  promoted.catch(() => {});
  opened.defer(async () => await leave(promoted, standbyDir));
  const proxy = await openFrozenProxy(urlOf(ownerConnection));
  opened.defer(async () => await proxy.close());
  const connectionString = proxy.connectionString;
  const db = openPool({ connectionString }, { applicationName: "latchkey-test", connectTimeoutMs: 20_000 });
  await db.query("alter system set synchronous_standby_names = '*'");
  await db.query("select pg_reload_conf()");
  await eventually("the standby follows", async () => {
    const rows = await db.query("select 1 from pg_stat_replication where sync_state = 'sync'");
    return rows.length === 1 || undefined;
  });
  const kept = opened.move();
  return {
    database: { connectionString, db, drop: async () => await db.end() },
    failOver: async () => {
      const { pid } = postmasterOf(dataDir);
      process.kill(pid, "SIGQUIT");
      while (isRunning(pid)) await sleep(10);
      const standby = openPool(
        { ...ownerConnection, host: postmasterOf(standbyDir).socketFolder },
        { applicationName: "latchkey-test" },
      );
      await standby.query("select pg_promote()");
      await standby.end();
      proxy.switchTo(urlOf((await promoted).ownerConnection));
    },
    [Symbol.asyncDispose]: async () => await kept.disposeAsync(),
  };
}

/** Makes the copy of a cluster a standby of it. */
function follow(dataDir: string, { host, port, user, password }: EmbeddedConnection): void {
  const cluster = join(dataDir, "postgres");
  writeFileSync(join(cluster, "standby.signal"), "");
  appendFileSync(
    join(cluster, "postgresql.auto.conf"),
    `primary_conninfo = 'host=${host} port=${port} user=${user} password=${password}'\n`,
  );
}

/** Also one that was never promoted. */
async function leave(promoted: Promise<EmbeddedPostgres>, dataDir: string): Promise<void> {
  const standby = runningPostmaster(dataDir);
  if (standby) process.kill(standby.pid, "SIGINT");
  await promoted.then(
    async (server) => await server.stop(),
    () => {},
  );
}
