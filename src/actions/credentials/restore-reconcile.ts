import { recordAudit } from "#db/audit-entries.ts";
import { acceptOutdatedRows } from "#db/signing/check-signed-rows.ts";
import { deleteCandidates } from "#db/credentials/login-candidates.ts";
import { deleteRestoredCredential } from "#db/credentials/credentials.ts";
import type { Database } from "#db/connection/pool.ts";
import { failIdleRunsOf } from "#db/runs/runs.ts";
import type { Signing } from "#lib/signing.ts";
import { readTombstones } from "./tombstones.ts";

export interface Reconciled {
  /** Credentials that the files say were deleted. */
  readonly tombstones: number;
  /** Credentials that the restore brought back and that were deleted again. */
  readonly deleted: number;
  /** Lines that a crash truncated or that this installation did not write. */
  readonly unreadable: number;
  /** Signed rows that are older than in the audit log, and are accepted from now on. */
  readonly rows: number;
}

/** A login that was being tried: the target may have refused it since, and the end user is told nothing of it any more. */
async function eraseCandidates(db: Database, signing: Signing): Promise<void> {
  await db.transaction(async (tx) => {
    const erased = await deleteCandidates(tx);
    if (erased.length === 0) return;
    await failIdleRunsOf(
      tx,
      erased.map(({ id }) => id),
    );
    for (const { id, accountId } of erased)
      await recordAudit(tx, signing.audit, {
        accountId,
        actor: { kind: "cli" },
        action: "credential.delete",
        subjectId: id,
        detail: { after_restore: true },
      });
  });
}

/**
 * After a restore: repeats the deletes since the dump (docs/decisions/0024), and accepts restored versions, operators and keys as current
 * even though the audit log has later ones. One transaction per credential: if interrupted, it can simply be run again.
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
      await failIdleRunsOf(tx, [id]);
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
  await eraseCandidates(db, signing);
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
