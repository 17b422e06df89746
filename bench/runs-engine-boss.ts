import type { Engine, EngineOptions } from "./runs-engine.ts";
import { loadPeer } from "./runs-packages.ts";

/** As much of pg-boss as is used here. */
interface PgBossPackage {
  readonly PgBoss: new (options: object) => {
    on(event: "error" | "warning", listener: (error: unknown) => void): unknown;
    start(): Promise<unknown>;
    createQueue(name: string, options: object): Promise<void>;
    insert(name: string, jobs: readonly object[]): Promise<unknown>;
    send(name: string, data: object): Promise<unknown>;
    work(
      name: string,
      options: object,
      handler: (jobs: readonly { readonly data: { readonly sentMs: number } }[]) => Promise<void>,
    ): Promise<unknown>;
  };
}

const QUEUE = "bench";
const BATCH = 5_000;
/** With batches of one, neither NOTIFY nor a full batch makes it go on at once: a backlog would wait for its polls. */
const JOBS_AT_ONCE = 50;
const WORKERS = 4;

/** pg-boss jobs: no checkpoints; a job stays in its table as completed. */
export async function openBoss(options: EngineOptions): Promise<Engine> {
  const { connectionString, work, step, carried } = options;
  const { PgBoss } = loadPeer<PgBossPackage>("pg-boss");
  const boss = new PgBoss({ connectionString, max: 10, schedule: false, useListenNotify: true });
  boss.on("error", (error) => void process.stderr.write(`pg-boss: ${String(error)}\n`));
  await boss.start();
  return {
    prepare: async () => await boss.createQueue(QUEUE, { notify: true }),
    enqueueMany: async (count) => {
      for (let made = 0; made < count; made += BATCH)
        await boss.insert(
          QUEUE,
          Array.from({ length: Math.min(BATCH, count - made) }, () => ({ data: { sentMs: 0 } })),
        );
    },
    enqueue: async (sentMs) => void (await boss.send(QUEUE, { sentMs })),
    work: async () => {
      const polling = { batchSize: JOBS_AT_ONCE, localConcurrency: WORKERS, burstWhenBatchFull: true };
      await boss.work(QUEUE, polling, async (jobs) => {
        await Promise.all(
          jobs.map(async ({ data }) => {
            for (let ordinal = 0; ordinal < work.steps; ordinal++) await step(ordinal);
            carried(data.sentMs);
          }),
        );
      });
    },
  };
}
