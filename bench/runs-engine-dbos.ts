import type { Engine, EngineOptions } from "./runs-engine.ts";
import { loadPeer } from "./runs-packages.ts";

/** As much of DBOS as is used here. */
interface DbosPackage {
  readonly DBOS: {
    setConfig(config: object): void;
    migrate(systemDatabaseUrl: string): Promise<void>;
    launch(): Promise<void>;
    registerQueue(name: string, options: object): Promise<unknown>;
    registerWorkflow(
      carry: (sentMs: number) => Promise<void>,
      options: { readonly name: string },
    ): (sentMs: number) => Promise<void>;
    runStep<T>(step: () => Promise<T>, options: { readonly name: string }): Promise<T>;
  };
  readonly DBOSClient: {
    create(options: object): Promise<{ enqueue(options: object, ...values: unknown[]): Promise<unknown> }>;
  };
}

const QUEUE = "bench";
const WORKFLOW = "carry";
const VERSION = "bench";
const ENQUEUED_AT_ONCE = 32;
/** Its default is a second. */
const POLL_MS = 50;

/** DBOS workflows: each step is a checkpoint of its own; a workflow stays in its table. */
export async function openDbos(options: EngineOptions): Promise<Engine> {
  const { connectionString, work, step, carried, concurrency } = options;
  const { DBOS, DBOSClient } = loadPeer<DbosPackage>("@dbos-inc/dbos-sdk");
  DBOS.registerWorkflow(
    async (sentMs) => {
      for (let ordinal = 0; ordinal < work.steps; ordinal++)
        await DBOS.runStep(async () => await step(ordinal), { name: `step ${ordinal}` });
      carried(sentMs);
    },
    { name: WORKFLOW },
  );
  let client: Awaited<ReturnType<DbosPackage["DBOSClient"]["create"]>> | null = null;
  const enqueue = async (sentMs: number): Promise<void> => {
    client ??= await DBOSClient.create({ systemDatabaseUrl: connectionString });
    await client.enqueue({ workflowName: WORKFLOW, queueName: QUEUE, appVersion: VERSION }, sentMs);
  };
  return {
    prepare: async () => await DBOS.migrate(connectionString),
    enqueueMany: async (count) => {
      let made = 0;
      const one = async (): Promise<void> => {
        while (made++ < count) await enqueue(0);
      };
      await enqueue(0);
      await Promise.all(Array.from({ length: ENQUEUED_AT_ONCE }, one));
    },
    enqueue,
    work: async () => {
      DBOS.setConfig({
        name: "bench",
        systemDatabaseUrl: connectionString,
        systemDatabasePoolSize: 20,
        applicationVersion: VERSION,
        executorID: `bench-${process.pid}`,
        logLevel: "error",
      });
      await DBOS.launch();
      await DBOS.registerQueue(QUEUE, {
        workerConcurrency: concurrency,
        minPollingIntervalMs: POLL_MS,
        onConflict: "always_update",
      });
    },
  };
}
