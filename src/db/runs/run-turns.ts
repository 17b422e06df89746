import { HELD, leaseValues, RUN_HELD, type Lease } from "./lease.ts";
import type { Database } from "#db/connection/pool.ts";
import type { RunStep } from "./run-steps.ts";

/** The output of a loop's step for one record. `nodeId` is `<loop>.<step>`. */
export interface StoredTurn extends Pick<
  RunStep,
  "nodeId" | "output" | "blobKey" | "blobBytes" | "filename" | "contentType"
> {
  readonly ordinal: number;
  readonly outputKind: NonNullable<RunStep["outputKind"]>;
}

/** The outputs of these steps for the records with these ordinals, as far as they are done. */
export async function listTurns(
  db: Database,
  runId: string,
  nodeIds: readonly string[],
  first: number,
  count: number,
): Promise<readonly StoredTurn[]> {
  return await db.query<StoredTurn>({
    name: "list_turns",
    text: `select node_id as "nodeId", ordinal, output_kind as "outputKind", output, blob_key as "blobKey",
        blob.size_bytes::float8 as "blobBytes", filename, content_type as "contentType"
      from run_turn left join blob on blob.key = run_turn.blob_key
      where run_turn.run_id = $1 and node_id = any($2) and ordinal >= $3 and ordinal < $3 + $4::int`,
    values: [runId, nodeIds, first, count],
  });
}

export interface FinishedTurn {
  readonly nodeId: string;
  readonly ordinal: number;
  readonly outputKind: StoredTurn["outputKind"];
  /** At most one of the two. */
  readonly output: Buffer | null;
  readonly blob: { readonly key: string; readonly sizeBytes: number; readonly sha256: Uint8Array } | null;
  /** Only for a file. */
  readonly filename: string | null;
  readonly contentType: string | null;
}

const bytes = (text: string | null): Buffer | null => (text === null ? null : Buffer.from(text, "utf8"));

/**
 * Stores a step's output for a record, which counts as progress (docs/decisions/0009). False: the lease is lost, and the output is
 * discarded.
 */
export async function storeIteration(
  db: Database,
  lease: Lease,
  accountId: string,
  turn: FinishedTurn,
): Promise<boolean> {
  const { blob } = turn;
  const rows = await db.query({
    name: "keep_turn",
    // The run's row first, as in the end of a write: two turns of one run never wait for each other.
    text: `with lost as (
        select id from run where id = $1 and ${HELD} and lost_leases > 0 for no key update
      ), kept as (
        insert into run_turn (account_id, run_id, node_id, ordinal, epoch, output_kind, output, blob_key, filename, content_type)
        select $4, $1, $5, $6, $3, $7, $8, $9, $10, $11 where ${RUN_HELD} and (select count(*) from lost) >= 0
        on conflict do nothing returning account_id
      ), stored as (
        insert into blob (key, account_id, run_id, purpose, size_bytes, sha256)
        select $9, account_id, $1, 'step', $12::bigint, $13 from kept where $9::text is not null
      ), noted as (
        insert into account_usage_change (account_id, bytes) select account_id, $12::bigint from kept where $12::bigint > 0
      ), progressed as (
        update run set lost_leases = 0 from lost where run.id = lost.id and exists (select from kept)
      )
      select 1 from kept`,
    values: [
      ...leaseValues(lease),
      accountId,
      turn.nodeId,
      turn.ordinal,
      turn.outputKind,
      turn.output,
      blob?.key ?? null,
      bytes(turn.filename),
      bytes(turn.contentType),
      blob?.sizeBytes ?? null,
      blob?.sha256 ?? null,
    ],
  });
  return rows.length > 0;
}

/** Number of records that a loop processes, for the operator. */
export async function noteTurns(db: Database, lease: Lease, nodeId: string, total: number): Promise<void> {
  await db.query({
    name: "note_turns",
    text: `update run_step set turns_total = $4 where run_id = $1 and node_id = $5 and epoch = $3 and ${RUN_HELD}`,
    values: [...leaseValues(lease), total, nodeId],
  });
}
