import { Logger, makeWorkerUtils, run, runMigrations } from "graphile-worker";
import type { Engine, EngineOptions } from "./runs-engine.ts";

const TASK = "bench";
const BATCH = 5_000;
/** As it was fastest: it fetches so many at once, and completions of a moment are one statement. */
const LOCAL_QUEUE = 500;

/** Plain graphile-worker jobs: no checkpoints, no history; a job is deleted when it is done. */
export async function openGraphile(options: EngineOptions): Promise<Engine> {
  const { connectionString, work, step, carried, concurrency } = options;
  const logger = new Logger(() => (level, message) => {
    if (level === "error") process.stderr.write(`graphile-worker: ${message}\n`);
  });
  const utils = await makeWorkerUtils({ connectionString, logger });
  const job = async (payload: unknown): Promise<void> => {
    for (let ordinal = 0; ordinal < work.steps; ordinal++) await step(ordinal);
    carried((payload as { sentMs: number }).sentMs);
  };
  return {
    prepare: async () => await runMigrations({ connectionString, logger }),
    enqueueMany: async (count) => {
      for (let made = 0; made < count; made += BATCH)
        await utils.addJobs(
          Array.from({ length: Math.min(BATCH, count - made) }, () => ({
            identifier: TASK,
            payload: { sentMs: 0 },
          })),
        );
    },
    enqueue: async (sentMs) => void (await utils.addJob(TASK, { sentMs })),
    work: async () => {
      await run({
        preset: {
          worker: {
            connectionString,
            concurrentJobs: concurrency,
            maxPoolSize: 10,
            pollInterval: 1_000,
            localQueue: { size: LOCAL_QUEUE },
            completeJobBatchDelay: 0,
            failJobBatchDelay: 0,
          },
        },
        logger,
        noHandleSignals: true,
        taskList: { [TASK]: job },
      });
    },
  };
}
