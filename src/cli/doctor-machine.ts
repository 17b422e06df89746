import { statfs } from "node:fs/promises";
import { readClock } from "#db/connection/clock.ts";
import type { Database } from "#db/connection/pool.ts";
import { countWaitingRuns, readDatabaseState } from "#db/operators/operator-system.ts";
import { countBrowserLine } from "#db/runs/browser-line.ts";
import { readDeliveryLag } from "#db/webhooks/webhook-deliveries.ts";

/** What an installation has left, and how far it is behind. */
export interface MachineState {
  /** The database's clock by this machine's; 0: no difference was seen. */
  readonly skewMs: number;
  readonly connections: number;
  readonly connectionsMax: number;
  /** The disk of the data folder; null: there is no folder. */
  readonly disk: { readonly freeBytes: number; readonly sizeBytes: number } | null;
  /** Of the run that has waited longest for a worker's place, in seconds. */
  readonly oldestSeconds: number;
  /** Of the most overdue event of an endpoint that works, in milliseconds. */
  readonly deliveryLagMs: number;
}

const SKEW_MS_MAX = 5_000;
const CONNECTIONS_SHARE_MAX = 0.8;
const FREE_SHARE_MIN = 0.1;
const WAIT_SECONDS_MAX = 600;
const DELIVERY_MS_MAX = 60_000;

/** What works, and soon will not, each with its remedy. */
export async function listMachineAdvice(db: Database, dataFolder: string): Promise<readonly string[]> {
  const { connections, connectionsMax } = await readDatabaseState(db);
  const ofWorkers = (await countWaitingRuns(db)).filter(
    ({ reason }) => reason === "place" || reason === "worker",
  );
  const state: MachineState = {
    skewMs: await measureSkew(db),
    connections,
    connectionsMax,
    disk: await statfs(dataFolder).then(
      ({ bavail, blocks, bsize }) => ({ freeBytes: bavail * bsize, sizeBytes: blocks * bsize }),
      () => null,
    ),
    oldestSeconds: Math.max(0, ...ofWorkers.map(({ oldestSeconds }) => oldestSeconds)),
    deliveryLagMs: await readDeliveryLag(db),
  };
  return [...describeMachine(state), ...(await describeBrowserLine(db))];
}

/** Each line of `doctor` that this state needs. */
export function describeMachine(state: MachineState): readonly string[] {
  const { skewMs, connections, connectionsMax, disk, oldestSeconds, deliveryLagMs } = state;
  const advice: string[] = [];
  if (Math.abs(skewMs) > SKEW_MS_MAX)
    advice.push(
      `the database's clock is ${Math.round(Math.abs(skewMs) / 1_000)} s ${skewMs > 0 ? "ahead of" : "behind"} this machine's. Deadlines go by the ` +
        "database's, one-time codes and signatures by this machine's: set both with NTP",
    );
  if (connections > connectionsMax * CONNECTIONS_SHARE_MAX)
    advice.push(
      `${connections} of the database's ${connectionsMax} connections are open: raise max_connections, or use fewer processes or a pooler ` +
        "(docs/scaling.md#connections)",
    );
  if (disk !== null && disk.freeBytes < disk.sizeBytes * FREE_SHARE_MIN)
    advice.push(
      `the disk of the data folder has ${Math.floor(disk.freeBytes / 1_000_000)} MB left, less than a tenth: docs/operate.md#a-full-disk`,
    );
  if (oldestSeconds > WAIT_SECONDS_MAX)
    advice.push(
      `a run has waited ${Math.floor(oldestSeconds / 60)} min for a place at a worker: check that a worker runs, start another one, or raise ` +
        "LATCHKEY_WORKER_CONCURRENCY or the account's concurrency",
    );
  if (deliveryLagMs > DELIVERY_MS_MAX)
    advice.push(
      `an event has been due for ${Math.floor(deliveryLagMs / 60_000)} min although its webhook endpoint works: check that a worker runs. ` +
        "If one does, the endpoint is slow, or the worker has more runs than time: start another one",
    );
  return advice;
}

/** How long the question took is no difference. */
async function measureSkew(db: Database): Promise<number> {
  const earliest = Date.now();
  const atMs = await readClock(db);
  const latest = Date.now();
  return atMs < earliest ? Math.min(0, atMs - earliest) : Math.max(0, atMs - latest);
}

/** Runs hold nothing while they wait for a browser, so nothing else shows that none will come. */
async function describeBrowserLine(db: Database): Promise<readonly string[]> {
  const { runs, isMissing } = await countBrowserLine(db);
  if (runs === 0 || !isMissing) return [];
  return [
    `${runs === 1 ? "one run waits" : `${runs} runs wait`} for a browser, and no worker has one. Install Chromium where a worker runs (on Debian ` +
      "and Ubuntu: apt install chromium-headless-shell), or set LATCHKEY_BROWSER to the path of one",
  ];
}
