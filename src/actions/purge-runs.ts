import { listRunsToPurge, purgeRun } from "#db/run-results.ts";
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
      const taken = await purgeRun(services.db, id);
      // Another process was first.
      if (!taken) continue;
      await services.blobs.remove(taken.blobKeys);
      // What a killed worker left beside its journal has no row.
      for (const kind of ["steps", "results"])
        await services.blobs.removeAll(`${kind}/${taken.accountId}/${id}/`);
      purged++;
    }
  }
  return purged;
}
