import { recordAudit } from "#db/audit-entries.ts";
import { deleteCredential as deleteRow } from "#db/credentials/credentials.ts";
import { isConnectionLost } from "#db/connection/database-errors.ts";
import type { Database } from "#db/connection/pool.ts";
import { findAccountOfCredential } from "#db/operators/operator-credentials.ts";
import { failIdleRunsOf } from "#db/runs/runs.ts";
import { pauseSchedulesOf } from "#db/schedules/schedule-fires.ts";
import type { AuditActor } from "#domain/audit.ts";
import { isId } from "#domain/ids.ts";
import { notFound } from "#domain/problem.ts";
import { failpoint } from "#lib/failpoint.ts";
import { describeError } from "#lib/log.ts";
import type { Answer } from "#actions/replay-or-run.ts";
import type { Needs } from "#actions/services.ts";
import type { Tombstone } from "./tombstones.ts";

type Deleting = Needs<"db" | "signing" | "log" | "tombstones">;

/**
 * `DELETE /credentials/{credentialId}` of both APIs, inside the caller's transaction: the sealed secret, its data key and its cached
 * logins are deleted with it; queued runs that need it fail, running ones stop at their next node boundary, and schedules with it pause. It always
 * succeeds: a user's disconnect can't be blocked (docs/decisions/0024). Throws Problem 404.
 */
export async function deleteCredential(
  services: Needs<"signing">,
  tx: Database,
  by: { readonly accountId: string; readonly actor: AuditActor },
  id: string,
  tombstone: Tombstone,
): Promise<{ readonly answer: Answer; readonly failedRunIds: readonly string[] }> {
  const { accountId, actor } = by;
  if (!isId("credential", id)) throw notFound("Credential");
  // First, because a schedule's row is also locked before its credentials when it begins a run.
  const scheduleIds = await pauseSchedulesOf(tx, accountId, id);
  if (!(await deleteRow(tx, accountId, id))) throw notFound("Credential");
  const failedRunIds = await failIdleRunsOf(tx, id);
  await failpoint("credential.after_delete");
  for (const scheduleId of scheduleIds)
    await recordAudit(tx, services.signing.audit, {
      accountId,
      actor,
      action: "schedule.pause",
      subjectId: scheduleId,
      detail: { reason: "credential_deleted" },
    });
  const receipt = await recordAudit(tx, services.signing.audit, {
    accountId,
    actor,
    action: "credential.delete",
    subjectId: id,
  });
  // Done last, so that as little as possible can fail afterwards.
  await tombstone.write(accountId, receipt);
  await failpoint("credential.after_tombstone");
  return { answer: { status: 204, body: "" }, failedRunIds };
}

/** Deletes a credential of any account, for operators. Returns the runs that failed because of it. Throws Problem 404. */
export async function deleteCredentialAs(
  services: Deleting,
  actor: AuditActor,
  id: string,
): Promise<readonly string[]> {
  const accountId = isId("credential", id) ? await findAccountOfCredential(services.db, id) : undefined;
  if (accountId === undefined) throw notFound("Credential");
  const tombstone = services.tombstones.of(id);
  const { failedRunIds } = await services.db
    .transaction(async (tx) => await deleteCredential(services, tx, { accountId, actor }, id, tombstone))
    .catch(async (error: unknown) => {
      await withdrawTombstone(services, tombstone, error);
      throw error;
    });
  return failedRunIds;
}

/**
 * Called after a failed delete transaction. If the connection broke, it may have committed after all: then the line is kept.
 * Errors here are only logged: the caller gets the first error.
 */
export async function withdrawTombstone(
  services: Needs<"db" | "log">,
  tombstone: Tombstone,
  error: unknown,
): Promise<void> {
  if (isConnectionLost(error)) return;
  try {
    await tombstone.withdraw(services.db);
  } catch (failure) {
    services.log.warn(describeError(failure), "the tombstone of a failed delete could not be removed");
  }
}
