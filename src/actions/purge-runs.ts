import { listRunsToPurge, purgeRun } from "#db/run-results.ts";
import type { Database } from "#db/pool.ts";
import { recordAudit } from "#db/audit-entries.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { AuditActor } from "#domain/audit.ts";
import type { Signing } from "#lib/signing.ts";
import { requireRun } from "./look-at-runs.ts";
import { OperatorError } from "./operator-error.ts";
import type { Services } from "./services.ts";

const BATCH = 200;

/** Purges the runs whose retention is over. Rows first, objects after COMMIT: a reader gets all or a 400. */
export async function purgeOldRuns(services: Pick<Services, "db" | "blobs">): Promise<number> {
  let purged = 0;
  for (
    let ids = await listRunsToPurge(services.db, BATCH);
    ids.length > 0;
    ids = await listRunsToPurge(services.db, BATCH)
  ) {
    for (const id of ids) {
      const taken = await services.db.transaction(async (tx) => await purgeRun(tx, id, "retention"));
      // Another process was first.
      if (!taken) continue;
      await removeObjects(services.blobs, id, taken);
      purged++;
    }
  }
  return purged;
}

/** What the transaction has taken, and what a killed worker left beside its journal, which has no row. */
async function removeObjects(
  blobs: BlobStore,
  runId: string,
  taken: { readonly accountId: string; readonly blobKeys: readonly string[] },
): Promise<void> {
  await blobs.remove(taken.blobKeys);
  for (const kind of ["steps", "results"]) await blobs.removeAll(`${kind}/${taken.accountId}/${runId}/`);
}

/**
 * Design, page 1, Retention: "or at once by an operator". When the store fails after COMMIT, nothing names the objects any more, and
 * the sweep takes them. Throws OperatorError.
 */
export async function purgeRunAsOperator(
  services: { readonly db: Database; readonly blobs: BlobStore; readonly signing: Signing },
  reference: string,
  actor: AuditActor = { kind: "cli" },
): Promise<{ readonly id: string }> {
  const { id, accountId } = await requireRun(services.db, reference);
  const taken = await services.db.transaction(async (tx) => {
    const purged = await purgeRun(tx, id, "operator");
    if (purged === null) return null;
    await recordAudit(tx, services.signing.audit, {
      accountId,
      actor,
      action: "run.purge",
      subjectId: id,
      runId: id,
    });
    return purged;
  });
  if (taken === null)
    throw new OperatorError(
      `${id} is purged already, or has not ended yet: \`latchkey runs show\` says which, \`latchkey runs cancel\` ends it. Nothing was changed.`,
    );
  await removeObjects(services.blobs, id, taken);
  return { id };
}
