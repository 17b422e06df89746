import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isRunning } from "#lib/process-mark.ts";
import { startEmbeddedPostgres } from "#db/embedded/start.ts";
import { openPool, urlOf } from "#db/connection/pool.ts";
import type { TestDatabase } from "../database.ts";
import { postmasterOf } from "../postmaster.ts";

/** A PostgreSQL server of a test's own, which it may stop and start. */
export interface OwnDatabase extends AsyncDisposable {
  readonly database: TestDatabase;
  /** `fast` cuts the clients and writes everything, `immediate` is a crash. */
  restart(mode: "fast" | "immediate"): Promise<void>;
  /** All of the server's processes stand still for so long: no connection is closed, and nothing is answered. */
  standStill(ms: number): Promise<void>;
}

const SIGNALS = { fast: "SIGINT", immediate: "SIGQUIT" } as const;

export async function startOwnDatabase(): Promise<OwnDatabase> {
  const dataDir = mkdtempSync(join(tmpdir(), "latchkey-own-"));
  let server = await startEmbeddedPostgres({ dataDir });
  const connectionString = urlOf(server.ownerConnection);
  const db = openPool({ connectionString }, { applicationName: "latchkey-test", connectTimeoutMs: 20_000 });
  const postmaster = (): number => postmasterOf(dataDir).pid;
  return {
    database: { connectionString, db, drop: async () => await db.end() },
    restart: async (mode) => {
      const pid = postmaster();
      process.kill(pid, SIGNALS[mode]);
      while (isRunning(pid)) await sleep(10);
      server = await startEmbeddedPostgres({ dataDir });
    },
    standStill: async (ms) => {
      const pids = [postmaster(), ...childrenOf(postmaster())];
      for (const pid of pids) process.kill(pid, "SIGSTOP");
      try {
        await sleep(ms);
      } finally {
        for (const pid of pids.toReversed()) process.kill(pid, "SIGCONT");
      }
    },
    [Symbol.asyncDispose]: async () => {
      await server.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

function childrenOf(parent: number): readonly number[] {
  return readFileSync(`/proc/${parent}/task/${parent}/children`, "utf8").trim().split(" ").map(Number);
}
