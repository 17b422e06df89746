import { recordAudit } from "#db/audit-entries.ts";
import type { Database } from "#db/connection/pool.ts";
import { closeReview, findReview, insertChanges, lockReview, type StoredReview } from "#db/runs/reviews.ts";
import { cancelRun, failParkedRun, resumeRun } from "#db/runs/runs.ts";
import type { AuditActor } from "#domain/audit.ts";
import { readChanges, type WantedChanges } from "#domain/review.ts";
import { assert, must } from "#lib/assert.ts";
import type { AuditKeys } from "#lib/audit-keys.ts";
import { failpoint } from "#lib/failpoint.ts";
import { followDecision } from "./follow-decision.ts";
import type { Needs } from "#actions/services.ts";

export type ReviewDecision =
  | { readonly verdict: "approve"; readonly changes: WantedChanges }
  | { readonly verdict: "reject" };

type DecisionServices = Needs<"db" | "log"> & { readonly audit: AuditKeys };

/** The reviewer and the reason, which are stored with the changes. */
export interface Reviewer {
  readonly actor: AuditActor;
  readonly by: string;
  readonly reason: string | null;
}

export type DecisionOutcome =
  | { readonly kind: "decided"; readonly review: StoredReview }
  | { readonly kind: "unknown" }
  /** It was decided, timed out, or its run has ended: the current review. */
  | { readonly kind: "closed"; readonly review: StoredReview }
  /** The changes can't be applied; nothing was changed. */
  | { readonly kind: "refused"; readonly problems: readonly string[] };

const TIMEOUT: Reviewer = { actor: { kind: "service" }, by: "timeout", reason: null };

/**
 * Decides a review, once and in one transaction: it locks the review's run first, so that a cancel, a timeout and other decisions come
 * before or after. An approved run continues; a rejected one is cancelled.
 */
export async function decideReview(
  services: DecisionServices,
  id: string,
  decision: ReviewDecision,
  reviewer: Reviewer,
): Promise<DecisionOutcome> {
  let settled: StoredReview | null = null;
  const outcome = await services.db.transaction(async (tx): Promise<DecisionOutcome> => {
    const review = await lockReview(tx, id);
    if (!review) return { kind: "unknown" };
    if (review.status !== "open") return { kind: "closed", review };
    // Correctness does not depend on the worker's housekeeping: the first request after the timeout settles it.
    if (review.isOver)
      return { kind: "closed", review: (settled = await timeOut(tx, services.audit, review)) };
    const applied = await applyDecision(tx, services.audit, review, decision, reviewer);
    if (applied.kind === "decided") settled = applied.review;
    return applied;
  });
  if (settled) await follow(services, settled);
  return outcome;
}

async function applyDecision(
  tx: Database,
  audit: AuditKeys,
  review: StoredReview,
  decision: ReviewDecision,
  reviewer: Reviewer,
): Promise<DecisionOutcome> {
  if (decision.verdict === "reject") {
    const rejected = await settle(tx, audit, review, "rejected", reviewer);
    assert(await cancelRun(tx, review.accountId, review.runId), "the run of an open review can be cancelled");
    return { kind: "decided", review: rejected };
  }
  const changes = readChanges(decision.changes, review);
  if (!changes.ok) return { kind: "refused", problems: changes.problems };
  await insertChanges(tx, review, changes);
  const approved = await settle(tx, audit, review, "approved", reviewer);
  assert(await resumeRun(tx, review.runId), "the run of an open review is parked");
  return { kind: "decided", review: approved };
}

/** The review has timed out and its run is locked: `on_timeout` decides. */
async function timeOut(tx: Database, audit: AuditKeys, review: StoredReview): Promise<StoredReview> {
  const settled = await settle(tx, audit, review, "timed_out", TIMEOUT);
  if (review.onTimeout === "approve") {
    assert(await resumeRun(tx, review.runId), "the run of an open review is parked");
  } else {
    const story = `Nobody decided the review of node ${review.nodeId} within its timeout.`;
    const failed = await failParkedRun(tx, review.runId, "review_timeout", story);
    assert(failed, "the run of an open review is parked");
  }
  return settled;
}

/**
 * Only this function records decisions. It does so in the transaction of the effect and before the effect, because the end of a
 * run closes its open reviews.
 */
async function settle(
  tx: Database,
  audit: AuditKeys,
  review: StoredReview,
  status: "approved" | "rejected" | "timed_out",
  { actor, by, reason }: Reviewer,
): Promise<StoredReview> {
  const isClosed = await closeReview(tx, review.id, { status, by, reason });
  assert(isClosed, "an open review, locked, can be decided");
  const settled = must(await findReview(tx, review.id), "the review");
  await recordAudit(tx, audit, {
    accountId: review.accountId,
    actor,
    action: "review.decide",
    subjectId: review.id,
    runId: review.runId,
    detail: { node: review.nodeId, decision: status, edited: settled.edited, excluded: settled.excluded },
  });
  await failpoint("review.before_commit");
  return settled;
}

/** Settles a review that has timed out. False: it was already decided. */
export async function timeOutReview(services: DecisionServices, id: string): Promise<boolean> {
  const review = await services.db.transaction(async (tx) => {
    const found = await lockReview(tx, id);
    return found?.status === "open" && found.isOver ? await timeOut(tx, services.audit, found) : null;
  });
  if (review) await follow(services, review);
  return review !== null;
}

async function follow(services: DecisionServices, review: StoredReview): Promise<void> {
  await failpoint("review.after_commit");
  await followDecision(services, review);
}
