/**
 * What a request or a run costs: CPU time and what is written to the log. Unlike rates, costs can be compared on a machine that
 * others use, too, as long as what is compared is measured in turns: CPU time swells by up to two where caches are shared.
 */
import { cpuSecondsOf, mainThreadSeconds } from "./cpu.ts";
import { median } from "./runs-latency.ts";
import type { BenchServer } from "./server.ts";

/** For each request or run. A value is NaN where the machine or the server does not tell it. */
export interface Costs {
  /** CPU microseconds of the processes that answer or carry: of all their threads, and of the main ones. */
  readonly processUs: number;
  readonly mainUs: number;
  /** CPU microseconds of all processes of PostgreSQL. */
  readonly postgresUs: number;
  readonly walRecords: number;
  /** Without images of whole pages, which depend on when the last checkpoint was. */
  readonly walBytes: number;
  /** Transactions that wrote something. */
  readonly commits: number;
}

export interface CostLook {
  readonly processSeconds: number;
  readonly mainSeconds: number;
  readonly postgresSeconds: number;
  /** Where the log ended. */
  readonly walAt: string;
}

/** What the server and these processes have used so far. */
export async function lookAtCosts(server: BenchServer, pids: readonly number[]): Promise<CostLook> {
  const [row] = await server.db.query<{ at: string }>("select pg_current_wal_insert_lsn()::text as at");
  return {
    processSeconds: cpuSecondsOf(pids),
    mainSeconds: pids.reduce((total, pid) => total + mainThreadSeconds(pid), 0),
    postgresSeconds: cpuSecondsOf([server.postmaster]),
    walAt: row?.at ?? "0/0",
  };
}

/** What was used between two looks, by the number of requests or runs. Reads the log: not within a measurement. */
export async function costsBetween(
  server: BenchServer,
  before: CostLook,
  after: CostLook,
  count: number,
): Promise<Costs> {
  const each = (total: number): number => total / Math.max(count, 1);
  const wal = await readWal(server, before.walAt, after.walAt);
  return {
    processUs: each((after.processSeconds - before.processSeconds) * 1e6),
    mainUs: each((after.mainSeconds - before.mainSeconds) * 1e6),
    postgresUs: each((after.postgresSeconds - before.postgresSeconds) * 1e6),
    walRecords: each(wal.records),
    walBytes: each(wal.bytes),
    commits: each(wal.commits),
  };
}

async function readWal(
  { db }: BenchServer,
  from: string,
  to: string,
): Promise<{ readonly records: number; readonly bytes: number; readonly commits: number }> {
  if (from === to) return { records: 0, bytes: 0, commits: 0 };
  const [row] = await db.query<{ records: number; bytes: number; commits: number }>(
    `select coalesce(sum(count), 0)::float8 as records, coalesce(sum(record_size), 0)::float8 as bytes,
        coalesce(sum(count) filter (where "resource_manager/record_type" in ('Transaction/COMMIT', 'Transaction/COMMIT_PREPARED')), 0)::float8 as commits
      from pg_get_wal_stats($1, $2, true)`,
    [from, to],
  );
  return row ?? { records: Number.NaN, bytes: Number.NaN, commits: Number.NaN };
}

export function medianCosts(all: readonly Costs[]): Costs {
  const of = (value: (costs: Costs) => number): number => median(all.map(value));
  return {
    processUs: of(({ processUs }) => processUs),
    mainUs: of(({ mainUs }) => mainUs),
    postgresUs: of(({ postgresUs }) => postgresUs),
    walRecords: of(({ walRecords }) => walRecords),
    walBytes: of(({ walBytes }) => walBytes),
    commits: of(({ commits }) => commits),
  };
}

/** All CPU of a request or run. */
export const cpuUsOf = ({ processUs, postgresUs }: Costs): number => processUs + postgresUs;

/** The statements that took most of the server's time since the last call, one a line, by the number of requests or runs. */
export async function readStatements({ db }: BenchServer, count: number): Promise<string> {
  const rows = await db.query<{ calls: number; us: number; buffers: number; bytes: number; text: string }>(
    `select calls::float8, total_exec_time * 1000 as us, (shared_blks_hit + shared_blks_read)::float8 as buffers,
       wal_bytes::float8 as bytes, regexp_replace(left(query, 400), '\\s+', ' ', 'g') as text
     from pg_stat_statements order by total_exec_time desc limit 12`,
  );
  await db.query("select pg_stat_statements_reset()");
  const each = (value: number): string => (value / Math.max(count, 1)).toFixed(2).padStart(9);
  return [
    "    calls  µs spent  buffers  WAL bytes  for each; statement",
    ...rows.map(
      ({ calls, us, buffers, bytes, text }) =>
        `${each(calls)} ${each(us)} ${each(buffers)} ${each(bytes)}  ${text.slice(0, 150)}`,
    ),
  ].join("\n");
}
