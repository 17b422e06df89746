import { recordAudit } from "#db/audit-entries.ts";
import { unlockCredential as unlockRow } from "#db/credentials/login-lockouts.ts";
import type { Database } from "#db/connection/pool.ts";
import type { AuditActor } from "#domain/audit.ts";
import type { Signing } from "#lib/signing.ts";

/** Lets runs log in again at once, after rejected logins. False when there is no such credential. */
export async function unlockCredential(
  db: Database,
  signing: Signing,
  credentialId: string,
  actor: AuditActor = { kind: "cli" },
): Promise<boolean> {
  return await db.transaction(async (tx) => {
    const accountId = await unlockRow(tx, credentialId);
    if (accountId === undefined) return false;
    await recordAudit(tx, signing.audit, {
      accountId,
      actor,
      action: "credential.unlock",
      subjectId: credentialId,
    });
    return true;
  });
}
