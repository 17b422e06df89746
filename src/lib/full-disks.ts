import { metrics } from "./metrics.ts";

/** What is written to a disk: the data folder's own files, objects, temporary files of runs, the database. */
export type DiskPlace = "data" | "objects" | "scratch" | "database";

/** A place that had no room is reported for this long after the last write that failed. */
const REPORTED_MS = 30_000;

const failedAtMs = new Map<DiskPlace, number>();

/** A write of this process found no room. */
export function noteFullDisk(place: DiskPlace): void {
  metrics.fullDisks.add({ place });
  failedAtMs.set(place, performance.now());
}

/** The places that had no room lately. Nothing is refused because of it: the next write may find some. */
export const listFullDisks = (): readonly DiskPlace[] =>
  [...failedAtMs].flatMap(([place, atMs]) => (performance.now() - atMs < REPORTED_MS ? [place] : []));
