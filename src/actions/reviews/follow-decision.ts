import { sendRunNews } from "#db/runs/run-notifier.ts";
import { describeError } from "#lib/log.ts";
import type { Needs } from "#actions/services.ts";

/**
 * After the COMMIT of a person's decision, or of its timeout: who watches the run sees it, and it, or the account's next, may
 * go on. Nothing depends on it: the workers' reconcilers admit, and who watches looks by itself.
 */
export async function followDecision(
  services: Needs<"db" | "log">,
  run: { readonly accountId: string; readonly runId: string },
): Promise<void> {
  await sendRunNews(services.db, "decision", { waiting: [run.accountId], changed: [run.runId] }).catch(
    (error: unknown) => {
      services.log.debug(describeError(error), "notifying of a decision failed; watchers poll by themselves");
    },
  );
}
