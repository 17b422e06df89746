import { decideDoubtfulGroup, type DecidedGroup } from "#actions/reviews/decide-group.ts";
import { decideDoubtfulWrite } from "#actions/reviews/decide-write.ts";
import { accountIdsOf, requireAccount } from "#actions/operator-error.ts";
import type { Needs } from "#actions/services.ts";
import type { Database } from "#db/connection/pool.ts";
import { listDoubtfulGroups, listDoubtfulWrites } from "#db/runs/run-writes.ts";
import { isId } from "#domain/ids.ts";
import { mayDo } from "#domain/operator.ts";
import { notFound, Problem } from "#domain/problem.ts";
import { actorOf, nameOf, type Principal } from "./operator-caller.ts";

/** Lists the uncertain writes of one account or all, and of one node or all. Their requests are end users' data. Throws OperatorError. */
export async function listUncertainWrites(
  db: Database,
  { role }: Principal,
  {
    account,
    blueprint,
    node,
  }: { readonly account?: string; readonly blueprint?: string; readonly node?: string },
  limit: readonly string[] | null,
) {
  const accountIds = await accountIdsOf(db, account, limit);
  const of = blueprint === undefined || node === undefined ? undefined : { blueprint, nodeId: node };
  return (await listDoubtfulWrites(db, { accountIds, runId: null, ...(of && { of }) })).map((write) => ({
    run_id: write.runId,
    account: write.account,
    blueprint: write.blueprint,
    node: write.nodeId,
    record: write.ordinal,
    detail: write.detail,
    sent: mayDo(role, "review.records") ? write.sent : null,
    started_at: write.startedAt.toISOString(),
    run_ended: write.runEnded,
  }));
}

/** Like `latchkey reviews write`. Throws Problem 404, 409. */
export async function decideWriteOf(
  services: Needs<"db" | "log" | "signing">,
  caller: Principal,
  which: { readonly runId: string; readonly node: string; readonly record: string },
  happened: boolean,
): Promise<void> {
  const waiting = isId("run", which.runId)
    ? await listDoubtfulWrites(services.db, { accountIds: null, runId: which.runId })
    : [];
  const write = waiting.find((each) => each.nodeId === which.node && String(each.ordinal) === which.record);
  if (!write) throw notFound("Write");
  const { db, log, signing } = services;
  const decision = { happened, by: nameOf(caller), actor: actorOf(caller) };
  if (!(await decideDoubtfulWrite({ db, log, audit: signing.audit }, write, decision)))
    throw new Problem("conflict", "It has just been decided, or its run has continued; nothing was changed.");
}

/** By node; of one account, or of all. Throws OperatorError. */
export async function listWriteGroups(
  db: Database,
  { role }: Principal,
  account: string | undefined,
  limit: readonly string[] | null,
) {
  const accountIds = await accountIdsOf(db, account, limit);
  return (await listDoubtfulGroups(db, { accountIds, blueprint: null })).map(
    ({ nodeId, since, sent, ...group }) => ({
      ...group,
      sent: mayDo(role, "review.records") ? sent : null,
      node: nodeId,
      since: since.toISOString(),
    }),
  );
}

/** Like `latchkey reviews decide`. Throws Problem 404, OperatorError. */
export async function decideGroupOf(
  services: Needs<"db" | "log" | "signing">,
  caller: Principal,
  which: {
    readonly account: string;
    readonly blueprint: string;
    readonly node: string;
    readonly happened: boolean;
  },
): Promise<DecidedGroup> {
  const { db, log, signing } = services;
  const { id: accountId } = await requireAccount(db, which.account);
  const decided = await decideDoubtfulGroup(
    { db, log, audit: signing.audit },
    { accountId, blueprint: which.blueprint, nodeId: which.node },
    { happened: which.happened, by: nameOf(caller), actor: actorOf(caller) },
  );
  if (decided.writes === 0 && decided.left === 0) throw notFound("Write");
  return decided;
}
