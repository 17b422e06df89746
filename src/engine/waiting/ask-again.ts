import { notePoll, waitForPoll, type PollPlace } from "#db/runs/polls.ts";
import type { Lease } from "#db/runs/lease.ts";
import type { ClaimedRun } from "#db/runs/runs.ts";
import { limits } from "#domain/limits.ts";
import { retryWhileLocked } from "./retry-while-locked.ts";
import type { RunClock } from "./run-clock.ts";
import type { PollTimes } from "#engine/run-context.ts";
import { RunPollsLater, RunStopped } from "#engine/run-ended.ts";
import type { EngineServices } from "#engine/services.ts";
import { mayQueue } from "./join-queue.ts";

type AskAgain = (place: PollPlace, times: PollTimes, signal: AbortSignal) => Promise<boolean>;

/**
 * How a run waits between two polls. The duration is measured by the database's clock from the first unsatisfying answer, whichever
 * worker got it. For the first half minute the run waits in its slot; after that it is handed back between two polls.
 */
export function askAgainOf(
  { db, clock }: Pick<EngineServices, "db" | "clock">,
  run: Pick<ClaimedRun, "accountId" | "lostLeases">,
  lease: Lease,
  runClock: RunClock,
): AskAgain {
  const { accountId } = run;
  return async (place, { everyMs, forMs }, signal) => {
    const poll = await retryWhileLocked(async () => await notePoll(db, lease, { ...place, accountId }));
    if (poll === undefined) throw new RunStopped("lease_lost");
    const leftMs = forMs - poll.lastedMs;
    if (leftMs <= 0) return false;
    const waitMs = Math.min(everyMs, leftMs);
    const wait = async (): Promise<void> => await clock.sleep(waitMs, signal);
    if (poll.lastedMs + waitMs <= limits.pollInPlaceMs) await wait();
    // A quarantined run must not come back beside others; its timeout is paused here as it would be there.
    else if (!mayQueue(run)) await runClock.standStill(wait);
    else throw new RunPollsLater(place, Math.min(Math.max(waitMs, limits.pollApartMs), leftMs));
    return true;
  };
}

/** Hands the run back until its next poll. False: another worker has it by now. */
export async function waitOutside(
  { db }: Pick<EngineServices, "db">,
  lease: Lease,
  { place, waitMs }: RunPollsLater,
): Promise<boolean> {
  return await retryWhileLocked(async () => await waitForPoll(db, lease, { ...place, waitMs }));
}
