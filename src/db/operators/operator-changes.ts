import type { RunStatus } from "#domain/run.ts";
import type { Database } from "#db/connection/pool.ts";

export interface RunState {
  readonly id: string;
  readonly accountId: string;
  readonly status: RunStatus;
  readonly progressStep: string;
}

export async function listRunStates(db: Database, ids: readonly string[]): Promise<readonly RunState[]> {
  return await db.query<RunState>({
    name: "list_run_states",
    text: `select id, account_id as "accountId", status, progress_step as "progressStep" from run where id = any($1::text[])`,
    values: [ids],
  });
}

/** The present end of the list of runs: later runs are new. */
export interface NewestRun {
  readonly createdMs: number;
  readonly id: string;
}

export async function findNewestRun(db: Database): Promise<NewestRun> {
  const rows = await db.query<NewestRun>(
    `select (extract(epoch from created_at) * 1000)::float8 as "createdMs", id from run
     order by created_at desc, id desc limit 1`,
  );
  return rows[0] ?? { createdMs: 0, id: "" };
}

/** In their order, the oldest first. */
export async function listNewerRuns(
  db: Database,
  after: NewestRun,
  limit: number,
): Promise<readonly (RunState & NewestRun)[]> {
  return await db.query<RunState & NewestRun>({
    name: "list_newer_runs",
    text: `select id, account_id as "accountId", status, progress_step as "progressStep",
        (extract(epoch from created_at) * 1000)::float8 as "createdMs" from run
      where (created_at, id) > (timestamptz 'epoch' + $1::float8 * interval '1 ms', $2)
      order by created_at, id limit $3`,
    values: [after.createdMs, after.id, limit],
  });
}

export interface ReviewState {
  readonly id: string;
  readonly accountId: string;
  readonly runId: string;
  readonly status: string;
}

export async function listReviewStates(
  db: Database,
  runIds: readonly string[],
): Promise<readonly ReviewState[]> {
  return await db.query<ReviewState>({
    name: "list_review_states",
    text: `select id, account_id as "accountId", run_id as "runId", status from review where run_id = any($1::text[])`,
    values: [runIds],
  });
}

/** Returns those of these sessions and operator tokens that are still valid. */
export async function listLiveHolders(
  db: Database,
  ids: readonly string[],
  idleMs: number,
): Promise<readonly string[]> {
  const rows = await db.query<{ id: string }>({
    name: "list_live_operator_holders",
    text: `select session.id from operator_session session join operator on operator.id = session.operator_id
      where session.id = any($1::text[]) and operator.disabled_at is null and session.expires_at > app_now()
        and session.seen_at > app_now() - $2::bigint * interval '1 ms'
      union all
      select token.id from operator_token token left join operator on operator.id = token.acts_for
      where token.id = any($1::text[]) and token.revoked_at is null and token.expires_at > app_now()
        and operator.disabled_at is null`,
    values: [ids, idleMs],
  });
  return rows.map(({ id }) => id);
}
