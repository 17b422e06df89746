import { accountIdsOf } from "#actions/operator-error.ts";
import { listBlueprintIds } from "#db/operators/operator-config.ts";
import { listFailureGroups, type FailureGroup } from "#db/operators/operator-runs.ts";
import { listTriedLogins } from "#db/operators/whose.ts";
import type { Database } from "#db/connection/pool.ts";
import { customerOf } from "#domain/labels/customer.ts";
import { customerOfLogin, readMetadata } from "./run-marks.ts";

/** Failures considered, and groups listed. */
const GROUPED = { among: 2_000, groups: 50 };

/** The newest failures, by their reason. Throws OperatorError. */
export async function groupFailures(
  db: Database,
  query: { account?: string; blueprint?: string; since?: string },
  limit: readonly string[] | null,
) {
  const accountIds = await accountIdsOf(db, query.account, limit);
  const blueprintIds =
    query.blueprint === undefined ? null : await listBlueprintIds(db, accountIds, query.blueprint);
  const filter = { accountIds, blueprintIds, since: query.since ?? null };
  const groups = await listFailureGroups(db, filter, GROUPED);
  const tests = groups.filter(({ blueprint }) => blueprint === null).flatMap(({ runIds }) => runIds);
  const logins = await listTriedLogins(db, tests);
  const customersOf = ({ blueprint, runIds, metadata }: FailureGroup): readonly (string | null)[] =>
    blueprint === null
      ? logins.filter(({ runId }) => runIds.includes(runId)).map(customerOfLogin)
      : metadata.map((each) => customerOf(readMetadata(each)));
  return groups.map((group) => ({
    account: group.account,
    blueprint: group.blueprint,
    failure: group.failure,
    error: group.pattern,
    runs: group.runs,
    last_run_id: group.lastRunId,
    last_detail: group.lastDetail,
    last_at: group.lastAt.toISOString(),
    customers: [...new Set(customersOf(group).flatMap((each) => each ?? []))],
  }));
}
