import type { RecordEdit, ReviewQuestion, ReviewStatus } from "#domain/review.ts";
import type { Database } from "#db/connection/pool.ts";

export interface NewReview extends ReviewQuestion {
  readonly id: string;
  readonly accountId: string;
  readonly runId: string;
  readonly nodeId: string;
  readonly recordsTotal: number;
  readonly recordsValid: number;
}

/** Part of the transaction that parks the run. Title and instructions are redacted. */
export async function insertReview(tx: Database, review: NewReview): Promise<void> {
  await tx.query(
    `insert into review (id, account_id, run_id, node_id, title, instructions, editable, records_total, records_valid,
       expires_at, on_timeout)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, app_now() + $10::bigint * interval '1 ms',
       case when $10::bigint is null then null else $11 end)`,
    [
      review.id,
      review.accountId,
      review.runId,
      review.nodeId,
      Buffer.from(review.title, "utf8"),
      review.instructions === null ? null : Buffer.from(review.instructions, "utf8"),
      review.editable,
      review.recordsTotal,
      review.recordsValid,
      review.timeoutMs,
      review.onTimeout,
    ],
  );
}

export interface StoredReview {
  readonly id: string;
  readonly accountId: string;
  readonly account: string;
  readonly runId: string;
  readonly runName: string | null;
  /** The run's, as JSON. */
  readonly metadata: string;
  readonly blueprint: string;
  readonly nodeId: string;
  readonly title: string;
  readonly instructions: string | null;
  readonly editable: boolean;
  readonly recordsTotal: number;
  readonly recordsValid: number;
  readonly createdAt: Date;
  readonly expiresAt: Date | null;
  readonly onTimeout: "fail" | "approve" | null;
  readonly status: ReviewStatus;
  /** Whether it has timed out by the database's clock, processed or not. */
  readonly isOver: boolean;
  readonly decidedBy: string | null;
  readonly decidedAt: Date | null;
  readonly reason: string | null;
  readonly edited: number;
  readonly excluded: number;
  /** The object with its records, as newline-delimited JSON. */
  readonly blobKey: string;
}

const COLUMNS = `review.id, review.account_id as "accountId", account.slug as account, review.run_id as "runId",
  convert_from(run.name, 'UTF8') as "runName", convert_from(run.metadata, 'UTF8') as metadata,
  blueprint.key as blueprint, review.node_id as "nodeId", convert_from(review.title, 'UTF8') as title,
  convert_from(review.instructions, 'UTF8') as instructions, review.editable, review.records_total as "recordsTotal",
  review.records_valid as "recordsValid", review.created_at as "createdAt", review.expires_at as "expiresAt",
  review.on_timeout as "onTimeout", review.status, coalesce(review.expires_at <= app_now(), false) as "isOver",
  review.decided_by as "decidedBy", review.decided_at as "decidedAt", review.reason,
  (select count(*) from review_change where review_id = review.id and change = 'edited')::int as edited,
  (select count(*) from review_change where review_id = review.id and change = 'excluded')::int as excluded,
  run_step.source_blob_key as "blobKey"`;
const TABLES = `review join run on run.id = review.run_id join account on account.id = review.account_id
  join blueprint on blueprint.id = run.blueprint_id
  join run_step on run_step.run_id = review.run_id and run_step.node_id = review.node_id`;

export async function findReview(db: Database, id: string): Promise<StoredReview | undefined> {
  const rows = await db.query<StoredReview>(`select ${COLUMNS} from ${TABLES} where review.id = $1`, [id]);
  return rows[0];
}

/**
 * The review, and its run's row until the transaction ends: a transaction that decides, cancels or ends the run comes before or
 * after. The data that is read was committed before the lock was acquired.
 */
export async function lockReview(tx: Database, id: string): Promise<StoredReview | undefined> {
  await tx.query(`select 1 from run where id = (select run_id from review where id = $1) for no key update`, [
    id,
  ]);
  return await findReview(tx, id);
}

/** Open reviews, oldest first. */
export async function listOpenReviews(
  db: Database,
  filter: { readonly accountIds: readonly string[] | null; readonly runId: string | null },
): Promise<readonly StoredReview[]> {
  return await db.query<StoredReview>(
    `select ${COLUMNS} from ${TABLES}
     where review.status = 'open' and (review.expires_at is null or review.expires_at > app_now())
       and ($1::text[] is null or review.account_id = any($1)) and ($2::text is null or review.run_id = $2)
     order by review.created_at, review.id limit 1000`,
    [filter.accountIds, filter.runId],
  );
}

/** Reviews that have timed out and are not processed yet. */
export async function listReviewsOver(db: Database, limit: number): Promise<readonly string[]> {
  const rows = await db.query<{ id: string }>({
    name: "list_reviews_over",
    text: `select id from review where status = 'open' and expires_at <= app_now() order by expires_at limit $1`,
    values: [limit],
  });
  return rows.map((row) => row.id);
}

/** Once: the review is open, and its row is locked by `lockReview`. False: it is not open. */
export async function closeReview(
  tx: Database,
  id: string,
  decision: {
    readonly status: "approved" | "rejected" | "timed_out";
    readonly by: string;
    readonly reason: string | null;
  },
): Promise<boolean> {
  const rows = await tx.query(
    `update review set status = $2, decided_by = $3, decided_at = app_now(), reason = $4
     where id = $1 and status = 'open' returning 1`,
    [id, decision.status, decision.by, decision.reason],
  );
  return rows.length > 0;
}

/** The reviewer's changes, as part of the decision's transaction. */
export async function insertChanges(
  tx: Database,
  review: { readonly id: string; readonly accountId: string },
  changes: { readonly edits: readonly RecordEdit[]; readonly excluded: readonly number[] },
): Promise<void> {
  const { edits, excluded } = changes;
  await tx.query(
    `insert into review_change (account_id, review_id, ordinal, change, data)
     select $1, $2, ordinal, case when data is null then 'excluded' else 'edited' end, data
     from unnest($3::int[], $4::bytea[]) as wanted (ordinal, data)`,
    [
      review.accountId,
      review.id,
      [...edits.map(({ ordinal }) => ordinal), ...excluded],
      [...edits.map(({ data }) => Buffer.from(JSON.stringify(data), "utf8")), ...excluded.map(() => null)],
    ],
  );
}

export interface StoredChange {
  readonly ordinal: number;
  /** The record's new data as JSON; null: excluded. */
  readonly data: Buffer | null;
}

/** The changes from an ordinal on, in order. */
export async function listChanges(
  db: Database,
  reviewId: string,
  from: number,
  limit: number,
): Promise<readonly StoredChange[]> {
  return await db.query<StoredChange>({
    name: "list_review_changes",
    text: `select ordinal, data from review_change where review_id = $1 and ordinal >= $2 order by ordinal limit $3`,
    values: [reviewId, from, limit],
  });
}

/** The review of a run's node, for its worker. */
export async function findReviewOfNode(
  db: Database,
  runId: string,
  nodeId: string,
): Promise<{ readonly id: string; readonly status: ReviewStatus } | undefined> {
  const rows = await db.query<{ id: string; status: ReviewStatus }>(
    `select id, status from review where run_id = $1 and node_id = $2`,
    [runId, nodeId],
  );
  return rows[0];
}
