import { decideReview, type ReviewDecision } from "#actions/reviews/decide-review.ts";
import { mayWriteAfter } from "#actions/runs/blueprint-writes.ts";
import { accountIdsOf } from "#actions/operator-error.ts";
import { readReview, readReviewRecords } from "#actions/reviews/read-review.ts";
import type { Needs } from "#actions/services.ts";
import { findAccountDocument } from "#db/accounts.ts";
import { findCachedVersion } from "#db/config-documents.ts";
import { findDetailedRun } from "#db/operators/operator-runs.ts";
import type { Database } from "#db/connection/pool.ts";
import { listOpenReviews, type StoredReview } from "#db/runs/reviews.ts";
import { readReviewStepUp } from "#domain/account.ts";
import type { Json, JsonObject } from "#domain/json.ts";
import { isId } from "#domain/ids.ts";
import { makePage, readPage } from "#domain/page-cursor.ts";
import { invalidField, notFound, Problem } from "#domain/problem.ts";
import { must } from "#lib/assert.ts";
import { actorOf, nameOf, requireFactor, type Principal } from "./operator-caller.ts";

/** Open reviews, oldest first. Throws OperatorError. */
export async function listInbox(db: Database, account: string | undefined, limit: readonly string[] | null) {
  const accountIds = await accountIdsOf(db, account, limit);
  return (await listOpenReviews(db, { accountIds, runId: null })).map(show);
}

/** Throws Problem 404. */
export async function getReview(db: Database, id: string) {
  return show(await find(db, id));
}

async function find(db: Database, id: string): Promise<StoredReview> {
  const review = isId("review", id) ? await readReview(db, id) : undefined;
  if (!review) throw notFound("Review");
  return review;
}

export interface RecordQuery {
  cursor?: string;
  limit?: number;
  /** Only records without errors, or only those with errors. */
  valid?: boolean;
  /** Records of the list to skip, instead of a cursor. */
  from?: number;
  /** Only records after this ordinal, instead of a cursor. */
  after?: number;
}

/** A page of the records, in their order. Throws Problem 404 or 422. */
export async function getReviewRecords(services: Needs<"db" | "blobs">, id: string, query: RecordQuery) {
  const review = await find(services.db, id);
  const page = readPage(query);
  for (const name of ["from", "after"] as const)
    if (query[name] !== undefined && query.cursor !== undefined)
      throw invalidField(name, `\`${name}\` can't be used together with \`cursor\`.`);
  const first = (page.after?.atMs ?? query.after ?? -1) + 1;
  let skipped = 0;
  const rows = [];
  for await (const record of readReviewRecords(services.blobs, review)) {
    if (record.ordinal < first || record.isValid !== (query.valid ?? record.isValid)) continue;
    if (skipped++ < (query.from ?? 0)) continue;
    rows.push(record);
    if (rows.length === page.rows) break;
  }
  return makePage(
    rows,
    page,
    ({ ordinal }) => ({ atMs: ordinal, id: "record" }),
    (record) => ({
      ordinal: record.ordinal,
      data: record.data,
      errors: [...record.errors],
      is_valid: record.isValid,
    }),
  );
}

export interface WantedApproval {
  edits?: { ordinal: number; data: object }[];
  exclude?: number[];
  /** Excludes all records with errors that are not edited as well. */
  exclude_invalid?: boolean;
  reason?: string;
}

/** Approves once, even under concurrency. Throws Problem 404, 409 or 422. */
export async function approveReview(
  services: Needs<"db" | "blobs" | "log" | "signing">,
  caller: Principal,
  id: string,
  wanted: WantedApproval,
) {
  const edits = (wanted.edits ?? []).map(({ ordinal, data }, at) => ({
    at: `edits.${at}`,
    ordinal,
    // It was parsed from JSON.
    data: data as Json,
  }));
  const exclusions = (wanted.exclude ?? []).map((ordinal, at) => ({ at: `exclude.${at}`, ordinal }));
  if (wanted.exclude_invalid === true) {
    const changed = new Set([...edits, ...exclusions].map(({ ordinal }) => ordinal));
    for (const ordinal of await listInvalid(services, id))
      if (!changed.has(ordinal)) exclusions.push({ at: "exclude_invalid", ordinal });
  }
  const decision = { verdict: "approve", changes: { edits, exclusions } } as const;
  return await decide(services, caller, id, decision, wanted.reason ?? null);
}

