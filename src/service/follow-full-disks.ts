import { listFullDisks, type DiskPlace } from "#lib/full-disks.ts";
import type { Log } from "#lib/log.ts";

const LOOK_EVERY_MS = 1_000;

const NAMES: Readonly<Record<DiskPlace, string>> = {
  data: "the data folder",
  objects: "the folder of the objects",
  scratch: "temporary files of runs",
  database: "the database",
};

/** Logs when a disk is full and when it no longer is, once each: a line for every refused request would bury it. Returns what ends it. */
export function followFullDisks(log: Log): () => Promise<void> {
  let told: readonly DiskPlace[] = [];
  const timer = setInterval(() => {
    const full = listFullDisks();
    for (const place of full.filter((each) => !told.includes(each)))
      log.error(
        { alarm: "disk_full", place },
        `the disk of ${NAMES[place]} is full: free space. What needs the room is answered with 503 or waits, and nothing is lost`,
      );
    for (const place of told.filter((each) => !full.includes(each)))
      log.info(
        { place },
        `the disk of ${NAMES[place]} has had room for a while, or nothing was written to it`,
      );
    told = full;
  }, LOOK_EVERY_MS);
  timer.unref();
  return async () => clearInterval(timer);
}
