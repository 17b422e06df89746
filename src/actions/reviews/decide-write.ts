import { recordAudit } from "#db/audit-entries.ts";
import { decideWrite, hasDoubtfulWrites, type DoubtfulWrite } from "#db/runs/run-writes.ts";
import { resumeRun } from "#db/runs/runs.ts";
import type { AuditActor } from "#domain/audit.ts";
import type { AuditKeys } from "#lib/audit-keys.ts";
import { followDecision } from "./follow-decision.ts";
import type { Needs } from "#actions/services.ts";

/**
 * Records the operator's decision on a write that may have happened; once, even if several race. The last decision lets the run continue: what
 * happened is not sent again, what did not is sent. For a run that has ended, the decision is only recorded. False: the write is not open.
 */
export async function decideDoubtfulWrite(
  services: Needs<"db" | "log"> & { readonly audit: AuditKeys },
  write: Pick<DoubtfulWrite, "accountId" | "runId" | "nodeId" | "ordinal">,
  decision: { readonly happened: boolean; readonly by: string; readonly actor?: AuditActor },
): Promise<boolean> {
  const isDecided = await services.db.transaction(async (tx) => {
    // The response is lost, so the write produces no records; the run continues without them.
    if (!(await decideWrite(tx, write, { happened: decision.happened, by: decision.by, outcome: "null" })))
      return false;
    await recordAudit(tx, services.audit, {
      accountId: write.accountId,
      actor: decision.actor ?? { kind: "cli" },
      action: "write.decide",
      subjectId: write.runId,
      runId: write.runId,
      detail: { node: write.nodeId, record: write.ordinal, happened: decision.happened },
    });
    if (!(await hasDoubtfulWrites(tx, write.runId))) await resumeRun(tx, write.runId);
    return true;
  });
  if (isDecided) await followDecision(services, write);
  return isDecided;
}
