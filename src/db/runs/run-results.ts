import { runStatusesBefore } from "#domain/run.ts";
import type { StoredResult } from "#domain/run-results.ts";
import { grouped } from "#db/connection/group.ts";
import { groupedUnderLease, underLease, type Lease } from "./lease.ts";
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

/** Writes the results together with the terminal state: `completed` means that every result exists. False: the lease is lost. */
export const completeRun = groupedUnderLease<Completion>(
  underLease(
    "complete_runs",
    "no key update",
    (held) => `with given as (
    select * from unnest($1::text[], $2::text[], $3::int[], $4::bigint[], $5::bytea[])
      as given (run_id, owner, epoch, response_bytes, tally)
  ), ${held}, ended as (
    update run set status = 'completed', progress_step = 'completed', ended_at = greatest(app_now(), started_at),
      lease_owner = null, response_bytes = held.response_bytes, tally = held.tally
    from held where run.id = held.run_id and status = any($6) returning run.id
  ), result as (
    select result.* from unnest($7::text[], $8::text[], $9::int[], $10::text[], $11::bigint[], $12::bigint[], $13::bytea[],
        $14::text[], $15::bigint[], $16::bytea[])
      as result (account_id, run_id, ordinal, key, total_records, json_bytes, content, blob_key, blob_bytes, blob_sha256)
    join ended on ended.id = result.run_id
  ), stored as (
    insert into blob (key, account_id, run_id, purpose, size_bytes, sha256)
    select blob_key, account_id, run_id, 'result', blob_bytes, blob_sha256 from result where blob_key is not null
  ), noted as (
    insert into account_usage_change (account_id, bytes)
    select account_id, sum(blob_bytes) from result where blob_bytes > 0 group by account_id
  ), shown as (
    insert into run_result (account_id, run_id, ordinal, key, total_records, json_bytes, content, blob_key)
    select account_id, run_id, ordinal, key, total_records, json_bytes, content, blob_key from result
  )
  select id as "runId" from ended`,
  ),
  (calls) => [
    calls.map(({ responseBytes }) => responseBytes),
    calls.map(({ tally }) => tally),
    runStatusesBefore("completed"),
    ...resultColumns(calls),
  ],
);

function resultColumns(calls: readonly Completion[]): readonly (readonly unknown[])[] {
  const all = calls.flatMap(({ lease, accountId, results }) =>
    results.map((result, ordinal) => ({ ...result, runId: lease.runId, accountId, ordinal })),
  );
  return [
    all.map(({ accountId }) => accountId),
    all.map(({ runId }) => runId),
    all.map(({ ordinal }) => ordinal),
    all.map(({ key }) => key),
    all.map(({ totalRecords }) => totalRecords),
    all.map(({ jsonBytes }) => jsonBytes),
    all.map(({ content }) => content),
    all.map(({ blob }) => blob?.key ?? null),
    all.map(({ blob }) => blob?.sizeBytes ?? null),
    all.map(({ blob }) => blob?.sha256 ?? null),
  ];
}

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
