import { listAccountIds } from "#db/accounts.ts";
import { listUnnamedBlobs, readOrphanLimit } from "#db/orphans.ts";
import type { Database } from "#db/pool.ts";
import { limits } from "#domain/limits.ts";
import { claimStore, StoreOfAnother } from "./claim-store.ts";
import type { Services } from "./services.ts";

const PAGE = 500;

/** Everything that the service puts into the store. */
export const OBJECT_PREFIXES = ["inputs/", "steps/", "results/"] as const;

/** The names that the service makes, with the account. `latchkey doctor` tries the store out under `doctor` in its place. */
const SHAPE =
  /^(?:inputs\/([0-9A-Za-z_]+)\/[0-9A-Za-z]{24}|(?:steps|results)\/([0-9A-Za-z_]+)\/run_[0-9A-Za-z]+\/[0-9A-Za-z]{16}(?:\.json\.br)?)$/;

/** A sweep that would remove more than both is more likely a database that lacks rows (an old backup) than orphans. */
const REMOVED_MAX = { objects: 1_000, share: 0.05 };

type Swept = Pick<Services, "db" | "blobs" | "log">;

/**
 * docs/decisions/0029: what a process that died between writing an object and COMMIT has left. Nothing names it, so
 * nothing ever reads it: it only takes space. Its age is the store's, and the limit is generous enough for whatever is being
 * committed at the moment, and for clocks that differ. Only names of a shape that the service makes, of accounts of this database, in a
 * store that is this installation's, are ever removed. Begins anew when it was cut off. `isMeant`: however many. Gives what it removed;
 * null: it stopped.
 */
export async function sweepObjects(services: Swept, isMeant = false): Promise<number | null> {
  const { db, blobs, log } = services;
  try {
    await claimStore(db, blobs);
  } catch (error) {
    if (!(error instanceof StoreOfAnother)) throw error;
    log.error({ alarm: "store_of_another" }, `nothing was swept: ${error.message}`);
    return null;
  }
  const before = await readOrphanLimit(db, limits.orphanedObjectAgeMs);
  const isOurs = await ownNames(db);
  let [seen, found] = [0, 0];
  // Few are removed as they were found; of many their number is looked at first.
  const few: string[] = [];
  for await (const page of listOrphans(services, before, isOurs)) {
    seen += page.seen;
    found += page.orphans.length;
    if (found <= REMOVED_MAX.objects) few.push(...page.orphans);
  }
  if (!isMeant && found > REMOVED_MAX.objects && found > seen * REMOVED_MAX.share) {
    log.error(
      { alarm: "sweep_stopped", seen, found },
      "the sweep would remove more than 5 % of the objects and stopped: does this database lack rows, as after the restore of an old backup? " +
        "If it does not, remove them with `latchkey store sweep`",
    );
    return null;
  }
  if (found <= REMOVED_MAX.objects) await blobs.remove(few);
  else for await (const { orphans } of listOrphans(services, before, isOurs)) await blobs.remove(orphans);
  const unfinished = await blobs.removeUnfinished(before, isOurs);
  log.info({ seen, removed: found, unfinished }, "swept the object store");
  return found;
}

/** Tells a name that this installation has made from all others. */
export async function ownNames(db: Database): Promise<(key: string) => boolean> {
  const accounts = new Set([...(await listAccountIds(db)), "doctor"]);
  return (key) => {
    const [, ofInputs, ofRuns] = SHAPE.exec(key) ?? [];
    return accounts.has(ofInputs ?? ofRuns ?? "");
  };
}

/** Page by page: how many objects are there, and which of them are nobody's. */
async function* listOrphans(
  { db, blobs }: Swept,
  before: Date,
  isOurs: (key: string) => boolean,
): AsyncIterable<{ readonly seen: number; readonly orphans: readonly string[] }> {
  for (const prefix of OBJECT_PREFIXES) {
    for await (const page of blobs.list(prefix, PAGE)) {
      const old = page
        .filter(({ key, modifiedAt }) => modifiedAt < before && isOurs(key))
        .map(({ key }) => key);
      yield { seen: page.length, orphans: old.length === 0 ? [] : await listUnnamedBlobs(db, old) };
    }
  }
}
