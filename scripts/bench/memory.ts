import { setTimeout as sleep } from "node:timers/promises";
import type { RunningService } from "../../test/service.ts";
import { inspect, type Inspected } from "./inspector.ts";
import { loadOf, type Timing } from "./measure.ts";
import type { Scenario } from "./scenarios.ts";
import type { Stage } from "./stage.ts";

export interface MemorySample {
  readonly atSeconds: number;
  readonly rssBytes: number;
  /** After a full collection. */
  readonly heapBytes: number;
}

const SAMPLES = 10;
/** Until the code is compiled and the pools are as large as the load makes them. */
const SETTLE_SECONDS = 10;

/** The role `api` in a process whose memory and CPU can be looked into. */
export async function serveInspected(
  stage: Stage,
): Promise<{ readonly service: RunningService; readonly inspected: Inspected }> {
  const before = stage.installation.logs().length;
  const service = await stage.serve({ NODE_OPTIONS: "--inspect=127.0.0.1:0" });
  const url = /Debugger listening on (ws:\S+)/.exec(stage.installation.logs().slice(before))?.[1];
  if (url === undefined) throw new Error("the service does not say where its inspector listens");
  return { service, inspected: await inspect(url) };
}

/** Heap and resident memory while all kinds of requests come, each in turn, at a steady rate. */
export async function watchMemory(
  stage: Stage,
  scenarios: readonly { readonly scenario: Scenario; readonly rate: number }[],
  timing: Timing,
  minutes: number,
): Promise<readonly MemorySample[]> {
  const { service, inspected } = await serveInspected(stage);
  const samples: MemorySample[] = [];
  let isOver = false;
  const load = (async () => {
    for (let turn = 0; !isOver; turn++) {
      const next = scenarios[turn % scenarios.length];
      if (next) await loadOf(stage, service.url, next.scenario, { ...timing, warmSeconds: 0 }, next.rate);
    }
  })();
  try {
    await sleep(Math.min(SETTLE_SECONDS, minutes * 6) * 1_000);
    const began = performance.now();
    for (let at = 0; at <= SAMPLES; at++) {
      const dueMs = began + (at / SAMPLES) * minutes * 60_000;
      await sleep(Math.max(dueMs - performance.now(), 0));
      samples.push({ atSeconds: (performance.now() - began) / 1_000, ...(await inspected.memory()) });
    }
  } finally {
    isOver = true;
    await load;
    inspected.close();
    await service.end();
  }
  return samples;
}
