import { statfs } from "node:fs/promises";
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Needs } from "#actions/services.ts";
import { findLastBackup } from "#db/backups/last-backup.ts";
import {
  countWaitingRuns,
  listSeenWorkers,
  readDatabaseSize,
  readDatabaseState,
  type WaitingReason,
} from "#db/operators/operator-system.ts";
import type { Database } from "#db/connection/pool.ts";
import { readPurgeLag } from "#db/runs/purges.ts";
import { listRowAlarms } from "#db/signing/row-alarms.ts";
import { readDeliveryLag } from "#db/webhooks/webhook-deliveries.ts";
import { limits } from "#domain/limits.ts";
import type { DiskPlace } from "#lib/full-disks.ts";
import { renderGauges, renderInstruments, type Gauge } from "#lib/metrics.ts";
import { LATCHKEY_VERSION } from "#lib/version.ts";

const ALARMS_MAX = 100;
/** The delay of the event loop is sampled this often; the default of 10 ms costs more. */
const DELAY_SAMPLE_MS = 50;
/**
 * The statements about the installation take longer the more runs wait. If they took `slow` or longer, they are sent again after so many
 * times as long, so that no backlog makes metrics cost more than a hundredth of a connection's time; after `most` in any case.
 */
const DATABASE_MS = { slow: 100, times: 100, most: 30_000 } as const;
/** Its size, for which it looks at each of its files, is read this often. */
const SIZE_EVERY_MS = 60_000;
const REASONS: readonly WaitingReason[] = [
  "place",
  "browser",
  "blueprint",
  "throttle",
  "credential",
  "review",
  "write",
  "target",
  "delay",
  "worker",
  "nothing",
];

/** All metrics of a process, as Prometheus' text format 0.0.4. */
export type ReadMetrics = () => Promise<string>;

/** Folders whose disks are measured, by what they are for. */
export type MeasuredFolders = Readonly<Partial<Record<DiskPlace, string>>>;

/** Of a process that shows its metrics. `close` ends the sampling. */
export function openMetrics(
  services: Needs<"db" | "vault">,
  folders: MeasuredFolders,
): { readonly read: ReadMetrics; close(): void } {
  const delay = monitorEventLoopDelay({ resolution: DELAY_SAMPLE_MS });
  delay.enable();
  const ofDatabase = openDatabaseGauges(services);
  let reading: Promise<string> | null = null;
  const readOnce = async (): Promise<string> => {
    const seconds = (quantile: number): number => delay.percentile(quantile * 100) / 1e9;
    const delays = [0.5, 0.99, 1].map((quantile) => ({
      labels: { quantile: String(quantile) },
      value: delay.count === 0 ? 0 : seconds(quantile),
    }));
    delay.reset();
    const gauges = [
      ...processGauges(),
      gauge("latchkey_event_loop_delay_seconds", "Delay of the event loop since the last scrape.", delays),
      ...poolGauges(services),
      ...(await diskGauges(folders)),
      ...(await ofDatabase()),
    ];
    return `${[renderInstruments(), renderGauges(gauges)].join("\n")}\n`;
  };
  return {
    // Callers at the same time share one reading.
    read: async () => await (reading ??= readOnce().finally(() => (reading = null))),
    close: () => void delay.disable(),
  };
}

const gauge = (name: string, help: string, values: Gauge["values"]): Gauge => ({ name, help, values });
const one = (name: string, help: string, value: number): Gauge => gauge(name, help, [{ value }]);

function processGauges(): readonly Gauge[] {
  const { user, system } = process.cpuUsage();
  const memory = process.memoryUsage();
  return [
    gauge("latchkey_info", "The program's version.", [{ labels: { version: LATCHKEY_VERSION }, value: 1 }]),
    one("latchkey_process_cpu_seconds_total", "CPU time of this process.", (user + system) / 1e6),
    one("latchkey_process_resident_memory_bytes", "Memory of this process.", memory.rss),
    one("latchkey_process_heap_bytes", "Used heap of this process.", memory.heapUsed),
    one("latchkey_process_uptime_seconds", "Time since this process started.", process.uptime()),
  ];
}

function poolGauges({ db: { pool }, vault }: Needs<"db" | "vault">): readonly Gauge[] {
  return [
    gauge("latchkey_pool_connections", "Connections of this process to the database.", [
      { labels: { state: "idle" }, value: pool.idleCount },
      { labels: { state: "used" }, value: pool.totalCount - pool.idleCount },
    ]),
    one("latchkey_pool_waiting", "Statements of this process that wait for a connection.", pool.waitingCount),
    one(
      "latchkey_vault_can_open",
      "Whether this process has the vault's private key.",
      vault.canOpen ? 1 : 0,
    ),
  ];
}

