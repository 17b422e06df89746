import { runStatusesBefore, type RunErrorKind, type RunProjection, type RunStatus } from "#domain/run.ts";
import { grouped, inOrder } from "#db/connection/group.ts";
import { groupedUnderLease, HELD, leaseValues, type Lease } from "./lease.ts";
import type { Database } from "#db/connection/pool.ts";

/** A run for the public API, with the data that decides whether a key may see it. */
export interface VisibleRun extends RunProjection {
  readonly accountId: string;
  readonly blueprintKey: string;
  readonly metadata: Buffer;
  readonly responseBytes: number | null;
  readonly purgedAt: Date | null;
  /** Increases with every change of `status` and `progressStep`, by a database trigger. */
  readonly sequence: number;
}

const VISIBLE_COLUMNS = `run.id, run.run_key as "runKey", run.account_id as "accountId", run.status,
  run.progress_step as "progressStep", run.created_at as "createdAt", run.started_at as "startedAt",
  run.ended_at as "endedAt", run.blueprint_id as "blueprintId",
  blueprint.key as "blueprintKey", run.metadata, run.response_bytes as "responseBytes", run.purged_at as "purgedAt",
  run.sequence`;

interface RunCall {
  readonly accountId: string;
  readonly reference: string;
}

const findRunsBy = (column: "id" | "run_key", type: "text" | "uuid") =>
  grouped<RunCall, VisibleRun | undefined>(async (db, calls) => {
    const rows = await db.query<VisibleRun & { at: number }>({
      name: `find_runs_by_${column}`,
      text: `select given.at::int, ${VISIBLE_COLUMNS}
        from unnest($1::text[], $2::${type}[]) with ordinality as given(account_id, reference, at)
          join run on run.account_id = given.account_id and run.${column} = given.reference
          join blueprint on blueprint.id = run.blueprint_id`,
      values: [calls.map((call) => call.accountId), calls.map((call) => call.reference)],
    });
    return inOrder(rows, calls);
  });

const findRunById = findRunsBy("id", "text");
const findRunByKey = findRunsBy("run_key", "uuid");

/** By `run_…` id or by run key. Spec, Identifier prefixes. Many at once are one statement. */
export async function findRun(
  db: Database,
  accountId: string,
  reference: { readonly id: string } | { readonly runKey: string },
): Promise<VisibleRun | undefined> {
  if ("id" in reference) return await findRunById(db, { accountId, reference: reference.id });
  return await findRunByKey(db, { accountId, reference: reference.runKey });
}

/** A run of any account, for operators. */
export async function findRunOfAnyAccount(
  db: Database,
  reference: { readonly id: string } | { readonly runKey: string },
): Promise<{ readonly id: string; readonly accountId: string; readonly status: RunStatus } | undefined> {
  const byId = "id" in reference;
  const rows = await db.query<{ id: string; accountId: string; status: RunStatus }>(
    `select id, account_id as "accountId", status from run where ${byId ? "id" : "run_key"} = $1`,
    [byId ? reference.id : reference.runKey],
  );
  return rows[0];
}

/** The watched runs that have changed since the given sequence. */
export async function listChangedRuns(
  db: Database,
  watched: ReadonlyMap<string, number>,
): Promise<readonly VisibleRun[]> {
  return await db.query<VisibleRun>({
    name: "list_changed_runs",
    text: `select ${VISIBLE_COLUMNS} from unnest($1::text[], $2::int[]) as watched (id, sequence)
      join run on run.id = watched.id and run.sequence > watched.sequence
      join blueprint on blueprint.id = run.blueprint_id`,
    values: [[...watched.keys()], [...watched.values()]],
  });
}

/**
 * Cancels a run that is not terminal, regardless of its worker: that worker's writes are fenced from then on. Undefined: it is
 * terminal or does not exist.
 */
export async function cancelRun(
  db: Database,
  accountId: string,
  runId: string,
): Promise<VisibleRun | undefined> {
  const rows = await db.query<VisibleRun>(
    `update run set status = 'cancelled', progress_step = 'cancelled', ended_at = greatest(app_now(), run.started_at),
       lease_owner = null
     from run seen left join blueprint on blueprint.id = seen.blueprint_id
     where run.id = $2 and run.account_id = $1 and run.status = any($3) and seen.id = run.id
     returning ${VISIBLE_COLUMNS}`,
    [accountId, runId, runStatusesBefore("cancelled")],
  );
  return rows[0];
}

