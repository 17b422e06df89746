/**
 * The load generator, a process of its own: one job a message, one result back. Not a library: on a machine whose cores are shared with the server, what the generator costs is taken
 * from what it measures, so it writes requests that were rendered before and reads no more of an answer than its status,
 * its length and whether the connection ends.
 */
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { FRESH } from "./fresh.ts";

export interface LoadJob {
  readonly host: string;
  readonly port: number;
  readonly connections: number;
  /** Whole requests as they go over the line, sent in turn. `FRESH` in one becomes a text that was never sent before. */
  readonly requests: readonly string[];
  readonly expectedStatus: number;
  /** Requests a second that are due, whatever the answers do; null: each connection sends the next when it has its answer. */
  readonly rate: number | null;
  readonly warmSeconds: number;
  readonly seconds: number;
}

export interface LoadResult {
  readonly perSecond: number;
  /** All right answers, with those of the warm-up and those that came after the time was over. */
  readonly answered: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Answers with another status, and connections that broke. */
  readonly errors: number;
  readonly firstError: string | null;
}

const TICK_MS = 1;
const LAST_ANSWERS_MS = 2_000;
const STATUS_AT = "HTTP/1.1 ".length;

/** Runs one job to its end. */
async function generateLoad(job: LoadJob): Promise<LoadResult> {
  const run = new LoadRun(job);
  const seconds = await run.finish();
  return run.result(seconds);
}

/** One job under way: its connections, the requests that are due, and what was measured. */
class LoadRun {
  readonly #job: LoadJob;
  readonly #idle: Line[] = [];
  readonly #due: number[] = [];
  readonly #latenciesMs: number[] = [];
  readonly #fresh = `${process.pid}-${Date.now().toString(36)}-`;
  #sent = 0;
  #answered = 0;
  #errors = 0;
  #firstError: string | null = null;
  #isMeasuring = false;
  #isOver = false;

  constructor(job: LoadJob) {
    this.#job = job;
  }

  async finish(): Promise<number> {
    const lines = Array.from({ length: this.#job.connections }, () => new Line(this.#job, this));
    if (this.#job.rate !== null) void this.#pace(this.#job.rate);
    await sleep(this.#job.warmSeconds * 1_000);
    this.#isMeasuring = true;
    const began = performance.now();
    await sleep(this.#job.seconds * 1_000);
    this.#isMeasuring = false;
    const seconds = (performance.now() - began) / 1_000;
    this.#isOver = true;
    // A request that was cut off would have cost something and not be counted.
    const givenUpMs = performance.now() + LAST_ANSWERS_MS;
    while (lines.some((line) => line.isWaiting) && performance.now() < givenUpMs) await sleep(TICK_MS);
    for (const line of lines) line.end();
    return seconds;
  }

  result(seconds: number): LoadResult {
    const sorted = Float64Array.from(this.#latenciesMs).toSorted();
    const at = (share: number): number =>
      sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
    return {
      perSecond: sorted.length / seconds,
      answered: this.#answered,
      p50Ms: at(0.5),
      p99Ms: at(0.99),
      maxMs: sorted.at(-1) ?? 0,
      errors: this.#errors,
      firstError: this.#firstError,
    };
  }

  /**
   * Makes requests due at their time. Latency counts from there, so that a server (or a generator) that falls behind is not
   * spared the requests that it has kept from being sent: no coordinated omission.
   */
  async #pace(rate: number): Promise<void> {
    const began = performance.now();
    for (let made = 0; !this.#isOver; await sleep(TICK_MS)) {
      const wanted = ((performance.now() - began) / 1_000) * rate;
      for (; made < wanted; made++) {
        const dueMs = began + (made / rate) * 1_000;
        const line = this.#idle.pop();
        if (line) line.send(this.#nextRequest(), dueMs);
        else this.#due.push(dueMs);
      }
    }
  }

  #nextRequest(): string {
    const { requests } = this.#job;
    const request = requests[this.#sent++ % requests.length] ?? "";
    return request.includes(FRESH) ? request.replace(FRESH, `${this.#fresh}${this.#sent}`) : request;
  }

  /** A connection wants its next request. */
  ready(line: Line): void {
    if (this.#isOver) return;
    if (this.#job.rate === null) return line.send(this.#nextRequest(), performance.now());
    const dueMs = this.#due.shift();
    if (dueMs === undefined) this.#idle.push(line);
    else line.send(this.#nextRequest(), dueMs);
  }

  answered(status: number, dueMs: number): void {
    if (status !== this.#job.expectedStatus) return this.failed(`answered ${status}`);
    this.#answered++;
    if (this.#isMeasuring) this.#latenciesMs.push(performance.now() - dueMs);
  }

  failed(message: string): void {
    if (this.#isOver) return;
    this.#errors++;
    this.#firstError ??= message;
  }
}

/** One connection, opened again whenever the server ends it. */
class Line {
  readonly #job: LoadJob;
  readonly #run: LoadRun;
  #socket: Socket;
  #text = "";
  #dueMs: number | null = null;
  #isOver = false;

  constructor(job: LoadJob, run: LoadRun) {
    this.#job = job;
    this.#run = run;
    this.#socket = this.#open();
  }

  get isWaiting(): boolean {
    return this.#dueMs !== null;
  }

  send(request: string, dueMs: number): void {
    this.#dueMs = dueMs;
    this.#socket.write(request, "latin1");
  }

  end(): void {
    this.#isOver = true;
    this.#socket.destroy();
  }

  #open(): Socket {
    this.#text = "";
    const socket = connect({ host: this.#job.host, port: this.#job.port, noDelay: true });
    socket.on("connect", () => this.#run.ready(this));
    socket.on("data", (bytes) => this.#read(bytes));
    socket.on("error", () => {});
    socket.on("close", () => {
      if (this.#socket !== socket || this.#isOver) return;
      if (this.#dueMs !== null) this.#run.failed("the connection ended without an answer");
      this.#dueMs = null;
      this.#socket = this.#open();
    });
    return socket;
  }

  #read(bytes: Buffer): void {
    this.#text += bytes.toString("latin1");
    const headEnd = this.#text.indexOf("\r\n\r\n");
    if (headEnd < 0) return;
    const head = this.#text.slice(0, headEnd).toLowerCase();
    const length = Number(/content-length: (\d+)/.exec(head)?.[1] ?? 0);
    if (this.#text.length < headEnd + 4 + length || this.#dueMs === null) return;
    this.#text = "";
    this.#run.answered(Number(head.slice(STATUS_AT, STATUS_AT + 3)), this.#dueMs);
    this.#dueMs = null;
    if (!head.includes("connection: close")) return this.#run.ready(this);
    this.#socket.destroy();
    this.#socket = this.#open();
  }
}

process.on("message", (job: LoadJob) => {
  void generateLoad(job).then((result) => process.send?.(result));
});