/** A folder that does not exist yet, or whose disk does not answer, has none. */
async function diskGauges(folders: MeasuredFolders): Promise<readonly Gauge[]> {
  const found = await Promise.all(
    Object.entries(folders).map(async ([place, folder]) => {
      const disk = await statfs(folder).catch(() => null);
      return disk === null
        ? []
        : [{ labels: { place }, free: disk.bavail * disk.bsize, size: disk.blocks * disk.bsize }];
    }),
  );
  const values = (which: "free" | "size"): Gauge["values"] =>
    found.flat().map(({ labels, [which]: value }) => ({ labels, value }));
  return [
    gauge(
      "latchkey_disk_free_bytes",
      "Room that this process may use on the disk of a folder.",
      values("free"),
    ),
    gauge("latchkey_disk_size_bytes", "Size of the disk of a folder.", values("size")),
  ];
}

function openDatabaseGauges(services: Needs<"db">): () => Promise<readonly Gauge[]> {
  let known: readonly Gauge[] = [];
  let freshUntil = -Infinity;
  let size = { bytes: 0, atMs: -Infinity };
  const readSize = async (db: Database): Promise<number> => {
    const atMs = performance.now();
    if (atMs - size.atMs >= SIZE_EVERY_MS) size = { bytes: await readDatabaseSize(db), atMs };
    return size.bytes;
  };
  return async () => {
    const began = performance.now();
    if (began < freshUntil) return known;
    known = await databaseGauges(services, readSize);
    const tookMs = performance.now() - began;
    if (tookMs >= DATABASE_MS.slow)
      freshUntil = began + tookMs + Math.min(tookMs * DATABASE_MS.times, DATABASE_MS.most);
    return known;
  };
}

/** Of the whole installation. Without its database there are none but the first. */
async function databaseGauges(
  { db }: Needs<"db">,
  readSize: (db: Database) => Promise<number>,
): Promise<readonly Gauge[]> {
  const up = (value: number): Gauge => one("latchkey_database_up", "Whether the database answers.", value);
  try {
    // All on one connection: the pool need not open others for it.
    const [waiting, workers, state, sizeBytes, purgeLagMs, eventLagMs, alarms, backup] = await db.transaction(
      async (tx) =>
        await Promise.all([
          countWaitingRuns(tx),
          listSeenWorkers(tx, limits.heartbeatStaleMs),
          readDatabaseState(tx),
          readSize(tx),
          readPurgeLag(tx),
          readDeliveryLag(tx),
          listRowAlarms(tx, ALARMS_MAX),
          findLastBackup(tx),
        ]),
    );
    const byReason = new Map(waiting.map((each) => [each.reason, each]));
    const alive = workers.filter(({ isAlive }) => isAlive);
    return [
      up(1),
      gauge(
        "latchkey_runs_unfinished",
        "Runs that have not ended, by what they wait for; `nothing`: they are being executed.",
        REASONS.map((reason) => ({ labels: { waits_for: reason }, value: byReason.get(reason)?.runs ?? 0 })),
      ),
      gauge(
        "latchkey_runs_oldest_seconds",
        "How long the oldest of them has been in this state.",
        REASONS.map((reason) => ({
          labels: { waits_for: reason },
          value: byReason.get(reason)?.oldestSeconds ?? 0,
        })),
      ),
      gauge("latchkey_workers", "Workers that have joined and not left, by whether they are alive.", [
        { labels: { state: "alive" }, value: alive.length },
        { labels: { state: "lost" }, value: workers.length - alive.length },
      ]),
      gauge("latchkey_database_connections", "Connections of all clients to the database.", [
        { labels: { kind: "open" }, value: state.connections },
        { labels: { kind: "max" }, value: state.connectionsMax },
      ]),
      one("latchkey_database_size_bytes", "Size of the database on disk.", sizeBytes),
      one("latchkey_database_migration", "The number of the last migration.", state.migration),
      one("latchkey_audit_entries_open", "Audit entries that are not chained yet.", state.unchained),
      one("latchkey_purge_lag_seconds", "How long the most overdue purge has been due.", purgeLagMs / 1_000),
      one(
        "latchkey_webhook_lag_seconds",
        "How long the oldest event has been due that a working endpoint should have got.",
        eventLagMs / 1_000,
      ),
      one(
        "latchkey_row_alarms",
        "Signed rows that this installation did not write (100: or more).",
        alarms.length,
      ),
      one(
        "latchkey_last_backup_age_seconds",
        "Time since the last `latchkey backup`; +Inf: none was ever made.",
        backup === undefined ? Infinity : backup.ageDays * 86_400,
      ),
    ];
  } catch {
    return [up(0)];
  }
}