export interface RunCredential {
  readonly slot: string;
  readonly credentialId: string;
  readonly strategyId: string;
  readonly strategyVersion: number;
}

export interface ClaimedRun {
  readonly id: string;
  readonly runKey: string;
  readonly accountId: string;
  readonly accountSlug: string;
  /** null: a test login. */
  readonly blueprintId: string | null;
  readonly blueprintVersion: number | null;
  readonly name: Buffer | null;
  readonly metadata: Buffer;
  /** `running` as soon as it is claimed, unless it logs in first. */
  readonly status: "queued" | "running";
  readonly progressStep: string;
  /** 1: the first claim. */
  readonly epoch: number;
  readonly lostLeases: number;
  readonly remainingMs: number;
  /** The time of this claim, in milliseconds since 1970. */
  readonly claimedAtMs: number;
  /** The throttle for which it was called and whose first slot it has not used yet. null: none. */
  readonly line: string | null;
  readonly hasInputs: boolean;
  readonly credentials: readonly RunCredential[];
}

const LOGS_IN = `exists (select from run_credential where run_credential.run_id = run.id)`;

/**
 * Part of an UPDATE of run: leases it to `$2`, starts its time, and sets its status: `authenticating` if it has credentials,
 * otherwise `running`; a run that was `running` before keeps its step (docs/decisions/0008).
 */
export const CLAIM = `lease_owner = $2, lease_epoch = run.lease_epoch + 1,
  claimed_at = coalesce(run.claimed_at, app_now()),
  deadline_at = coalesce(run.deadline_at, app_now() + run.timeout_ms * interval '1 ms'),
  status = case when run.status = any($3) and not ${LOGS_IN} then 'running' else run.status end,
  started_at = case when run.status = any($3) and not ${LOGS_IN} then coalesce(run.started_at, app_now())
    else run.started_at end,
  progress_step = case when run.status <> all($3) then run.progress_step when ${LOGS_IN} then 'authenticating'
    else 'running' end`;

/** `$1` to `$3`. */
export const claimValues = (runIds: readonly string[], owner: string): readonly unknown[] => [
  runIds,
  owner,
  runStatusesBefore("running"),
];

/** Columns of the run and its account. */
export const CLAIMED_COLUMNS = `run.id, run.run_key as "runKey", run.account_id as "accountId",
  account.slug as "accountSlug", run.blueprint_id as "blueprintId", run.blueprint_version as "blueprintVersion", run.name,
  run.metadata, run.status, run.progress_step as "progressStep", run.lease_epoch as "epoch",
  run.lost_leases as "lostLeases", run.line, (extract(epoch from run.deadline_at - app_now()) * 1000)::float8 as "remainingMs",
  (extract(epoch from app_now()) * 1000)::float8 as "claimedAtMs",
  exists (select from run_input where run_input.run_id = run.id) as "hasInputs"`;

/** Columns of the row `claimed`. */
export const CREDENTIALS = `(select coalesce(json_agg(json_build_object('slot', slot, 'credentialId', credential_id,
    'strategyId', strategy_id, 'strategyVersion', strategy_version) order by slot), '[]')
  from run_credential where run_id = claimed.id)`;

/** Shows a progress step within the current status. False: the lease is lost. */
export const moveStep = groupedUnderLease<{ readonly lease: Lease; readonly step: string }>({
  name: "move_steps",
  locks: "no key update",
  columns: { step: ["text", ({ step }) => step] },
  write: () => `
    update run set progress_step = held.step from held where run.id = held.run_id returning run.id as "runId"`,
});

/** `queued` → `running`; a run that is running already keeps its step and its `started_at`. False: the lease is lost. */
export const startRun = groupedUnderLease<{ readonly lease: Lease }>({
  name: "start_runs",
  locks: "no key update",
  write: (next) => `
    update run set status = 'running', started_at = coalesce(started_at, app_now()),
      progress_step = case when status = 'running' then progress_step else 'running' end
    from held where run.id = held.run_id and status = any($${next}) returning run.id as "runId"`,
  values: () => [[...runStatusesBefore("running"), "running"]],
});

