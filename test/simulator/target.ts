import { GateError } from "#outbound/gate-error.ts";
import type { Gate, GatePolicy, GateRequest, GateResponse } from "#outbound/gate.ts";
import type { SeededRandom } from "./seeded-random.ts";
import type { SimProcess } from "./sim-process.ts";
import type { World } from "./world.ts";

export const TARGET = "https://target.example";

/** A write that the target has taken. */
export interface BookedWrite {
  readonly run: string;
  readonly number: string;
  readonly token: string;
  readonly atMs: number;
  readonly from: string;
}

/** How the target behaves just now. */
export interface Mood {
  /** Of requests: no connection comes about. */
  readonly down: number;
  /** Takes a write, and says 500. */
  readonly lies: number;
  /** Says 429, and takes nothing. */
  readonly busy: number;
  /** Takes a write, and its answer never comes. */
  readonly silent: number;
  /** Longest that it thinks about an answer. */
  readonly thinksMs: number;
  /** Longest that a connection to it takes. */
  readonly connectsMs: number;
}

export const WELL: Mood = { down: 0, lies: 0, busy: 0, silent: 0, thinksMs: 40, connectsMs: 5 };

/** A request comes to the target within this of having left: one that is still on its way when it is looked up is not simulated. */
const WAY_MS = 2;
/** How often a stubborn target says no to one request. */
const REFUSALS = 15;
const SAYS_NO_ANSWER_MS = 10 * 60_000;

/** A target in this process, which keeps books of what it was told. It answers as its mood and its chance say. */
export class ScriptedTarget {
  readonly world: World;
  readonly writes: BookedWrite[] = [];
  /** When each request came, by its path. */
  readonly reads: { readonly path: string; readonly atMs: number; readonly run: string }[] = [];
  mood: Mood = WELL;
  /** A process has sent what ends it. */
  onPoison: (self: SimProcess) => void = () => {};
  readonly #random: SeededRandom;
  readonly #asks = new Map<string, number>();

  constructor(world: World) {
    this.world = world;
    this.#random = world.random.fork("target");
  }

  has(run: string, number: string): boolean {
    return this.writes.some((write) => write.run === run && write.number === number);
  }

  /** The way to the target from a process, in place of the egress gate's. */
  gateOf(self: SimProcess): Gate {
    return {
      send: async (request, policy, signal) => await this.#send(self, request, policy, signal),
      present: () => this.gateOf(self),
      close: async () => {},
    };
  }

  async #send(
    self: SimProcess,
    request: GateRequest,
    policy: GatePolicy,
    signal: AbortSignal,
  ): Promise<GateResponse> {
    const random = this.#random;
    const info = { sameOriginAsFirst: true, method: request.method };
    await policy.prepareHop?.(request.url, info);
    signal.throwIfAborted();
    const answered = Promise.withResolvers<GateResponse>();
    // It may be over before anybody waits for the answer.
    answered.promise.catch(() => {});
    const abort = (): void => answered.reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    const callOff = self.clock.after(policy.timeoutMs, () =>
      answered.reject(new GateError("timeout", `${request.url.host}: no answer in ${policy.timeoutMs} ms`)),
    );
    try {
      await self.clock.sleep(random.between(0.5, this.mood.connectsMs), signal);
      if (random.isHit(this.mood.down))
        throw new GateError("unreachable", `${request.url.host}: no connection came about`);
      policy.mayLeave?.();
      // From here on it has left: whatever becomes of the process, it arrives.
      this.world.after(random.between(0.1, WAY_MS), `target < ${self.name} ${request.method}`, () => {
        const { afterMs, ...answer } = this.#take(self, request);
        self.after(afterMs, "target's answer", () => answered.resolve(responseOf(request.url, answer)));
      });
      return await answered.promise;
    } finally {
      callOff();
      signal.removeEventListener("abort", abort);
    }
  }

  #take(self: SimProcess, { method, url, body }: GateRequest): Answer & { readonly afterMs: number } {
    const random = this.#random;
    const thinksMs = random.between(1, this.mood.thinksMs);
    if (method === "POST") {
      const { run, number, token } = JSON.parse(String(body)) as BookedWrite;
      if (random.isHit(this.mood.busy)) {
        this.world.tell("target", `says 429 to ${number} of ${self.name}`);
        return { status: 429, json: {}, retryAfterS: 1, afterMs: thinksMs };
      }
      this.world.tell("target", `takes ${number} of ${run} from ${self.name}`);
      this.writes.push({ run, number, token, atMs: this.world.nowMs, from: self.name });
      if (random.isHit(this.mood.silent)) return { status: 200, json: {}, afterMs: SAYS_NO_ANSWER_MS };
      if (random.isHit(this.mood.lies)) return { status: 500, json: {}, afterMs: thinksMs };
      return { status: 200, json: { number }, afterMs: thinksMs };
    }
    const token = url.searchParams.get("token");
    if (token !== null) {
      const there = this.writes.some((write) => write.token === token);
      return { status: 200, json: { there }, afterMs: thinksMs };
    }
    const run = url.searchParams.get("run") ?? "";
    this.reads.push({ path: url.pathname, atMs: this.world.nowMs, run });
    if (url.pathname === "/stubborn") {
      const name = url.search;
      const asks = (this.#asks.get(name) ?? 0) + 1;
      this.#asks.set(name, asks);
      if (asks <= REFUSALS) return { status: 503, json: {}, afterMs: thinksMs };
    }
    if (url.pathname === "/poison")
      this.world.after(random.between(100, 12_000), `poison for ${self.name}`, () => this.onPoison(self));
    if (url.pathname === "/asked") {
      const asks = (this.#asks.get(run) ?? 0) + 1;
      this.#asks.set(run, asks);
      return {
        status: 200,
        json: { state: asks > 3 ? "done" : "queued", items: [{ asks }] },
        afterMs: thinksMs,
      };
    }
    const afterMs = url.pathname === "/poison" ? SAYS_NO_ANSWER_MS : thinksMs;
    return { status: 200, json: { items: [{ number: "one" }, { number: "two" }] }, afterMs };
  }
}

interface Answer {
  readonly status: number;
  readonly json: unknown;
  readonly retryAfterS?: number;
}

function responseOf(url: URL, { status, json, retryAfterS }: Answer): GateResponse {
  const text = JSON.stringify(json);
  const headers = new Map([["content-type", "application/json"]]);
  if (retryAfterS !== undefined) headers.set("retry-after", String(retryAfterS));
  return {
    status,
    url: url.href,
    isRedirected: false,
    headers,
    body: Buffer.from(text),
    kept: null,
    text: () => text,
  };
}
