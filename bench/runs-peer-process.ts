/** An engine beside ours, as a process of its own: opened by the first message, then one thing a message. */
import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "undici";
import { openBoss } from "./runs-engine-boss.ts";
import { openDbos } from "./runs-engine-dbos.ts";
import { openGraphile } from "./runs-engine-graphile.ts";
import { openSql } from "./runs-engine-sql.ts";
import type { Engine, EngineName, EngineOptions, Work } from "./runs-engine.ts";
import { latenciesOf, nowMs, type Latencies } from "./runs-latency.ts";

export type PeerAsk =
  | {
      readonly want: "open";
      readonly engine: EngineName;
      readonly connectionString: string;
      readonly work: Work;
      readonly targetUrl: string;
      readonly concurrency: number;
    }
  | { readonly want: "prefill"; readonly count: number }
  | { readonly want: "work" }
  | { readonly want: "light"; readonly rate: number; readonly seconds: number };

const ENGINES: Record<EngineName, (options: EngineOptions) => Promise<Engine>> = {
  sql: openSql,
  "graphile-worker": openGraphile,
  "pg-boss": openBoss,
  dbos: openDbos,
};

/** Connections and code are warm after so many runs. */
const WARM_RUNS = 15;
const LAST_RUNS_WAIT_MS = 5_000;

const tookMs: number[] = [];
let engine: Engine | null = null;

async function answer(ask: PeerAsk): Promise<Latencies | null> {
  if (ask.want === "open") {
    engine = await ENGINES[ask.engine]({
      connectionString: ask.connectionString,
      work: ask.work,
      step: stepOf(ask.work, ask.targetUrl),
      carried: (sentMs) => void (sentMs > 0 && tookMs.push(nowMs() - sentMs)),
      concurrency: ask.concurrency,
    });
    await engine.prepare();
    return null;
  }
  if (!engine) throw new Error("the engine is not open");
  if (ask.want === "prefill") await engine.enqueueMany(ask.count);
  if (ask.want === "work") await engine.work();
  if (ask.want === "light") return await runLightly(engine, ask.rate, ask.seconds);
  return null;
}

function stepOf(work: Work, targetUrl: string): EngineOptions["step"] {
  if (!work.gets) return async (ordinal) => ordinal;
  const target = new Pool(targetUrl, { connections: 64 });
  return async (ordinal) => {
    const { statusCode, body } = await target.request({ method: "GET", path: `/${ordinal}` });
    if (statusCode !== 200) throw new Error(`the target answered ${statusCode}`);
    return await body.json();
  };
}

/** Enqueues at a steady rate; a run's time ends when its last step has given its value, before the engine writes that down. */
async function runLightly(carrier: Engine, rate: number, seconds: number): Promise<Latencies> {
  await carrier.work();
  const count = Math.ceil(rate * seconds) + WARM_RUNS;
  const began = performance.now();
  const enqueued: Promise<void>[] = [];
  for (let sent = 0; sent < count; sent++) {
    await sleep(Math.max(began + (sent * 1_000) / rate - performance.now(), 0));
    enqueued.push(carrier.enqueue(nowMs()));
  }
  await Promise.all(enqueued);
  for (let waitedMs = 0; tookMs.length < count && waitedMs < LAST_RUNS_WAIT_MS; waitedMs += 20)
    await sleep(20);
  if (tookMs.length < count) throw new Error(`${count - tookMs.length} runs did not end`);
  return latenciesOf(tookMs.slice(WARM_RUNS));
}

process.on("message", (ask: PeerAsk) => {
  void answer(ask).then((found) => process.send?.(found ?? {}));
});
