import { setTimeout as sleep } from "node:timers/promises";
import { Agent } from "node:http";
import { startProgram } from "./processes.ts";
import { measureDrain, type DrainTiming } from "./runs-drain.ts";
import { trigger } from "./runs-light.ts";
import { ourContender, type RunStage } from "./runs-ours.ts";
import type { Look, MemoryUse } from "./serve-process.ts";

export interface RunMemorySample extends MemoryUse {
  readonly atSeconds: number;
  /** Runs that have completed so far. */
  readonly completed: number;
}

/** Of what a worker drains, so that the runs keep up with their triggers. */
const SHARE = 0.25;
const SAMPLES = 10;
const SETTLE_MS = 15_000;
const GUESS = 400;

/** Heap and resident memory of one process with all roles, while runs of both kinds are triggered at a steady rate. */
export async function watchRunMemory(
  stage: RunStage,
  timing: DrainTiming,
  minutes: number,
): Promise<{ readonly rate: number; readonly samples: readonly RunMemorySample[] }> {
  const steps = await ourContender(stage, "steps", "three steps");
  const rate = Math.max((await measureDrain(steps, 1, timing, GUESS)).perSecond * SHARE, 1);
  await steps.prefill(0);
  await using service = startProgram("./serve-process.ts", {
    environment: stage.installation.environment,
    options: ["--expose-gc"],
    roles: ["api", "worker"],
  });
  const { url } = await service.ask<{ url: string }>({ want: "url" } satisfies Look);
  const load = triggerSteadily(url, stage.apiKey, rate);
  const samples: RunMemorySample[] = [];
  try {
    await sleep(Math.min(SETTLE_MS, minutes * 6_000));
    const began = performance.now();
    for (let at = 0; at <= SAMPLES; at++) {
      await sleep(Math.max(began + (at / SAMPLES) * minutes * 60_000 - performance.now(), 0));
      samples.push({
        atSeconds: (performance.now() - began) / 1_000,
        completed: await steps.finished(),
        ...(await service.ask<MemoryUse>({ want: "memory" } satisfies Look)),
      });
    }
  } finally {
    await load.stop();
  }
  return { rate, samples };
}

function triggerSteadily(url: string, apiKey: string, rate: number): { stop(): Promise<void> } {
  const agent = new Agent({ keepAlive: true });
  const began = performance.now();
  const underWay = new Set<Promise<unknown>>();
  let failure: unknown = null;
  let isOver = false;
  const sending = (async () => {
    for (let sent = 0; !isOver; sent++) {
      await sleep(Math.max(began + (sent * 1_000) / rate - performance.now(), 0));
      const one: Promise<void> = trigger(url, apiKey, agent, sent % 2 === 0 ? "noop" : "steps")
        .then(
          () => undefined,
          (error: unknown) => void (failure ??= error),
        )
        .finally(() => void underWay.delete(one));
      underWay.add(one);
    }
  })();
  return {
    stop: async () => {
      isOver = true;
      await sending;
      await Promise.all(underWay);
      agent.destroy();
      if (failure !== null) throw failure;
    },
  };
}

const mib = (bytes: number): string => `${Math.round(bytes / 1_048_576)} MiB`;

export function renderRunMemory({
  rate,
  samples,
}: {
  readonly rate: number;
  readonly samples: readonly RunMemorySample[];
}): string {
  const [first, last] = [samples[0], samples.at(-1)];
  if (!first || !last) return "";
  const most = (value: (sample: RunMemorySample) => number): string => mib(Math.max(...samples.map(value)));
  return (
    `Memory of one process with all roles over ${Math.round(last.atSeconds)} s at ${rate.toFixed(1)} runs/s ` +
    `(${last.completed - first.completed} completed): heap after a full collection ${mib(first.heapBytes)} → ${mib(last.heapBytes)} ` +
    `(most: ${most(({ heapBytes }) => heapBytes)}), resident ${mib(first.rssBytes)} → ${mib(last.rssBytes)} ` +
    `(most: ${most(({ rssBytes }) => rssBytes)})`
  );
}
