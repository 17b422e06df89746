import { setTimeout as sleep } from "node:timers/promises";
import { loadOf, type Timing } from "./measure.ts";
import { startProgram, type Program } from "./processes.ts";
import type { Scenario } from "./scenarios.ts";
import type { Look, MemoryUse } from "./serve-process.ts";
import type { Stage } from "./stage.ts";

export interface MemorySample extends MemoryUse {
  readonly atSeconds: number;
}

const SAMPLES = 10;
/** Until the code is compiled and the pools are as large as the load makes them. */
const SETTLE_SECONDS = 10;

/** The role `api` in a process whose memory and CPU can be looked into. */
export async function serveOpenly(stage: Stage): Promise<Program & { readonly url: string }> {
  const program = startProgram("./serve-process.ts", {
    environment: stage.installation.environment,
    options: ["--expose-gc"],
  });
  const look: Look = { want: "url" };
  return { ...program, ...(await program.ask<{ url: string }>(look)) };
}

/** Heap and resident memory while all kinds of requests come, each in turn, at a steady rate. */
export async function watchMemory(
  stage: Stage,
  scenarios: readonly { readonly scenario: Scenario; readonly rate: number }[],
  timing: Timing,
  minutes: number,
): Promise<readonly MemorySample[]> {
  await using service = await serveOpenly(stage);
  const look: Look = { want: "memory" };
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
      samples.push({
        atSeconds: (performance.now() - began) / 1_000,
        ...(await service.ask<MemoryUse>(look)),
      });
    }
  } finally {
    isOver = true;
    await load;
  }
  return samples;
}
