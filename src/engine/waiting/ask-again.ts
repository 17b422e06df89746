import { notePoll, waitToAsk, type PollPlace } from "#db/runs/polls.ts";
import type { Lease } from "#db/runs/lease.ts";
import type { ClaimedRun } from "#db/runs/runs.ts";
import { limits } from "#domain/limits.ts";
import { retryWhileLocked } from "./retry-while-locked.ts";
import type { RunClock } from "./run-clock.ts";
import type { PollTimes } from "#engine/run-context.ts";
import { RunAsksLater, RunStopped } from "#engine/run-ended.ts";
import type { EngineServices } from "#engine/services.ts";
import { mayStandInLine } from "./stand-in-line.ts";

type AskAgain = (place: PollPlace, times: PollTimes, signal: AbortSignal) => Promise<boolean>;

/**
 * How one run waits before a read asks again. How long it has asked is counted by the database's clock from the first answer that would not
 * do, whichever worker got it. For the first half a minute it waits in place; after that the run is handed back between two asks.
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
    // One in quarantine must not come back beside others; its time stands still here as it would there.
    else if (!mayStandInLine(run)) await runClock.standStill(wait);
    else throw new RunAsksLater(place, Math.min(Math.max(waitMs, limits.pollApartMs), leftMs));
    return true;
  };
}

/** The run holds nothing from here on, until it is time to ask. False: it is another's by now. */
export async function waitOutside(
  { db }: Pick<EngineServices, "db">,
  lease: Lease,
  { place, waitMs }: RunAsksLater,
): Promise<boolean> {
  return await retryWhileLocked(async () => await waitToAsk(db, lease, { ...place, waitMs }));
}
