import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { listHeldClaims } from "#db/orphans.ts";
import type { Database } from "#db/connection/pool.ts";
import type { EngineServices } from "#engine/services.ts";
import { readScratchName } from "./spool.ts";

/**
 * Removes the scratch folders of claims that no worker holds any more, such as those of a killed worker. Folders of held claims stay:
 * a folder is created after its run was claimed.
 */
export async function sweepScratch(
  services: Pick<EngineServices, "db" | "scratchFolder" | "log">,
): Promise<void> {
  const { db, scratchFolder, log } = services;
  const left = await listAbandonedScratch(db, scratchFolder);
  for (const name of left) await rm(join(scratchFolder, name), { recursive: true, force: true });
  if (left.length > 0) log.info({ removed: left.length }, "swept scratch folders that no run uses");
}

/** The scratch folders of claims that no worker holds. */
async function listAbandonedScratch(db: Database, scratchFolder: string): Promise<readonly string[]> {
  const found = (await readdir(scratchFolder).catch(() => [])).flatMap((name) => {
    const claim = readScratchName(name);
    return claim === null ? [] : [{ name, claim }];
  });
  if (found.length === 0) return [];
  const held = await listHeldClaims(
    db,
    found.map(({ claim }) => claim),
  );
  const kept = new Set(held.map(({ runId, epoch }) => `${runId}-${epoch}`));
  return found.filter(({ claim }) => !kept.has(`${claim.runId}-${claim.epoch}`)).map(({ name }) => name);
}

/** The folders that nobody has written to since `before`. */
export async function listForgottenScratch(
  db: Database,
  scratchFolder: string,
  before: Date,
): Promise<readonly string[]> {
  const forgotten: string[] = [];
  for (const name of await listAbandonedScratch(db, scratchFolder)) {
    const found = await stat(join(scratchFolder, name)).catch(() => null);
    if (found && found.mtime < before) forgotten.push(name);
  }
  return forgotten;
}
