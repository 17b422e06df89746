import { callNext, standInLine } from "#db/runs/lines.ts";
import type { Lease } from "#db/runs/lease.ts";
import type { ClaimedRun } from "#db/runs/runs.ts";
import { limits } from "#domain/limits.ts";
import { retryWhileLocked } from "./retry-while-locked.ts";
import type { RunInLine } from "#engine/run-ended.ts";
import type { EngineServices } from "#engine/services.ts";

/** One that is to be carried alone must not come back beside others: it waits in its place. */
export const mayStandInLine = ({ lostLeases }: Pick<ClaimedRun, "lostLeases">): boolean =>
  lostLeases < limits.lostLeasesMax - 1;

/** The run holds nothing from here on, until it is called. False: it is another's by now. */
export async function stand(
  { db, news }: Pick<EngineServices, "db" | "news">,
  run: ClaimedRun,
  lease: Lease,
  { line, waitedMs }: RunInLine,
): Promise<boolean> {
  const stands = await retryWhileLocked(async () => await standInLine(db, lease, { line, waitedMs }));
  // A run that ended its turn just before has not seen it there; nor has one that waits for what it had been given.
  const lines = [line, ...run.credentials.map(({ credentialId }) => credentialId)];
  news.notifyRunnable(await callNext(db, [...new Set(lines)]));
  return stands;
}
