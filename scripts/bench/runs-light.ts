import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { latenciesOf, nowMs, type Latencies } from "./runs-latency.ts";
import type { Installation } from "../../test/service.ts";

interface Triggered {
  readonly installation: Installation;
  readonly apiKey: string;
}

const WARM_RUNS = 15;
const LOOK_EVERY_MS = 2;
const LAST_RUNS_WAIT_MS = 10_000;

/** Triggers over HTTP at a steady rate; a run's time ends when another session sees that it is completed. */
export async function runLightly(
  stage: Triggered,
  blueprint: string,
  rate: number,
  seconds: number,
): Promise<Latencies> {
  const service = await stage.installation.serve();
  const agent = new Agent({ keepAlive: true });
  try {
    const count = Math.ceil(rate * seconds) + WARM_RUNS;
    const watch = new CompletionWatch(stage);
    const began = performance.now();
    for (let sent = 0; sent < count; sent++) {
      await sleep(Math.max(began + (sent * 1_000) / rate - performance.now(), 0));
      const sentMs = nowMs();
      watch.expect(trigger(service.url, stage.apiKey, agent, blueprint), sentMs);
    }
    const tookMs = await watch.finish(LAST_RUNS_WAIT_MS);
    if (tookMs.length < count) throw new Error(`${count - tookMs.length} runs did not complete`);
    return latenciesOf(tookMs.slice(WARM_RUNS));
  } finally {
    agent.destroy();
    await service.end();
  }
}

/** Looks every other millisecond which of the expected runs are completed. */
class CompletionWatch {
  readonly #stage: Triggered;
  readonly #waiting = new Map<string, number>();
  readonly #tookMs: number[] = [];
  readonly #triggers: Promise<void>[] = [];
  readonly #watching: Promise<void>;
  #givenUpMs = Infinity;

  constructor(stage: Triggered) {
    this.#stage = stage;
    this.#watching = this.#watch();
  }

  expect(triggered: Promise<string>, sentMs: number): void {
    this.#triggers.push(triggered.then((id) => void this.#waiting.set(id, sentMs)));
  }

  async finish(waitMs: number): Promise<readonly number[]> {
    await Promise.all(this.#triggers);
    this.#givenUpMs = performance.now() + waitMs;
    await this.#watching;
    return this.#tookMs;
  }

  async #watch(): Promise<void> {
    const { db } = this.#stage.installation.database;
    const isOver = (): boolean =>
      this.#givenUpMs < performance.now() || (this.#givenUpMs < Infinity && this.#waiting.size === 0);
    for (; !isOver(); await sleep(LOOK_EVERY_MS)) {
      if (this.#waiting.size === 0) continue;
      const completed = await db.query<{ id: string }>({
        name: "bench_completed",
        text: `select id from run where id = any($1) and status = 'completed'`,
        values: [[...this.#waiting.keys()]],
      });
      for (const { id } of completed) {
        this.#tookMs.push(nowMs() - (this.#waiting.get(id) ?? 0));
        this.#waiting.delete(id);
      }
    }
  }
}

/** One trigger without a value; gives the run's id. */
export async function trigger(
  serviceUrl: string,
  apiKey: string,
  agent: Agent,
  blueprint: string,
): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };
  const url = `${serviceUrl}/api/v1/blueprints/${blueprint}/trigger`;
  const sent = request(url, { method: "POST", agent, headers }, (response) => {
    let text = "";
    response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    response.on("end", () => {
      if (response.statusCode === 202) resolve((JSON.parse(text) as { id: string }).id);
      else reject(new Error(`A trigger was answered ${response.statusCode}: ${text}`));
    });
  });
  sent.on("error", reject);
  sent.end("{}");
  return await promise;
}
