import { listAccountIds } from "#db/accounts.ts";
import { endSweep, moveSweep, takeSweep, type ObjectSweep } from "#db/object-sweeps.ts";
import { listUnnamedBlobs } from "#db/orphans.ts";
import type { Database } from "#db/connection/pool.ts";
import { limits } from "#domain/limits.ts";
import { must } from "#lib/assert.ts";
import { failpoint } from "#lib/failpoint.ts";
import { claimStore, StoreOfAnother } from "./claim-store.ts";
import type { Needs } from "#actions/services.ts";

const PAGE = 500;

/** The prefixes of everything that the service writes to the store, in the order of the names. */
export const OBJECT_PREFIXES = ["inputs/", "results/", "steps/"] as const;

/** The names that the service makes, with the account. `latchkey doctor` tests the store under `doctor` in its place. */
const SHAPE =
  /^(?:inputs\/([0-9A-Za-z_]+)\/[0-9A-Za-z]{24}|(?:steps|results)\/([0-9A-Za-z_]+)\/run_[0-9A-Za-z]+\/[0-9A-Za-z]{16}(?:\.json\.br)?)$/;

/** A sweep that would remove more than both is more likely a database that lacks rows (an old backup) than orphans. */
const REMOVED_MAX = { objects: 1_000, share: 0.05 };

type Swept = Needs<"db" | "blobs" | "log">;

/**
 * docs/decisions/0029: removes the objects of processes that died between writing an object and COMMIT. No row refers to them, so
 * they are never read and only take space. Their age is measured by the store's clock, and the limit is long enough for pending
 * commits and for clocks that differ. Only objects whose names have the service's format and belong to accounts of this database
 * are removed, and only in a store that belongs to this installation. An interrupted pass continues after the last page that it
 * finished, in any process; only one process, the latest, runs the pass at a time. `isMeant`: without a limit. Returns the number
 * of removed objects; null: it stopped, or another process has taken over the pass.
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
  const begun = await takeSweep(db, {
    isMeant,
    orphanAgeMs: limits.orphanedObjectAgeMs,
    forgottenMs: limits.sweepForgottenMs,
  });
  try {
    return await runPass(services, begun, await ownNames(db));
  } catch (error) {
    if (!(error instanceof SweepTaken)) throw error;
    log.warn({}, error.message);
    return null;
  }
}

/** Another process continues the pass. */
class SweepTaken extends Error {
  override readonly name = "SweepTaken";

  constructor() {
    super("another process has taken over this sweep of the object store");
  }
}

/** The remaining stages of a pass. */
async function runPass(services: Swept, begun: ObjectSweep, isOurs: IsOurs): Promise<number | null> {
  const { db, blobs, log } = services;
  let sweep = begun;
  if (sweep.stage === "counting") {
    sweep = await countOrphans(services, sweep, isOurs);
    const { seen, found } = sweep;
    if (found > REMOVED_MAX.objects && found > seen * REMOVED_MAX.share) {
      log.error(
        { alarm: "sweep_stopped", seen, found },
        "the sweep would remove more than 5 % of the objects and stopped: check whether this database lacks rows, as after restoring an old backup. " +
          "If it does not, remove them with `latchkey store sweep`",
      );
      await endSweep(db, sweep);
      return null;
    }
    // A few objects are removed as found; many are listed again.
    if (found <= REMOVED_MAX.objects) {
      const few = await listUnnamedBlobs(db, sweep.orphans.filter(isOurs));
      await blobs.remove(few);
      sweep = await move(db, sweep, { stage: "unfinished", found: few.length, orphans: [] });
    } else sweep = await move(db, sweep, { stage: "removing", afterKey: "", seen: 0, found: 0, orphans: [] });
  }
  if (sweep.stage === "removing") {
    sweep = await removeOrphans(services, sweep, isOurs);
    sweep = await move(db, sweep, { stage: "unfinished" });
  }
  const { seen, found } = sweep;
  const unfinished = await blobs.removeUnfinished(sweep.before, isOurs);
  if (await endSweep(db, sweep)) log.info({ seen, removed: found, unfinished }, "swept the object store");
  return found;
}

type IsOurs = (key: string) => boolean;

async function countOrphans(services: Swept, begun: ObjectSweep, isOurs: IsOurs): Promise<ObjectSweep> {
  let sweep = begun;
  for await (const { afterKey, seen, orphans } of listOrphans(services, begun, isOurs)) {
    const found = sweep.found + orphans.length;
    const few = found <= REMOVED_MAX.objects ? [...sweep.orphans, ...orphans] : [];
    const changed = orphans.length > 0 && { orphans: few };
    sweep = await move(services.db, sweep, { afterKey, seen: sweep.seen + seen, found, ...changed });
  }
  return sweep;
}

async function removeOrphans(services: Swept, begun: ObjectSweep, isOurs: IsOurs): Promise<ObjectSweep> {
  let sweep = begun;
  for await (const { afterKey, seen, orphans } of listOrphans(services, begun, isOurs)) {
    await services.blobs.remove(orphans);
    const found = sweep.found + orphans.length;
    sweep = await move(services.db, sweep, { afterKey, seen: sweep.seen + seen, found });
  }
  return sweep;
}

/** Throws SweepTaken. */
async function move(
  db: Database,
  sweep: ObjectSweep,
  to: Parameters<typeof moveSweep>[2],
): Promise<ObjectSweep> {
  const moved = await moveSweep(db, sweep, to);
  if (moved === undefined) throw new SweepTaken();
  await failpoint("sweep.after_page");
  return moved;
}

/** Distinguishes names that this installation generated from all others. */
export async function ownNames(db: Database): Promise<IsOurs> {
  const accounts = new Set([...(await listAccountIds(db)), "doctor"]);
  return (key) => {
    const [, ofInputs, ofRuns] = SHAPE.exec(key) ?? [];
    return accounts.has(ofInputs ?? ofRuns ?? "");
  };
}

/** Reads the rest of a pass page by page: the number of objects, and the orphans among them. */
async function* listOrphans(
  { db, blobs }: Swept,
  { afterKey, before }: ObjectSweep,
  isOurs: IsOurs,
): AsyncIterable<{ readonly afterKey: string; readonly seen: number; readonly orphans: readonly string[] }> {
  for (const prefix of OBJECT_PREFIXES) {
    if (prefix < afterKey && !afterKey.startsWith(prefix)) continue;
    for await (const page of blobs.list(prefix, PAGE, afterKey)) {
      const old = page
        .filter(({ key, modifiedAt }) => modifiedAt < before && isOurs(key))
        .map(({ key }) => key);
      const orphans = old.length === 0 ? [] : await listUnnamedBlobs(db, old);
      yield { afterKey: must(page.at(-1), "an object of the page").key, seen: page.length, orphans };
    }
  }
}
