import { recordAudit } from "#db/audit-entries.ts";
import { acceptOutdatedRows } from "#db/signing/check-signed-rows.ts";
import { deleteRestoredCredential } from "#db/credentials/credentials.ts";
import type { Database } from "#db/connection/pool.ts";
import { failIdleRunsOf } from "#db/runs/runs.ts";
import type { Signing } from "#lib/signing.ts";
import { readTombstones } from "./tombstones.ts";

export interface Reconciled {
  /** Credentials that the files say were deleted. */
  readonly tombstones: number;
  /** Of these, the ones that the restore had brought back; they are deleted again. */
  readonly deleted: number;
  /** Lines that a crash had cut off, or that are nothing of ours. */
  readonly unreadable: number;
  /** Rows that decide something, older than the audit log says, that are taken as they are from now on. */
  readonly rows: number;
}

/**
 * After a restore: deletes again what was deleted since the dump was made (docs/decisions/0024), and takes the versions, operators and
 * keys that the restore has brought back for those in force, where the audit log knows of later ones. One transaction a credential:
 * stopped in the middle, it is simply done again.
 */
export async function reconcileRestore(
  db: Database,
  signing: Signing,
  files: readonly string[],
): Promise<Reconciled> {
  const { credentialIds, unreadable } = await readTombstones(files);
  let deleted = 0;
  for (const id of credentialIds) {
    const wasBack = await db.transaction(async (tx) => {
      const accountId = await deleteRestoredCredential(tx, id);
      if (accountId === undefined) return false;
      await failIdleRunsOf(tx, id);
      await recordAudit(tx, signing.audit, {
        accountId,
        actor: { kind: "cli" },
        action: "credential.delete",
        subjectId: id,
        detail: { after_restore: true },
      });
      return true;
    });
    if (wasBack) deleted++;
  }
  const rows = await acceptOutdatedRows(db);
  const counts = { tombstones: credentialIds.length, deleted, unreadable, rows };
  await recordAudit(db, signing.audit, {
    accountId: null,
    actor: { kind: "cli" },
    action: "restore.reconcile",
    subjectId: "installation",
    detail: counts,
  });
  return counts;
}
