import { BROWSER_LINE, leaveQueue } from "#db/runs/lines.ts";
import type { Lease } from "#db/runs/lease.ts";
import type { ClaimedRun } from "#db/runs/runs.ts";
import type { Blueprint } from "#domain/blueprint.ts";
import { limits } from "#domain/limits.ts";
import { BrowserError } from "#outbound/browser/browser-error.ts";
import type { Browsers } from "#outbound/browser/browsers.ts";
import { RunQueued, RunStopped } from "#engine/run-ended.ts";
import type { EngineServices } from "#engine/services.ts";
import { mayQueue } from "./join-queue.ts";
import { retryWhileLocked } from "./retry-while-locked.ts";

/**
 * The browsers of one run. If its first one is not to be had soon, or the worker has none, the run queues and holds nothing. For a
 * later one it waits in its slot, because queueing would repeat its login at the target; so does a run that was called.
 */
export function browsersOf(
  { browsers, db, clock }: Pick<EngineServices, "browsers" | "db" | "clock">,
  run: Pick<ClaimedRun, "line" | "lostLeases">,
  lease: Lease,
): Browsers {
  let isCalled = run.line === BROWSER_LINE;
  let isFirst = true;
  return {
    ...browsers,
    open: async (request) => {
      const mayStand = isFirst && mayQueue(run);
      if (mayStand) await queueIfMissing(browsers);
      let waitedMs = 0;
      const whileWaiting = async (wait: () => Promise<void>): Promise<void> => {
        const beganMs = clock.now();
        try {
          await (request.whileWaiting?.(wait) ?? wait());
        } finally {
          waitedMs += clock.now() - beganMs;
        }
      };
      const withinMs = mayStand && !isCalled ? limits.browserPatienceMs : undefined;
      const browser = await browsers.open({ ...request, whileWaiting, withinMs }).catch((error: unknown) => {
        throw error instanceof BrowserError && error.failure === "no_place"
          ? new RunQueued(BROWSER_LINE, waitedMs)
          : error;
      });
      isFirst = false;
      if (isCalled) {
        isCalled = false;
        if (!(await retryWhileLocked(async () => await leaveQueue(db, lease, waitedMs)))) {
          await browser.close();
          throw new RunStopped("lease_lost");
        }
      }
      return browser;
    },
  };
}

/** A run whose nodes need a browser does not begin in a worker without one: its login would be repeated elsewhere. */
export async function queueWithoutBrowser(
  browsers: Browsers,
  run: Pick<ClaimedRun, "lostLeases">,
  { nodes }: Pick<Blueprint, "nodes">,
): Promise<void> {
  if (nodes.some(({ type }) => type === "browser") && mayQueue(run)) await queueIfMissing(browsers);
}

async function queueIfMissing(browsers: Browsers): Promise<void> {
  if ((await browsers.places()).most === 0) throw new RunQueued(BROWSER_LINE, 0);
}
