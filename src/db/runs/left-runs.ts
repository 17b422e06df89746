import { limits } from "#domain/limits.ts";
import { runStatusesBefore } from "#domain/run.ts";
import type { Database } from "#db/connection/pool.ts";
import { CLAIM, CLAIMED_COLUMNS, CREDENTIALS, type ClaimedRun } from "./runs.ts";

/**
 * Left: a begun run without a worker, because it was handed back or its worker was lost. It keeps its slots, so it only needs a worker with
 * a free slot. The index `run_active` finds it.
 */
const IS_LEFT = `admitted_at is not null and ended_at is null and lease_owner is null
  and (not_before is null or not_before <= app_now())`;

/**
 * A run that has lost so many leases without progress that the next loss fails it: it is executed in quarantine (docs/decisions/0009). A
 * run that has timed out ends immediately, wherever it is taken.
 */
const IS_SUSPECT = `lost_leases = ${limits.lostLeasesMax - 1} and coalesce(deadline_at > app_now(), true)`;

/** Which left runs: those that may be executed in a normal worker, or those that must be quarantined. */
export type LeftKind = "plain" | "suspect";
const IS_OF_KIND: Readonly<Record<LeftKind, string>> = {
  plain: `not (${IS_SUSPECT})`,
  suspect: IS_SUSPECT,
};

/** Whether an account has such a run. */
export const hasLeft = (kind: LeftKind): string =>
  `exists (select from run where run.account_id = account.id and ${IS_LEFT} and ${IS_OF_KIND[kind]})`;

/**
 * Leases up to `limit` of the account's left runs to a worker, most urgent first. Runs whose rows are locked are skipped until a later
 * poll.
 */
export async function claimLeftRuns(
  db: Database,
  accountId: string,
  owner: string,
  limit: number,
  kind: LeftKind,
): Promise<readonly ClaimedRun[]> {
  return await db.query<ClaimedRun>({
    name: `claim_left_runs_${kind}`,
    text: takeLeases(kind),
    values: [accountId, owner, runStatusesBefore("running"), limit],
  });
}

/** `$1` to `$4`: account, owner, statuses, how many. */
const takeLeases = (kind: LeftKind): string => `with picked as (
    select id from run where account_id = $1 and ${IS_LEFT} and ${IS_OF_KIND[kind]}
    order by deadline_at, id limit $4 for no key update skip locked
  ), claimed as (
    update run set ${CLAIM} from account
    where run.id in (select id from picked) and account.id = run.account_id
    returning ${CLAIMED_COLUMNS}
  )
  select claimed.*, ${CREDENTIALS} as credentials from claimed order by "remainingMs", id`;
