import { recordAudit } from "#db/audit-entries.ts";
import type { Database } from "#db/connection/pool.ts";
import { sendRunChanges } from "#db/runs/run-notifier.ts";
import { cancelRun as cancelRow, findRun, findRunOfAnyAccount, type VisibleRun } from "#db/runs/runs.ts";
import type { AuditActor } from "#domain/audit.ts";
import { readRunReference } from "#domain/ids.ts";
import { Problem } from "#domain/problem.ts";
import { projectRun, type RunStatus } from "#domain/run.ts";
import { must } from "#lib/assert.ts";
import { failpoint } from "#lib/failpoint.ts";
import { describeError } from "#lib/log.ts";
import type { Signing } from "#lib/signing.ts";
import type { Answer } from "#actions/replay-or-run.ts";
import type { Caller, Needs } from "#actions/services.ts";

/**
 * `POST /blueprint-runs/{runId}/cancel`, inside the caller's transaction. This and the worker's last write are UPDATEs of the
 * same row that both require a run that is not terminal: one of them wins. Throws Problem 409.
 */
export async function cancelRun(
  services: Needs<"signing">,
  tx: Database,
  caller: Caller,
  run: VisibleRun,
): Promise<Answer> {
  const cancelled = await cancelRow(tx, run.accountId, run.id);
  if (!cancelled) {
    const now = must(await findRun(tx, run.accountId, { id: run.id }), "the run");
    throw new Problem("conflict", `The run is already ${now.status}; it can't be cancelled any more.`);
  }
  await recordAudit(tx, services.signing.audit, {
    accountId: run.accountId,
    actor: { kind: "api_key", id: caller.keyId },
    action: "run.cancel",
    subjectId: run.id,
    runId: run.id,
  });
  await failpoint("run.after_cancel");
  return { status: 200, body: JSON.stringify(projectRun(cancelled)) };
}

/**
 * Call after the COMMIT, not awaited: the run's worker stops, watchers are notified, and the account's next run may start. Removes result
 * objects of a lost worker; a live one removes its own.
 */
export function followCancel(
  services: Needs<"db" | "news" | "blobs" | "log">,
  run: Pick<VisibleRun, "id" | "accountId">,
): void {
  services.news.notifyStop([run.id]);
  services.news.announce([run.id]);
  services.news.notifyRunnable([run.accountId]);
  services.blobs.removeAll(`results/${run.accountId}/${run.id}/`).catch((error: unknown) => {
    services.log.warn(
      { runId: run.id, ...describeError(error) },
      "removing the results of a cancelled run failed",
    );
  });
}

/** For operators, of any account. From the command line, the service's processes are notified and do the rest. */
export async function cancelRunAsOperator(
  db: Database,
  signing: Signing,
  reference: string,
  actor: AuditActor = { kind: "cli" },
): Promise<"cancelled" | "unknown" | { readonly was: RunStatus }> {
  const parsed = readRunReference(reference);
  const run = parsed && (await findRunOfAnyAccount(db, parsed));
  if (!run) return "unknown";
  const isCancelled = await db.transaction(async (tx) => {
    if (!(await cancelRow(tx, run.accountId, run.id))) return false;
    await recordAudit(tx, signing.audit, {
      accountId: run.accountId,
      actor,
      action: "run.cancel",
      subjectId: run.id,
      runId: run.id,
    });
    return true;
  });
  if (isCancelled) {
    await sendRunChanges(db, "cli", { stop: [run.id], waiting: [run.accountId], changed: [run.id] });
    return "cancelled";
  }
  return { was: must(await findRunOfAnyAccount(db, { id: run.id }), "the run").status };
}
