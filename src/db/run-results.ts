import type { StoredResult } from "#domain/run-results.ts";
import { grouped } from "./group.ts";
import type { Database } from "./pool.ts";

export interface NewResult extends StoredResult {
  readonly blobBytes: number;
  readonly blobSha256: Uint8Array;
}

/** Part of the transaction that completes the run. */
export async function insertResults(
  db: Database,
  accountId: string,
  runId: string,
  results: readonly NewResult[],
): Promise<void> {
  for (const [ordinal, result] of results.entries()) {
    await db.query(
      `insert into blob (key, account_id, run_id, purpose, size_bytes, sha256) values ($1, $2, $3, 'result', $4, $5)`,
      [result.blobKey, accountId, runId, result.blobBytes, result.blobSha256],
    );
    await db.query(
      `insert into run_result (account_id, run_id, ordinal, key, total_records, json_bytes, blob_key)
       values ($1, $2, $3, $4, $5, $6, $7)`,
      [accountId, runId, ordinal, result.key, result.totalRecords, result.jsonBytes, result.blobKey],
    );
  }
}

/** In the order of the Blueprint's output nodes. Those of many runs are one statement. */
export const listResults = grouped<string, readonly StoredResult[]>(async (db, runIds) => {
  const rows = await db.query<StoredResult & { runId: string }>({
    name: "list_results",
    text: `select run_id as "runId", key, total_records as "totalRecords", json_bytes as "jsonBytes", blob_key as "blobKey"
      from run_result where run_id = any($1) order by run_id, ordinal`,
    values: [[...new Set(runIds)]],
  });
  const byRun = Map.groupBy(rows, (row) => row.runId);
  return runIds.map((runId) => byRun.get(runId) ?? []);
});

/** The object behind one presigned URL. Undefined when the run was purged, or there is none. */
export async function findResultBlob(
  db: Database,
  runId: string,
  key: string,
): Promise<{ readonly blobKey: string; readonly sizeBytes: number } | undefined> {
  const rows = await db.query<{ blobKey: string; sizeBytes: number }>(
    `select blob.key as "blobKey", blob.size_bytes as "sizeBytes"
     from run_result join run on run.id = run_result.run_id join blob on blob.key = run_result.blob_key
     where run_result.run_id = $1 and run_result.key = $2 and run.purged_at is null`,
    [runId, key],
  );
  return rows[0];
}

/**
 * Takes a run's data away: inputs, journal, reviews, results. The run row stays (design, page 1, Retention). Gives the keys of the
 * objects to remove from the store after COMMIT; null when there is nothing to purge.
 */
export async function purgeRun(
  db: Database,
  runId: string,
): Promise<{ readonly accountId: string; readonly blobKeys: readonly string[] } | null> {
  return await db.transaction(async (tx) => {
    const runs = await tx.query<{ accountId: string }>(
      `update run set purged_at = app_now(), name = null, metadata = convert_to('{}', 'UTF8'),
         ignored_keys = convert_to('[]', 'UTF8'), error_detail = null
       where id = $1 and ended_at is not null and purged_at is null returning account_id as "accountId"`,
      [runId],
    );
    const accountId = runs[0]?.accountId;
    if (accountId === undefined) return null;
    await tx.query(`delete from run_result where run_id = $1`, [runId]);
    await tx.query(`delete from review_change where review_id in (select id from review where run_id = $1)`, [
      runId,
    ]);
    await tx.query(`delete from review where run_id = $1`, [runId]);
    // What writes gave, and the operator's story of their doubts.
    await tx.query(`delete from run_write where run_id = $1`, [runId]);
    await tx.query(`delete from run_step where run_id = $1`, [runId]);
    await tx.query(`delete from run_input where run_id = $1`, [runId]);
    const blobs = await tx.query<{ key: string }>(`delete from blob where run_id = $1 returning key`, [
      runId,
    ]);
    return { accountId, blobKeys: blobs.map((blob) => blob.key) };
  });
}

export async function listRunsToPurge(db: Database, limit: number): Promise<readonly string[]> {
  const rows = await db.query<{ id: string }>(
    `select id from run where ended_at is not null and purged_at is null
       and ended_at + retention_ms * interval '1 ms' <= app_now() order by ended_at limit $1`,
    [limit],
  );
  return rows.map((row) => row.id);
}
