import { groupedUnderLease, leaseValues, RUN_HELD, type Lease } from "./lease.ts";
import type { Columns } from "#db/connection/given-rows.ts";
import type { Database } from "#db/connection/pool.ts";

/** One journal entry: the output of a node with external effects. */
export interface RunStep {
  readonly nodeId: string;
  readonly status: "started" | "done" | "failed";
  readonly outputKind: "records" | "text" | "json" | "file" | "absent" | null;
  /** The complete output if it is small; otherwise it is in the object. Both null: there is no output. */
  readonly output: Buffer | null;
  readonly blobKey: string | null;
  readonly blobBytes: number | null;
  /** Only for a file. */
  readonly filename: Buffer | null;
  readonly contentType: Buffer | null;
  readonly recordsTotal: number | null;
  readonly recordsValid: number | null;
}

export async function listSteps(db: Database, runId: string): Promise<readonly RunStep[]> {
  return await db.query<RunStep>(
    `select node_id as "nodeId", status, output_kind as "outputKind", output, blob_key as "blobKey",
       blob.size_bytes as "blobBytes", filename, content_type as "contentType", records_total as "recordsTotal",
       records_valid as "recordsValid"
     from run_step left join blob on blob.key = run_step.blob_key where run_step.run_id = $1`,
    [runId],
  );
}

/** A step, and the lease of its run. */
interface Place {
  readonly lease: Lease;
  readonly accountId: string;
  readonly nodeId: string;
}

const PLACE: Columns<Place> = {
  account_id: ["text", ({ accountId }) => accountId],
  node_id: ["text", ({ nodeId }) => nodeId],
};

/**
 * Records that the node is about to write or to store its input. False: the lease is lost, so it must not. A read-only node is only
 * recorded at its end: repeating it after a crash is harmless, and recording its start would cost a commit.
 */
export const startStep = groupedUnderLease<Place>({
  name: "start_steps",
  locks: "share",
  columns: PLACE,
  write: () => `
    insert into run_step (account_id, run_id, node_id, status, epoch)
    select account_id, run_id, node_id, 'started', epoch from held
    on conflict (run_id, node_id) do update
      set status = 'started', epoch = excluded.epoch, attempts = run_step.attempts + 1, started_at = app_now(),
        ended_at = null, error_detail = null
      where run_step.status <> 'done'
    returning run_id as "runId"`,
});

export interface FinishedStep extends Place {
  readonly outputKind: "records" | "text" | "json" | "file" | "absent";
  /** At most one of the two. */
  readonly output: Buffer | null;
  readonly blob: { readonly key: string; readonly sizeBytes: number; readonly sha256: Uint8Array } | null;
  /** Only for a file. */
  readonly filename: string | null;
  readonly contentType: string | null;
  readonly recordsTotal: number | null;
  readonly recordsValid: number | null;
  readonly log: string;
  /** Its duration, from which the start of an unrecorded one is derived. */
  readonly tookMs: number;
  /** Lines of `domain/node-tally.ts`: nodes without entries of their own that have ended since the last entry. */
  readonly tally: Buffer | null;
  /** False: the run had lost no lease when it was claimed, so there is no count to reset. */
  readonly hasLost?: boolean;
}

/** The state of an existing entry: this lease has begun it, or an earlier one has not finished it. */
const IS_OPEN = `(run_step.status = 'started' and run_step.epoch = excluded.epoch)
        or (run_step.status <> 'done' and run_step.epoch < excluded.epoch)`;
/** Whether the existing entry belongs to this lease, with its start. */
const IS_BEGUN = `run_step.epoch = excluded.epoch`;
const TIMES = `started_at = case when ${IS_BEGUN} then run_step.started_at else excluded.started_at end,
          attempts = run_step.attempts + (not ${IS_BEGUN})::int, epoch = excluded.epoch, status = excluded.status,
          ended_at = excluded.ended_at,
          tally = coalesce(run_step.tally || excluded.tally, excluded.tally, run_step.tally)`;

const bytes = (text: string | null): Buffer | null => (text === null ? null : Buffer.from(text, "utf8"));

