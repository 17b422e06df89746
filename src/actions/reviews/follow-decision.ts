import { sendRunChanges } from "#db/runs/run-notifier.ts";
import { describeError } from "#lib/log.ts";
import type { Needs } from "#actions/services.ts";

/**
 * Runs after the COMMIT of a decision or a timeout: notifies those who watch the run, and lets it, or the account's next run,
 * continue. Correctness does not depend on it: the workers' reconcilers admit runs, and watchers poll.
 */
export async function followDecision(
  services: Needs<"db" | "log">,
  run: { readonly accountId: string; readonly runId: string },
): Promise<void> {
  await sendRunChanges(services.db, "decision", { waiting: [run.accountId], changed: [run.runId] }).catch(
    (error: unknown) => {
      services.log.debug(describeError(error), "notifying of a decision failed; watchers poll by themselves");
    },
  );
}