/** The ordinals of all records with errors; empty if the review can no longer be decided. Throws Problem 404. */
async function listInvalid(services: Needs<"db" | "blobs">, id: string): Promise<readonly number[]> {
  const review = await find(services.db, id);
  const ordinals = [];
  if (review.status === "open")
    for await (const { ordinal, isValid } of readReviewRecords(services.blobs, review))
      if (!isValid) ordinals.push(ordinal);
  return ordinals;
}

/** Throws Problem 404 or 409. */
export async function rejectReview(
  services: Needs<"db" | "log" | "signing">,
  caller: Principal,
  id: string,
  reason: string,
) {
  return await decide(services, caller, id, { verdict: "reject" }, reason);
}

async function decide(
  services: Needs<"db" | "log" | "signing">,
  caller: Principal,
  id: string,
  decision: ReviewDecision,
  reason: string | null,
) {
  await requireFactorFor(services.db, caller, id);
  const reviewer = { actor: actorOf(caller), by: nameOf(caller), reason };
  const { db, log, signing } = services;
  const outcome = isId("review", id)
    ? await decideReview({ db, log, audit: signing.audit }, id, decision, reviewer)
    : ({ kind: "unknown" } as const);
  if (outcome.kind === "unknown") throw notFound("Review");
  if (outcome.kind === "closed")
    throw new Problem("conflict", `The review is already ${outcome.review.status}; nothing was changed.`);
  if (outcome.kind === "decided") return show(outcome.review);
  throw new Problem("validation_error", "The changes can't be applied; nothing was changed.", {
    details: outcome.problems.map((problem) => {
      const [, field, message] = /^((?:edits|exclude)\.\d+|exclude_invalid): (.*)$/s.exec(problem) ?? [];
      return { message: message ?? problem, code: "invalid_input_data", field };
    }),
  });
}

/** Requires a second factor if the review's account does. Throws Problem 403. */
async function requireFactorFor(db: Database, caller: Principal, id: string): Promise<void> {
  const review = isId("review", id) ? await readReview(db, id) : undefined;
  if (!review) return;
  const document = must(await findAccountDocument(db, review.accountId), "the review's account");
  const setting = readReviewStepUp(JSON.parse(document) as JsonObject);
  if (setting === "never") return;
  if (setting === "before_writes") {
    const run = must(await findDetailedRun(db, review.runId), "the review's run");
    const version = {
      accountId: run.accountId,
      id: must(run.blueprintId, "the run's Blueprint"),
      version: must(run.blueprintVersion, "the run's version"),
    };
    const blueprint = must(await findCachedVersion(db, "blueprint", version), "the run's Blueprint");
    if (!mayWriteAfter(blueprint, review.nodeId)) return;
  }
  requireFactor(caller, "lately");
}

function show(review: StoredReview) {
  return {
    id: review.id,
    account: review.account,
    run_id: review.runId,
    run_name: review.runName,
    metadata: JSON.parse(review.metadata) as Record<string, string>,
    blueprint: review.blueprint,
    node: review.nodeId,
    title: review.title,
    instructions: review.instructions,
    editable: review.editable,
    records_total: Number(review.recordsTotal),
    records_valid: Number(review.recordsValid),
    created_at: review.createdAt.toISOString(),
    expires_at: review.expiresAt?.toISOString() ?? null,
    on_timeout: review.onTimeout,
    status: review.status,
    decided_by: review.decidedBy,
    decided_at: review.decidedAt?.toISOString() ?? null,
    reason: review.reason,
    edited: review.edited,
    excluded: review.excluded,
  };
}
