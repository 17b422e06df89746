import type { RunStatus } from "#domain/run.ts";
import type { Database } from "#db/connection/pool.ts";

/** The runs triggered within an hour, by status and duration. */
export interface HourOfRuns {
  readonly status: RunStatus;
  /** For ended runs: the largest n for which 1.1^n does not exceed the duration in milliseconds; null for others. */
  readonly duration: number | null;
  readonly runs: number;
}

/** One hour, from its start. */
export async function countRunsOfHour(
  db: Database,
  startMs: number,
  accountIds: readonly string[] | null,
): Promise<readonly HourOfRuns[]> {
  return await db.query<HourOfRuns>({
    name: "count_runs_of_hour",
    text: `select status,
        floor(ln(greatest(extract(epoch from ended_at - coalesce(started_at, created_at)) * 1000, 1)) / ln(1.1))::int as duration,
        count(*)::int as runs
      from run where created_at >= timestamptz 'epoch' + $1::bigint * interval '1 ms'
        and created_at < timestamptz 'epoch' + ($1::bigint + 3600000) * interval '1 ms'
        and ($2::text[] is null or account_id = any($2))
      group by 1, 2`,
    values: [startMs, accountIds],
  });
}

/** Strategies with rejected logins, and the number of locked credentials. */
export interface FailingLogins {
  readonly account: string;
  readonly strategy: string;
  readonly credentials: number;
  readonly locked: number;
}

export async function listFailingLogins(
  db: Database,
  accountIds: readonly string[] | null,
  rows: number,
): Promise<readonly FailingLogins[]> {
  return await db.query<FailingLogins>(
    `select account.slug as account, strategy_id as strategy, count(*)::int as credentials,
       (count(*) filter (where login_locked_until > app_now()))::int as locked
     from credential join account on account.id = credential.account_id where login_rejections > 0 and candidate_at is null
       and ($2::text[] is null or credential.account_id = any($2))
     group by 1, 2 order by 3 desc, 1, 2 limit $1`,
    [rows, accountIds],
  );
}

export interface FailingBlueprint {
  readonly account: string;
  readonly blueprint: string;
  readonly failure: string;
  readonly runs: number;
  readonly lastRunId: string;
}

/** The failures since then, among the newest `runs` failed runs. */
export async function listFailingBlueprints(
  db: Database,
  sinceMs: number,
  accountIds: readonly string[] | null,
  { runs, rows }: { readonly runs: number; readonly rows: number },
): Promise<readonly FailingBlueprint[]> {
  return await db.query<FailingBlueprint>(
    `select account.slug as account, blueprint.key as blueprint, failed.error_kind as failure, count(*)::int as runs,
       max(failed.id) as "lastRunId"
     from (select id, blueprint_id, error_kind from run
         where status = 'failed' and created_at >= timestamptz 'epoch' + $1::bigint * interval '1 ms'
           and ($4::text[] is null or account_id = any($4))
         order by created_at desc, id desc limit $2) failed
       join blueprint on blueprint.id = failed.blueprint_id join account on account.id = blueprint.account_id
     group by 1, 2, 3 order by 4 desc, 1, 2, 3 limit $3`,
    [sinceMs, runs, rows, accountIds],
  );
}

/** Everything that needs an operator. */
export interface WaitingForPeople {
  readonly reviews: number;
  readonly writes: number;
  readonly lockedCredentials: number;
  /** Endpoints that were disabled because they failed. */
  readonly deadWebhooks: number;
}

/** `withOwn`: also endpoints of operators, which are of no account. */
export async function countWaitingForPeople(
  db: Database,
  accountIds: readonly string[] | null,
  withOwn: boolean,
): Promise<WaitingForPeople> {
  const own = `($1::text[] is null or account_id = any($1))`;
  const rows = await db.query<WaitingForPeople>(
    `select (select count(*)::int from review where status = 'open' and ${own}) as reviews,
       (select count(*)::int from run_write where status = 'in_doubt' and ${own}) as writes,
       (select count(*)::int from credential
           where login_rejections > 0 and candidate_at is null and login_locked_until > app_now() and ${own})
         as "lockedCredentials",
       (select count(*)::int from webhook_endpoint where disabled_reason in ('gone', 'failing')
         and (${own} or $2 and account_id is null)) as "deadWebhooks"`,
    [accountIds, withOwn],
  );
  return rows[0] ?? { reviews: 0, writes: 0, lockedCredentials: 0, deadWebhooks: 0 };
}