/** `detail` is the redacted message for operators; the public message depends on `kind`. False: the lease is lost. */
export const failRun = groupedUnderLease<{
  readonly lease: Lease;
  readonly kind: RunErrorKind;
  readonly detail: string;
  /** Lines of `domain/node-tally.ts`. */
  readonly tally: Buffer | null;
}>({
  name: "fail_runs",
  locks: "no key update",
  columns: {
    kind: ["text", ({ kind }) => kind],
    detail: ["text", ({ detail }) => detail],
    tally: ["bytea", ({ tally }) => tally],
  },
  write: (next) => `
    update run set status = 'failed', progress_step = 'failed', ended_at = greatest(app_now(), started_at),
      lease_owner = null, error_kind = held.kind, error_detail = held.detail, tally = held.tally
    from held where run.id = held.run_id and status = any($${next}) returning run.id as "runId"`,
  values: () => [runStatusesBefore("failed")],
});

/** Parks the run for a review (docs/blueprints.md#review): it counts as progress, holds nothing, and its timeout is paused. */
export async function parkRun(db: Database, held: Lease): Promise<boolean> {
  const rows = await db.query(
    `update run set progress_step = 'awaiting_review', parked_at = app_now(), lease_owner = null, admitted_at = null,
       resumed_at = null, line = null, lost_leases = 0
     where id = $1 and ${HELD} and status = 'running' returning 1`,
    leaseValues(held),
  );
  return rows.length > 0;
}

/** After a decision: the run is admitted again, before all that never began. False: it is not parked. */
export async function resumeRun(db: Database, runId: string): Promise<boolean> {
  const rows = await db.query(
    `update run set parked_at = null, resumed_at = app_now(), progress_step = 'running',
       deadline_at = deadline_at + (app_now() - parked_at)
     where id = $1 and parked_at is not null and ended_at is null returning 1`,
    [runId],
  );
  return rows.length > 0;
}

/** Fails a parked run. False: it is not parked. */
export async function failParkedRun(
  db: Database,
  runId: string,
  kind: RunErrorKind,
  detail: string,
): Promise<boolean> {
  const rows = await db.query(
    `update run set status = 'failed', progress_step = 'failed', ended_at = greatest(app_now(), started_at),
       error_kind = $2, error_detail = $3
     where id = $1 and parked_at is not null and status = any($4) returning 1`,
    [runId, kind, detail, runStatusesBefore("failed")],
  );
  return rows.length > 0;
}

/** Hands the run back: the next worker continues from the journal, immediately or after `delayMs`. */
export async function releaseRun(db: Database, held: Lease, delayMs = 0): Promise<boolean> {
  const rows = await db.query(
    `update run set lease_owner = null, not_before = app_now() + nullif($4::float8, 0) * interval '1 ms'
     where id = $1 and ${HELD} returning 1`,
    [...leaseValues(held), delayMs],
  );
  return rows.length > 0;
}

export interface RunInput {
  readonly refKey: string;
  readonly kind: "text" | "json" | "file";
  readonly content: Buffer | null;
  readonly blobKey: string | null;
  readonly filename: Buffer | null;
  readonly contentType: Buffer | null;
  readonly sizeBytes: number | null;
}

export async function listRunInputs(db: Database, runId: string): Promise<readonly RunInput[]> {
  return await db.query<RunInput>(
    `select ref_key as "refKey", kind, content, blob_key as "blobKey", filename, content_type as "contentType",
       blob.size_bytes as "sizeBytes"
     from run_input left join blob on blob.key = run_input.blob_key where run_input.run_id = $1`,
    [runId],
  );
}

/** Fails queued runs without a worker that need a deleted credential; returns them, each with one of these. docs/decisions/0024. */
export async function failIdleRunsOf(
  db: Database,
  credentialIds: readonly string[],
): Promise<readonly { readonly id: string; readonly credentialId: string }[]> {
  return await db.query<{ id: string; credentialId: string }>(
    `update run set status = 'failed', progress_step = 'failed', ended_at = greatest(app_now(), started_at), error_kind = 'credential_deleted',
       error_detail = 'The credential was deleted before the run started.'
     where ended_at is null and lease_owner is null and status = any($2)
       and id in (select run_id from run_credential where credential_id = any($1))
     returning id, (select min(credential_id) from run_credential where run_id = run.id and credential_id = any($1)) as "credentialId"`,
    [credentialIds, runStatusesBefore("failed")],
  );
}
