import { listUnnamedBlobs, readOrphanLimit } from "#db/orphans.ts";
import { limits } from "#domain/limits.ts";
import type { Services } from "./services.ts";

const PAGE = 500;

/** Everything that the service puts into the store. */
export const OBJECT_PREFIXES = ["inputs/", "steps/", "results/"] as const;

/**
 * Design, page 6, 4.3, row 29: what a process that died between writing an object and COMMIT has left. Nothing names it, so
 * nothing ever reads it: it only takes space. Its age is the store's, and the limit is generous enough for whatever is being
 * committed at the moment, and for clocks that differ. Begins anew when it was cut off.
 */
export async function sweepObjects(services: Pick<Services, "db" | "blobs" | "log">): Promise<void> {
  const { db, blobs, log } = services;
  const before = await readOrphanLimit(db, limits.orphanedObjectAgeMs);
  let [seen, removed] = [0, 0];
  for (const prefix of OBJECT_PREFIXES) {
    for await (const page of blobs.list(prefix, PAGE)) {
      seen += page.length;
      const old = page.filter(({ modifiedAt }) => modifiedAt < before).map(({ key }) => key);
      if (old.length === 0) continue;
      const orphans = await listUnnamedBlobs(db, old);
      await blobs.remove(orphans);
      removed += orphans.length;
    }
  }
  const unfinished = await blobs.removeUnfinished(before);
  log.info({ seen, removed, unfinished }, "swept the object store");
}
