import { purgeDueRuns, purgeRun, readPurgeLag, type PurgedRun } from "#db/runs/purges.ts";
import type { Database } from "#db/connection/pool.ts";
import { recordAudit } from "#db/audit-entries.ts";
import type { BlobStore } from "#blobs/store.ts";
import type { AuditActor } from "#domain/audit.ts";
import { limits } from "#domain/limits.ts";
import { describeError } from "#lib/log.ts";
import { metrics } from "#lib/metrics.ts";
import type { Signing } from "#lib/signing.ts";
import { requireRun } from "./require-run.ts";
import { OperatorError } from "#actions/operator-error.ts";
import type { Needs } from "#actions/services.ts";

/** Some hundred runs per statement: rows are purged first, and nothing may delay that. */
const RUNS_AT_ONCE = 500;
/** A store accepts a thousand names per request, while the rows of the next runs are deleted. */
const OBJECTS_AT_ONCE = 1_000;
const LISTED_AT_ONCE = 8;

/**
 * Purges the runs whose retention has ended: rows first, objects after COMMIT, so that a reader gets everything or a 400. If the
 * store fails, the rows are deleted anyway: no row refers to the remaining objects, and the sweep removes them.
 */
export async function purgeOldRuns({ db, blobs, log }: Needs<"db" | "blobs" | "log">): Promise<number> {
  const purgeSome = async (): Promise<readonly PurgedRun[]> => await purgeDueRuns(db, RUNS_AT_ONCE);
  let purged = 0;
  let removing: Promise<void> = Promise.resolve();
  for (let runs = await purgeSome(); runs.length > 0; runs = await purgeSome()) {
    purged += runs.length;
    metrics.purged.add({}, runs.length);
    await removing;
    removing = removeObjects(blobs, runs).catch((error: unknown) => {
      log.warn(
        { runs: runs.length, ...describeError(error) },
        "objects of purged runs could not be removed; the sweep will remove them",
      );
    });
  }
  await removing;
  const lagMs = await readPurgeLag(db);
  if (lagMs >= limits.purgeLateMs)
    log.error(
      { alarm: "purge_late", lagSeconds: Math.floor(lagMs / 1_000) },
      "data is kept longer than its retention",
    );
  return purged;
}

/** Logged when data is kept for longer than its retention. */
export async function describePurgeLag(db: Database): Promise<readonly string[]> {
  const lagMs = await readPurgeLag(db);
  if (lagMs < limits.purgeLateMs) return [];
  const hours = Math.floor(lagMs / 3_600_000);
  return [
    `data of ended runs is purged ${hours} h late: check that a worker is running, and its log for housekeeping errors`,
  ];
}

/** The objects that the rows referred to, and those that a killed worker has left without a row in the journal. */
async function removeObjects(blobs: BlobStore, runs: readonly PurgedRun[]): Promise<void> {
  const keys = runs.flatMap(({ blobKeys }) => blobKeys);
  const prefixes = runs
    .filter(({ mayHaveMore }) => mayHaveMore)
    .flatMap(({ accountId, id }) => ["steps", "results"].map((kind) => `${kind}/${accountId}/${id}/`));
  for (let first = 0; first < keys.length; first += OBJECTS_AT_ONCE)
    await blobs.remove(keys.slice(first, first + OBJECTS_AT_ONCE));
  for (let first = 0; first < prefixes.length; first += LISTED_AT_ONCE) {
    const some = prefixes.slice(first, first + LISTED_AT_ONCE);
    await Promise.all(some.map(async (prefix) => await blobs.removeAll(prefix)));
  }
}

/**
 * Purges a run before its retention has ended, for an operator (docs/decisions/0029). When the store fails after COMMIT, no row
 * refers to the objects, and the sweep removes them. Throws OperatorError.
 */
export async function purgeRunAsOperator(
  services: { readonly db: Database; readonly blobs: BlobStore; readonly signing: Signing },
  reference: string,
  actor: AuditActor = { kind: "cli" },
): Promise<{ readonly id: string }> {
  const { id, accountId } = await requireRun(services.db, reference);
  const taken = await services.db.transaction(async (tx) => {
    const purged = await purgeRun(tx, id);
    if (purged === undefined) return undefined;
    if (purged === "backup")
      throw new OperatorError(
        `${id} can't be purged while a backup is being made, which needs its objects. Purge it again when the backup has ended. Nothing was changed.`,
      );
    await recordAudit(tx, services.signing.audit, {
      accountId,
      actor,
      action: "run.purge",
      subjectId: id,
      runId: id,
    });
    return purged;
  });
  if (taken === undefined)
    throw new OperatorError(
      `${id} is already purged, or has not ended yet: \`latchkey runs show\` says which, \`latchkey runs cancel\` ends it. Nothing was changed.`,
    );
  await removeObjects(services.blobs, [{ ...taken, mayHaveMore: true }]);
  return { id };
}
