import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { openSession, type Database } from "#db/connection/pool.ts";
import { latenciesOf, nowMs, type Latencies } from "./runs-latency.ts";
import type { Ground } from "./stage.ts";

interface Triggered {
  readonly installation: Ground;
  readonly apiKey: string;
}

const WARM_RUNS = 15;
const LAST_RUNS_WAIT_MS = 10_000;

/** Triggers over HTTP at a steady rate; a run's time ends when another session is told that it is completed. */
export async function runLightly(
  stage: Triggered,
  blueprint: string,
  rate: number,
  seconds: number,
): Promise<Latencies> {
  const service = await stage.installation.serveProcess();
  const agent = new Agent({ keepAlive: true });
  try {
    const count = Math.ceil(rate * seconds) + WARM_RUNS;
    await using watch = await CompletionWatch.open(stage);
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

/** The database tells of each completion in the transaction that makes it: a look every few milliseconds would take half a core. */
const TELLING = `
  create or replace function bench_tell() returns trigger language plpgsql as
    $$ begin perform pg_notify('bench_completed', new.id); return null; end $$;
  create or replace trigger bench_tell after update on run for each row
    when (new.status = 'completed' and old.status <> 'completed') execute function bench_tell()`;

/** Hears which runs are completed, in a session of its own. */
class CompletionWatch implements AsyncDisposable {
  readonly #db: Database;
  readonly #session: Database;
  /** Whichever comes first, the answer to the trigger or the end of its run. */
  readonly #sentMs = new Map<string, number>();
  readonly #completedMs = new Map<string, number>();
  readonly #tookMs: number[] = [];
  readonly #triggers: Promise<void>[] = [];

  private constructor(db: Database, session: Database) {
    this.#db = db;
    this.#session = session;
  }

  static async open({ installation }: Triggered): Promise<CompletionWatch> {
    const { db, connectionString } = installation.database;
    await db.query(TELLING);
    const onLost = (): void => void process.stderr.write("the bench's listening connection was lost\n");
    const session = await openSession({ connectionString }, { applicationName: "bench-light", onLost });
    const watch = new CompletionWatch(db, session);
    const client = await session.pool.connect();
    client.on("notification", ({ payload }) => watch.#hear(payload ?? "", nowMs()));
    client.release();
    await session.query("listen bench_completed");
    return watch;
  }

  expect(triggered: Promise<string>, sentMs: number): void {
    this.#triggers.push(
      triggered.then((id) => {
        this.#sentMs.set(id, sentMs);
        this.#count(id);
      }),
    );
  }

  async finish(waitMs: number): Promise<readonly number[]> {
    await Promise.all(this.#triggers);
    for (let waitedMs = 0; this.#tookMs.length < this.#triggers.length && waitedMs < waitMs; waitedMs += 20)
      await sleep(20);
    return this.#tookMs;
  }

  #hear(runId: string, atMs: number): void {
    this.#completedMs.set(runId, atMs);
    this.#count(runId);
  }

  #count(runId: string): void {
    const [sentMs, completedMs] = [this.#sentMs.get(runId), this.#completedMs.get(runId)];
    if (sentMs !== undefined && completedMs !== undefined) this.#tookMs.push(completedMs - sentMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#session.end();
    // What is drained after this pays nothing for it.
    await this.#db.query("drop trigger bench_tell on run");
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
