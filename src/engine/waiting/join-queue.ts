import { callNextQueued, joinQueue } from "#db/runs/lines.ts";
import type { Lease } from "#db/runs/lease.ts";
import type { ClaimedRun } from "#db/runs/runs.ts";
import { limits } from "#domain/limits.ts";
import { retryWhileLocked } from "./retry-while-locked.ts";
import type { RunQueued } from "#engine/run-ended.ts";
import type { EngineServices } from "#engine/services.ts";

/** A quarantined run must not come back beside others: it waits in its slot. */
export const mayQueue = ({ lostLeases }: Pick<ClaimedRun, "lostLeases">): boolean =>
  lostLeases < limits.lostLeasesMax - 1;

/** Puts the run into the queue; it holds nothing until it is called. False: another worker has it by now. */
export async function queueRun(
  { db, news }: Pick<EngineServices, "db" | "news">,
  run: ClaimedRun,
  lease: Lease,
  { line, waitedMs }: RunQueued,
): Promise<boolean> {
  const isQueued = await retryWhileLocked(async () => await joinQueue(db, lease, { line, waitedMs }));
  // A run that ended its turn just before did not see this one in the queue, so call the next one again.
  const lines = [line, ...run.credentials.map(({ credentialId }) => credentialId)];
  news.notifyRunnable(await callNextQueued(db, [...new Set(lines)]));
  return isQueued;
}
