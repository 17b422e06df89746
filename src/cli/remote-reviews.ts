import type { ReviewedRecord } from "#actions/reviews/read-review.ts";
import type { StoredReview } from "#db/runs/reviews.ts";
import type { DoubtfulGroup, DoubtfulWrite } from "#db/runs/run-writes.ts";
import type { readReview } from "#contract/operator/reviews.ts";
import type { OperatorAnswer } from "#contract/operator/operation.ts";
import { limits } from "#domain/limits.ts";
import type { RemoteService } from "./remote.ts";

/** A review as commands show it, of this machine's installation or of another one's. */
export type ShownReview = Omit<StoredReview, "accountId" | "runName" | "metadata" | "isOver" | "blobKey">;
/** The same for an uncertain write. */
export type ShownWrite = Omit<DoubtfulWrite, "accountId">;

type Answered = OperatorAnswer<typeof readReview>;

const timeOf = (text: string | null): Date | null => (text === null ? null : new Date(text));

const toReview = (review: Answered): ShownReview => ({
  id: review.id,
  account: review.account,
  runId: review.run_id,
  blueprint: review.blueprint,
  nodeId: review.node,
  title: review.title,
  instructions: review.instructions,
  editable: review.editable,
  recordsTotal: review.records_total,
  recordsValid: review.records_valid,
  createdAt: new Date(review.created_at),
  expiresAt: timeOf(review.expires_at),
  // The service writes one of these.
  onTimeout: review.on_timeout as ShownReview["onTimeout"],
  status: review.status,
  decidedBy: review.decided_by,
  decidedAt: timeOf(review.decided_at),
  reason: review.reason,
  edited: review.edited,
  excluded: review.excluded,
});

const ofAccount = (account: string | undefined) => (account === undefined ? {} : { account });

/** What waits for a person, of one account or of all, and of one run or of all. */
export async function listWaitingRemotely(
  service: RemoteService,
  { account, run }: { readonly account?: string; readonly run?: string },
): Promise<{ readonly reviews: readonly ShownReview[]; readonly writes: readonly ShownWrite[] }> {
  const [{ listReviews }, { listWrites }] = await Promise.all([
    import("#contract/operator/reviews.ts"),
    import("#contract/operator/writes.ts"),
  ]);
  const query = ofAccount(account);
  const reviews = (await service.call(listReviews, { query })).items.map(toReview);
  const writes = (await service.call(listWrites, { query })).items.map((write): ShownWrite => ({
    account: write.account,
    runId: write.run_id,
    blueprint: write.blueprint,
    nodeId: write.node,
    ordinal: write.record,
    detail: write.detail,
    sent: write.sent,
    startedAt: new Date(write.started_at),
    runEnded: write.run_ended,
  }));
  const isAsked = ({ runId }: { readonly runId: string }): boolean => run === undefined || runId === run;
  return { reviews: reviews.filter(isAsked), writes: writes.filter(isAsked) };
}

/** By node; of one account, or of all. */
export async function listGroupsRemotely(
  service: RemoteService,
  account: string | undefined,
): Promise<readonly DoubtfulGroup[]> {
  const { listWriteGroups } = await import("#contract/operator/writes.ts");
  const { items } = await service.call(listWriteGroups, { query: ofAccount(account) });
  return items.map(({ node, since, ...group }) => ({ ...group, nodeId: node, since: new Date(since) }));
}

export async function readReviewRemotely(service: RemoteService, reviewId: string): Promise<ShownReview> {
  const contract = await import("#contract/operator/reviews.ts");
  return toReview(await service.call(contract.readReview, { params: { reviewId } }));
}

/** Page by page: memory does not grow with the number of records. */
export async function* readRecordsRemotely(
  service: RemoteService,
  reviewId: string,
): AsyncIterable<ReviewedRecord> {
  const { listReviewRecords } = await import("#contract/operator/reviews.ts");
  for (let cursor: string | null | undefined; cursor !== null;) {
    const query = { limit: limits.pageItemsMax, ...(cursor === undefined ? {} : { cursor }) };
    const page = await service.call(listReviewRecords, { params: { reviewId }, query });
    for (const { ordinal, data, errors, is_valid: isValid } of page.items)
      // As the service stores them.
      yield { ordinal, data, errors, isValid } as ReviewedRecord;
    cursor = page.next_cursor;
  }
}

/** Throws CommandFailed with the service's message when the review can't be decided. */
export async function decideReviewRemotely(
  service: RemoteService,
  reviewId: string,
  decision:
    | { readonly verdict: "reject"; readonly reason: string }
    | {
        readonly verdict: "approve";
        readonly reason: string | undefined;
        readonly edits: readonly { readonly ordinal: number; readonly data: object }[];
        readonly exclude: readonly number[];
      },
): Promise<ShownReview> {
  const { approveReview, rejectReview } = await import("#contract/operator/reviews.ts");
  const params = { reviewId };
  if (decision.verdict === "reject")
    return toReview(await service.call(rejectReview, { params, body: { reason: decision.reason } }));
  const { reason, edits, exclude } = decision;
  const body = { edits: [...edits], exclude: [...exclude], ...(reason === undefined ? {} : { reason }) };
  return toReview(await service.call(approveReview, { params, body }));
}
