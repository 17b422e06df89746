import { runStatusesBefore } from "#domain/run.ts";
import type { StoredResult } from "#domain/run-results.ts";
import { given, valuesOf, type Columns } from "#db/connection/given-rows.ts";
import { grouped } from "#db/connection/group.ts";
import { groupedUnderLease, type Lease } from "./lease.ts";
import type { Database } from "#db/connection/pool.ts";

export interface NewResult extends Omit<StoredResult, "blobKey"> {
  /** null: it is small and completely in `content`. */
  readonly blob: { readonly key: string; readonly sizeBytes: number; readonly sha256: Uint8Array } | null;
}

interface Completion {
  readonly lease: Lease;
  readonly accountId: string;
  readonly responseBytes: number;
  /** Lines of `domain/node-tally.ts`. */
  readonly tally: Buffer | null;
  /** In display order. */
  readonly results: readonly NewResult[];
}

interface ShownResult extends NewResult {
  readonly runId: string;
  readonly accountId: string;
  readonly ordinal: number;
}

const RESULT: Columns<ShownResult> = {
  account_id: ["text", ({ accountId }) => accountId],
  run_id: ["text", ({ runId }) => runId],
  ordinal: ["int", ({ ordinal }) => ordinal],
  key: ["text", ({ key }) => key],
  total_records: ["bigint", ({ totalRecords }) => totalRecords],
  json_bytes: ["bigint", ({ jsonBytes }) => jsonBytes],
  content: ["bytea", ({ content }) => content],
  blob_key: ["text", ({ blob }) => blob?.key ?? null],
  blob_bytes: ["bigint", ({ blob }) => blob?.sizeBytes ?? null],
  blob_sha256: ["bytea", ({ blob }) => blob?.sha256 ?? null],
};

/** Writes the results together with the terminal state: `completed` means that every result exists. False: the lease is lost. */
export const completeRun = groupedUnderLease<Completion>({
  name: "complete_runs",
  locks: "no key update",
  columns: {
    response_bytes: ["bigint", ({ responseBytes }) => responseBytes],
    tally: ["bytea", ({ tally }) => tally],
  },
  write: (next, ofObjects) => `, ended as (
    update run set status = 'completed', progress_step = 'completed', ended_at = greatest(app_now(), started_at),
      lease_owner = null, response_bytes = held.response_bytes, tally = held.tally
    from held where run.id = held.run_id and status = any($${next}) returning run.id
  ), result as (
    select result.* from ${given("result", RESULT, next + 1)} join ended on ended.id = result.run_id
  )${ofObjects}, shown as (
    insert into run_result (account_id, run_id, ordinal, key, total_records, json_bytes, content, blob_key)
    select account_id, run_id, ordinal, key, total_records, json_bytes, content, blob_key from result
  )
  select id as "runId" from ended`,
  values: (calls) => [
    runStatusesBefore("completed"),
    ...valuesOf(
      RESULT,
      calls.flatMap(({ lease: { runId }, accountId, results }) =>
        results.map((result, ordinal) => ({ ...result, runId, accountId, ordinal })),
      ),
    ),
  ],
  rare: {
    isNeeded: ({ results }) => results.some(({ blob }) => blob !== null),
    part: `, stored as (
      insert into blob (key, account_id, run_id, purpose, size_bytes, sha256)
      select blob_key, account_id, run_id, 'result', blob_bytes, blob_sha256 from result where blob_key is not null
    ), noted as (
      insert into account_usage_change (account_id, bytes)
      select account_id, sum(blob_bytes) from result where blob_bytes > 0 group by account_id
    )`,
  },
});

/** In the order of the Blueprint's output nodes. Those of many runs are one statement. */
export const listResults = grouped<string, readonly StoredResult[]>(async (db, runIds) => {
  const rows = await db.query<StoredResult & { runId: string }>({
    name: "list_results",
    text: `select run_id as "runId", key, total_records as "totalRecords", json_bytes as "jsonBytes", content,
        blob_key as "blobKey"
      from run_result where run_id = any($1) order by run_id, ordinal`,
    values: [[...new Set(runIds)]],
  });
  const byRun = Map.groupBy(rows, (row) => row.runId);
  return runIds.map((runId) => byRun.get(runId) ?? []);
});

/** The content of a presigned URL: an object, or the JSON text. Undefined if the run was purged or has no such result. */
export async function findResultContent(
  db: Database,
  runId: string,
  key: string,
): Promise<
  | { readonly content: Buffer; readonly blobKey: null; readonly sizeBytes: null }
  | { readonly content: null; readonly blobKey: string; readonly sizeBytes: number }
  | undefined
> {
  const rows = await db.query<
    | { content: Buffer; blobKey: null; sizeBytes: null }
    | { content: null; blobKey: string; sizeBytes: number }
  >(
    `select run_result.content, blob.key as "blobKey", blob.size_bytes as "sizeBytes"
     from run_result join run on run.id = run_result.run_id left join blob on blob.key = run_result.blob_key
     where run_result.run_id = $1 and run_result.key = $2 and run.purged_at is null`,
    [runId, key],
  );
  return rows[0];
}
