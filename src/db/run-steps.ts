import { leaseValues, RUN_HELD, type Lease } from "./lease.ts";
import type { Database } from "./pool.ts";

/** One journal entry: what a node that touches the outside has given. */
export interface RunStep {
  readonly nodeId: string;
  readonly status: "started" | "done" | "failed";
  readonly outputKind: "records" | "text" | "json" | "file" | "absent" | null;
  readonly blobKey: string | null;
  readonly recordsTotal: number | null;
  readonly recordsValid: number | null;
}

export async function listSteps(db: Database, runId: string): Promise<readonly RunStep[]> {
  return await db.query<RunStep>(
    `select node_id as "nodeId", status, output_kind as "outputKind", blob_key as "blobKey",
       records_total as "recordsTotal", records_valid as "recordsValid"
     from run_step where run_id = $1`,
    [runId],
  );
}

/** The node is about to touch the outside. False: the lease is lost, and it must not. */
export async function startStep(
  db: Database,
  held: Lease,
  accountId: string,
  nodeId: string,
): Promise<boolean> {
  const rows = await db.query(
    `insert into run_step (account_id, run_id, node_id, status, epoch)
     select $4, $1, $5, 'started', $3 where ${RUN_HELD}
     on conflict (run_id, node_id) do update
       set status = 'started', epoch = excluded.epoch, attempts = run_step.attempts + 1, started_at = app_now(),
         ended_at = null, error_detail = null
       where run_step.status <> 'done'
     returning 1`,
    [...leaseValues(held), accountId, nodeId],
  );
  return rows.length > 0;
}

export interface FinishedStep {
  readonly nodeId: string;
  readonly outputKind: "records" | "text" | "json" | "file" | "absent";
  readonly blob: { readonly key: string; readonly sizeBytes: number; readonly sha256: Uint8Array } | null;
  readonly recordsTotal: number | null;
  readonly recordsValid: number | null;
  readonly log: string;
}

/** The node's output is the run's from here on. False: the lease is lost, and the output is nobody's. */
export async function finishStep(
  db: Database,
  held: Lease,
  accountId: string,
  step: FinishedStep,
): Promise<boolean> {
  return await db.transaction(async (tx) => {
    const held_ = await tx.query(`select 1 where ${RUN_HELD}`, leaseValues(held));
    if (held_.length === 0) return false;
    if (step.blob) {
      await tx.query(
        `insert into blob (key, account_id, run_id, purpose, size_bytes, sha256) values ($1, $2, $3, 'step', $4, $5)`,
        [step.blob.key, accountId, held.runId, step.blob.sizeBytes, step.blob.sha256],
      );
    }
    const rows = await tx.query(
      `update run_step set status = 'done', ended_at = app_now(), output_kind = $4, blob_key = $5, records_total = $6,
         records_valid = $7, log = $8
       where run_id = $1 and node_id = $2 and epoch = $3 and status = 'started' returning 1`,
      [
        held.runId,
        step.nodeId,
        held.epoch,
        step.outputKind,
        step.blob?.key ?? null,
        step.recordsTotal,
        step.recordsValid,
        Buffer.from(step.log),
      ],
    );
    // A run that gets somewhere is no poison: only leases lost without a finished step count (design, page 6, 6.1).
    await tx.query(`update run set lost_leases = 0 where id = $1 and lost_leases > 0`, [held.runId]);
    return rows.length > 0;
  });
}

/** `detail` is redacted. */
export async function failStep(db: Database, held: Lease, nodeId: string, detail: string): Promise<void> {
  await db.query(
    `update run_step set status = 'failed', ended_at = app_now(), error_detail = $5
     where run_id = $1 and node_id = $4 and epoch = $3 and status = 'started' and ${RUN_HELD}`,
    [...leaseValues(held), nodeId, detail],
  );
}

/** The object with the records that a node works through one by one; null before they were kept. */
export async function findStepSource(db: Database, runId: string, nodeId: string): Promise<string | null> {
  const rows = await db.query<{ key: string | null }>(
    `select source_blob_key as key from run_step where run_id = $1 and node_id = $2`,
    [runId, nodeId],
  );
  return rows[0]?.key ?? null;
}

/** False: the lease is lost, and the object is nobody's. */
export async function saveStepSource(
  db: Database,
  held: Lease,
  accountId: string,
  nodeId: string,
  blob: { readonly key: string; readonly sizeBytes: number; readonly sha256: Uint8Array },
): Promise<boolean> {
  return await db.transaction(async (tx) => {
    const isHeld = await tx.query(`select 1 where ${RUN_HELD}`, leaseValues(held));
    if (isHeld.length === 0) return false;
    await tx.query(
      `insert into blob (key, account_id, run_id, purpose, size_bytes, sha256) values ($1, $2, $3, 'step', $4, $5)`,
      [blob.key, accountId, held.runId, blob.sizeBytes, blob.sha256],
    );
    const rows = await tx.query(
      `update run_step set source_blob_key = $4
       where run_id = $1 and node_id = $2 and epoch = $3 and status = 'started' returning 1`,
      [held.runId, nodeId, held.epoch, blob.key],
    );
    return rows.length > 0;
  });
}
