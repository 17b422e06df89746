import type { Database } from "#db/connection/pool.ts";
import type { RunInput } from "#db/runs/runs.ts";

/** The last completed run of the same Blueprint that was triggered before a run. */
export async function findGoodRunBefore(db: Database, runId: string): Promise<string | undefined> {
  const rows = await db.query<{ id: string }>(
    `select other.id from run join run other on other.blueprint_id = run.blueprint_id and other.status = 'completed'
       and (other.created_at, other.id) < (run.created_at, run.id) and other.purged_at is null
     where run.id = $1 order by other.created_at desc, other.id desc limit 1`,
    [runId],
  );
  return rows[0]?.id;
}

/** Records of a node in the form of a journal: of its output, or those that a review asks about. Undefined: it stores none. */
export async function findStoredRecords(
  db: Database,
  runId: string,
  nodeId: string,
): Promise<{ readonly content: Buffer | null; readonly blobKey: string | null } | undefined> {
  const rows = await db.query<{ content: Buffer | null; blobKey: string | null }>(
    `select case when output_kind = 'records' then output end as content,
       case when output_kind = 'records' then blob_key
         when exists (select from review where review.run_id = $1 and review.node_id = $2) then source_blob_key end as "blobKey"
     from run_step where run_id = $1 and node_id = $2`,
    [runId, nodeId],
  );
  return rows[0];
}

export async function findRunInput(
  db: Database,
  runId: string,
  refKey: string,
): Promise<RunInput | undefined> {
  const rows = await db.query<RunInput>(
    `select ref_key as "refKey", kind, content, blob_key as "blobKey", filename, content_type as "contentType",
       coalesce(octet_length(content), blob.size_bytes)::float8 as "sizeBytes"
     from run_input left join blob on blob.key = run_input.blob_key where run_input.run_id = $1 and ref_key = $2`,
    [runId, refKey],
  );
  return rows[0];
}
