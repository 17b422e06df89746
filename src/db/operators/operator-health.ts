import type { Database } from "#db/connection/pool.ts";

/** The runs of one Blueprint, of one day or of all. */
export interface RunHealth {
  /** The day's start, in UTC; null: of all days. */
  readonly at: Date | null;
  readonly runs: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  /** Of completed runs, from start to end; null: there are none. */
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
  /** Records of their results. */
  readonly records: number;
  /** When the earliest of them was triggered. */
  readonly since: Date;
}

/** The newest `among` runs of a Blueprint since then, in total and by day, newest first; the total is the first, unless there are none. */
export async function readRunHealth(
  db: Database,
  blueprintId: string,
  { days, among }: { readonly days: number; readonly among: number },
): Promise<readonly RunHealth[]> {
  return await db.query<RunHealth>(
    // Each run's results by themselves, by the index: the planner does not know how few the runs are.
    `with newest as materialized (
       select id, status, created_at, extract(epoch from ended_at - started_at) * 1000 as ms
       from run where blueprint_id = $1 and created_at >= app_now() - $2 * interval '1 day'
       order by created_at desc, id desc limit $3
     ), counted as (
       select newest.*, date_trunc('day', created_at, 'UTC') as day,
         case when status = 'completed' then
           (select sum(total_records) from run_result where run_id = newest.id) end as records
       from newest
     )
     select day as at, count(*)::int as runs,
       (count(*) filter (where status = 'completed'))::int as completed,
       (count(*) filter (where status = 'failed'))::int as failed,
       (count(*) filter (where status = 'cancelled'))::int as cancelled,
       (percentile_disc(0.5) within group (order by ms) filter (where status = 'completed'))::float8 as "p50Ms",
       (percentile_disc(0.95) within group (order by ms) filter (where status = 'completed'))::float8 as "p95Ms",
       coalesce(sum(records), 0)::float8 as records, min(created_at) as since
     from counted group by grouping sets ((), (day)) having count(*) > 0 order by day desc nulls first`,
    [blueprintId, days, among],
  );
}
