import { revokeKey } from "#db/api-keys.ts";
import { recordAudit } from "#db/audit-entries.ts";
import type { Database } from "#db/connection/pool.ts";
import type { AuditActor } from "#domain/audit.ts";
import type { Signing } from "#lib/signing.ts";

/** Revokes a key immediately. False when there is no such key. Revoking again changes nothing and returns true. */
export async function revokeApiKey(
  db: Database,
  signing: Signing,
  keyId: string,
  actor: AuditActor = { kind: "cli" },
): Promise<boolean> {
  return await db.transaction(async (tx) => {
    const revoked = await revokeKey(tx, keyId);
    if (revoked?.isNew) {
      await recordAudit(tx, signing.audit, {
        accountId: revoked.accountId,
        actor,
        action: "key.revoke",
        subjectId: keyId,
      });
    }
    return revoked !== undefined;
  });
}
