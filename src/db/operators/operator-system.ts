import { WAITS_FOR_GROUP } from "#db/runs/group-limits.ts";
import { BROWSER_LINE } from "#db/runs/lines.ts";
import { CLOCK } from "#db/runs/polls.ts";
import { DELAY } from "#db/runs/run-timers.ts";
import type { Database } from "#db/connection/pool.ts";
import { must } from "#lib/assert.ts";

export interface SeenWorker {
  readonly id: string;
  readonly hostname: string;
  readonly pid: number;
  readonly startedAt: Date;
  readonly heartbeatAt: Date;
  /** Whether its lock is held and its heartbeat is recent, the criteria for a takeover by others. */
  readonly isAlive: boolean;
  readonly runs: number;
  /** Browsers that it may run at once; 0: it has none; null: it has not said. */
  readonly browsers: number | null;
  /** That of its browsers; null: it has not said. */
  readonly browserNetwork: "host" | "own" | null;
}

export async function listSeenWorkers(db: Database, staleMs: number): Promise<readonly SeenWorker[]> {
  return await db.query<SeenWorker>({
    name: "list_seen_workers",
    text: `select worker.id, hostname, pid, started_at as "startedAt", heartbeat_at as "heartbeatAt",
       heartbeat_at >= app_now() - $1::bigint * interval '1 ms'
         and exists (select 1 from pg_locks where locktype = 'advisory' and granted and objsubid = 1
           and database = (select oid from pg_database where datname = current_database())
           and ((classid::bigint << 32) | objid::bigint) = worker.lock_key) as "isAlive",
       browsers, case own_browser_networks when true then 'own' when false then 'host' end as "browserNetwork",
       -- What has a lease is admitted: the index of leased runs.
       (select count(*)::int from run where lease_owner = worker.id and admitted_at is not null) as runs
     from worker order by started_at, worker.id`,
    values: [staleMs],
  });
}

/** Runs that have not ended, grouped by the reason for waiting, each group with its oldest run. */
export interface WaitingRuns {
  readonly reason: WaitingReason;
  readonly runs: number;
  readonly oldestAt: Date;
  readonly oldestSeconds: number;
}

export type WaitingReason =
  | "place"
  | "blueprint"
  | "throttle"
  | "browser"
  | "credential"
  | "review"
  | "write"
  | "target"
  | "delay"
  | "worker"
  | "nothing";

/** `place`: a free slot. `blueprint`: one of its Blueprint's. `throttle`: a node's or a host's. `target`: the next poll. `delay`: its time to begin. `worker`: admitted, but no worker executes it yet. `nothing`: it is being executed. */
export async function countWaitingRuns(
  db: Database,
  accountIds: readonly string[] | null = null,
): Promise<readonly WaitingRuns[]> {
  return await db.query<WaitingRuns>({
    name: "count_waiting_runs",
    text: `select case when parked_at is not null and line is not null then case when line like 'cred\\_%' then 'credential'
         when line = '${CLOCK}' then 'target' when line = '${DELAY}' then 'delay' when line = '${BROWSER_LINE}' then 'browser'
         when line like '%/%' then 'throttle' else 'place' end
         when parked_at is not null and exists (select from run_write write where write.run_id = run.id
           and write.status = 'in_doubt') then 'write'
         when parked_at is not null then 'review'
         when lease_owner is not null then 'nothing'
         when admitted_at is not null then 'worker'
         when ${WAITS_FOR_GROUP} then 'blueprint' when waits_for is not null then 'credential' else 'place' end as reason,
       count(*)::int as runs, min(coalesce(parked_at, resumed_at, created_at)) as "oldestAt",
       extract(epoch from app_now() - min(coalesce(parked_at, resumed_at, created_at)))::float8 as "oldestSeconds"
     from run where status in ('queued', 'running') and ($1::text[] is null or account_id = any($1))
     group by 1 order by 2 desc, 1`,
    values: [accountIds],
  });
}

export interface DatabaseState {
  readonly version: string;
  readonly connections: number;
  readonly connectionsMax: number;
  /** The last migration. */
  readonly migration: number;
  /** Audit entries that are not numbered yet. */
  readonly unchained: number;
}

export async function readDatabaseState(db: Database): Promise<DatabaseState> {
  const rows = await db.query<DatabaseState>({
    name: "read_database_state",
    text: `select current_setting('server_version') as version,
       (select count(*)::int from pg_stat_activity where datname = current_database()) as connections,
       current_setting('max_connections')::int as "connectionsMax",
       (select max(version)::int from schema_migration) as migration,
       (select count(*)::int from audit_entry where sequence is null) as unchained`,
  });
  return must(rows[0], "a select without a table returns a row");
}

/** Looks at every file of the database. */
export async function readDatabaseSize(db: Database): Promise<number> {
  const rows = await db.query<{ sizeBytes: number }>(
    `select pg_database_size(current_database())::float8 as "sizeBytes"`,
  );
  return must(rows[0], "a select without a table returns a row").sizeBytes;
}