/** Stores the node's output. False: the lease is lost, and the output is discarded. */
export const finishStep = groupedUnderLease<FinishedStep>({
  name: "finish_steps",
  locks: "share",
  columns: {
    ...PLACE,
    output_kind: ["text", ({ outputKind }) => outputKind],
    output: ["bytea", ({ output }) => output],
    blob_key: ["text", ({ blob }) => blob?.key ?? null],
    blob_bytes: ["bigint", ({ blob }) => blob?.sizeBytes ?? null],
    blob_sha256: ["bytea", ({ blob }) => blob?.sha256 ?? null],
    records_total: ["bigint", ({ recordsTotal }) => recordsTotal],
    records_valid: ["bigint", ({ recordsValid }) => recordsValid],
    log: ["bytea", ({ log }) => bytes(log)],
    filename: ["bytea", ({ filename }) => bytes(filename)],
    content_type: ["bytea", ({ contentType }) => bytes(contentType)],
    took_ms: ["float8", ({ tookMs }) => tookMs],
    tally: ["bytea", ({ tally }) => tally],
  },
  write: (_next, rare) => `, done as (
    insert into run_step (account_id, run_id, node_id, status, epoch, started_at, ended_at, output_kind, output, blob_key,
      records_total, records_valid, log, filename, content_type, tally)
    select account_id, run_id, node_id, 'done', epoch, app_now() - took_ms * interval '1 ms', app_now(), output_kind, output,
      blob_key, records_total, records_valid, log, filename, content_type, tally
    from held
    on conflict (run_id, node_id) do update
      set ${TIMES}, error_detail = null, output_kind = excluded.output_kind, output = excluded.output,
          blob_key = excluded.blob_key, records_total = excluded.records_total, records_valid = excluded.records_valid,
          log = excluded.log, filename = excluded.filename, content_type = excluded.content_type
      where ${IS_OPEN}
    returning run_step.run_id
  )${rare}
  select run_id as "runId" from done`,
  rare: {
    isNeeded: ({ blob, hasLost = true }) => blob !== null || hasLost,
    // A run with progress is not poison: only leases lost without a finished step count (docs/decisions/0009).
    part: `, stored as (
      insert into blob (key, account_id, run_id, purpose, size_bytes, sha256)
      select blob_key, account_id, run_id, 'step', blob_bytes, blob_sha256 from held join done using (run_id)
      where blob_key is not null
    ), noted as (
      insert into account_usage_change (account_id, bytes)
      select account_id, sum(blob_bytes) from held join done using (run_id) where blob_bytes > 0 group by account_id
    ), progressed as (
      update run set lost_leases = 0 from done where run.id = done.run_id and lost_leases > 0
    )`,
  },
});

/** `detail` is redacted. */
export const failStep = groupedUnderLease<
  Place & {
    readonly detail: string;
    readonly tookMs: number;
    readonly log?: string;
    readonly tally?: Buffer | null;
  }
>({
  name: "fail_steps",
  locks: "share",
  columns: {
    ...PLACE,
    detail: ["text", ({ detail }) => detail],
    took_ms: ["float8", ({ tookMs }) => tookMs],
    log: ["bytea", ({ log }) => bytes(log ?? null)],
    tally: ["bytea", ({ tally }) => tally ?? null],
  },
  write: () => `
    insert into run_step (account_id, run_id, node_id, status, epoch, started_at, ended_at, error_detail, log, tally)
    select account_id, run_id, node_id, 'failed', epoch, app_now() - took_ms * interval '1 ms', app_now(), detail, log, tally
    from held
    on conflict (run_id, node_id) do update
      set ${TIMES}, error_detail = excluded.error_detail, log = coalesce(excluded.log, run_step.log) where ${IS_OPEN}
    returning run_id as "runId"`,
});

/** Stores the redacted `log` of a step that this lease has begun. Nothing is written if the lease is lost. */
export async function noteStep(db: Database, held: Lease, nodeId: string, log: string): Promise<void> {
  await db.query(
    `update run_step set log = $5
     where run_id = $1 and node_id = $4 and epoch = $3 and status = 'started' and ${RUN_HELD}`,
    [...leaseValues(held), nodeId, Buffer.from(log, "utf8")],
  );
}

/** The object with the records that a node processes one by one; null: not stored yet. */
export async function findStepSource(db: Database, runId: string, nodeId: string): Promise<string | null> {
  const rows = await db.query<{ key: string | null }>(
    `select source_blob_key as key from run_step where run_id = $1 and node_id = $2`,
    [runId, nodeId],
  );
  return rows[0]?.key ?? null;
}

/** An object of a run. */
interface StepObject {
  readonly accountId: string;
  readonly blob: { readonly key: string; readonly sizeBytes: number; readonly sha256: Uint8Array };
}

/** Adds an object that only a step's log names. False: the lease is lost, and the object is an orphan. */
export async function saveStepObject(db: Database, held: Lease, object: StepObject): Promise<boolean> {
  return await db.transaction(async (tx) => await insertObject(tx, held, object));
}

async function insertObject(tx: Database, held: Lease, { accountId, blob }: StepObject): Promise<boolean> {
  const isHeld = await tx.query(`select 1 where ${RUN_HELD}`, leaseValues(held));
  if (isHeld.length === 0) return false;
  await tx.query(
    `with noted as (
       insert into account_usage_change (account_id, bytes) select $2, $4::bigint where $4::bigint > 0
     )
     insert into blob (key, account_id, run_id, purpose, size_bytes, sha256) values ($1, $2, $3, 'step', $4::bigint, $5)`,
    [blob.key, accountId, held.runId, blob.sizeBytes, blob.sha256],
  );
  return true;
}

interface StepSource extends StepObject {
  readonly nodeId: string;
  /** Lines of `domain/node-tally.ts`. */
  readonly tally: Buffer | null;
}

/** False: the lease is lost, and the object is an orphan. */
export async function saveStepSource(
  db: Database,
  held: Lease,
  { nodeId, tally, ...object }: StepSource,
): Promise<boolean> {
  return await db.transaction(async (tx) => {
    if (!(await insertObject(tx, held, object))) return false;
    const rows = await tx.query(
      `update run_step set source_blob_key = $4, tally = coalesce(tally || $5::bytea, $5, tally)
       where run_id = $1 and node_id = $2 and epoch = $3 and status = 'started' returning 1`,
      [held.runId, nodeId, held.epoch, object.blob.key, tally],
    );
    return rows.length > 0;
  });
}
