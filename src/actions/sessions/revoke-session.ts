import { recordAudit } from "#db/audit-entries.ts";
import type { Database } from "#db/connection/pool.ts";
import { expireSession } from "#db/credentials/credential-sessions.ts";
import type { AuditActor } from "#domain/audit.ts";
import type { Signing } from "#lib/signing.ts";

/** Lets a pending session expire now. False: it is completed, or has expired already. */
export async function revokeSession(
  db: Database,
  signing: Signing,
  session: { readonly accountId: string; readonly id: string },
  actor: AuditActor,
): Promise<boolean> {
  return await db.transaction(async (tx) => {
    if (!(await expireSession(tx, session))) return false;
    await recordAudit(tx, signing.audit, {
      accountId: session.accountId,
      actor,
      action: "session.revoke",
      subjectId: session.id,
    });
    return true;
  });
}
