import { completeRun } from "#db/runs/run-results.ts";
import { estimateResponseBytes } from "#domain/run-results.ts";
import { failpoint } from "#lib/failpoint.ts";
import { metrics } from "#lib/metrics.ts";
import { resultKeysOf } from "#nodes/types/output.ts";
import type { UnboundRun } from "./execute-nodes.ts";
import { RunStopped } from "./run-ended.ts";
import type { EngineServices } from "./services.ts";
import { retryWhileLocked } from "./waiting/retry-while-locked.ts";

/** Writes the results and the terminal state in one transaction: `completed` means that every result exists. Throws RunStopped. */
export async function finishRun(
  { db, log, news }: Pick<EngineServices, "db" | "log" | "news">,
  { run, lease, plan, results: written, tallies }: UnboundRun,
): Promise<void> {
  const keys = plan.blueprint.nodes
    .filter((node) => node.type === "output")
    .flatMap((node) => resultKeysOf(node));
  // A skipped output has no records under its result keys.
  const results = keys.flatMap(({ key }) => written.get(key) ?? []);
  const responseBytes = estimateResponseBytes(results, run.metadata.length);
  await failpoint("run.before_complete");
  const completion = { lease, accountId: run.accountId, responseBytes, results, tally: tallies.take() };
  if (!(await retryWhileLocked(async () => await completeRun(db, completion))))
    throw new RunStopped("lease_lost");
  metrics.runsCompleted.add({});
  await failpoint("run.after_complete");
  news.announce([run.id]);
  log.info({ runId: run.id }, "run completed");
}
