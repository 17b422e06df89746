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
/** How many processes a request ends before it is answered, and how long that takes: longer than others may wait for it. */
const LINGERS = { deaths: 2, ms: 45_000 };
const LOGIN_MS = [1_500, 3_000] as const;
/** Of sessions that are older than this when they are asked for, how many it has forgotten by then. */
const KEEPS_MS = 1_000;
const FORGETS = 0.2;

/** A target in this process, which keeps books of what it was told. It answers as its mood and its chance say. */
export class ScriptedTarget {
  readonly world: World;
  readonly writes: BookedWrite[] = [];
  /** When each request was sent, by its path. */
  readonly reads: { readonly path: string; readonly sentMs: number; readonly run: string }[] = [];
  mood: Mood;
  /** How it behaves when no fault makes it behave otherwise. */
  readonly usual: Mood;
  /** Logins with one credential at the same time, of processes that have not stood still. */
  readonly loginsTogether: string[] = [];
  /** A process has sent what ends it. */
  onPoison: (self: SimProcess) => void = () => {};
  readonly #random: SeededRandom;
  readonly #asks = new Map<string, number>();
  readonly #logins = new Map<
    string,
    {
      readonly self: SimProcess;
      readonly request: GateRequest;
      readonly sinceMs: number;
      readonly untilMs: number;
    }
  >();
  /** When each was given. */
  readonly #sessions = new Map<string, number>();
  /** Those whose senders do not wait for an answer any more. */
  readonly #left = new WeakSet<GateRequest>();

  constructor(world: World, usual: Mood) {
    this.world = world;
    this.mood = this.usual = usual;
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
      openProxy: async () => await Promise.reject(new Error("the simulated target has no browsers")),
      close: async () => {},
    };
  }

  async #send(
    self: SimProcess,
    request: GateRequest,
    policy: GatePolicy,
    signal: AbortSignal,
  ): Promise<GateResponse> {
    const random = this.world.chance(
      `${self.name} ${request.method} ${request.url.href} ${String(request.body)}`,
    );
    const info = { sameOriginAsFirst: true, method: request.method };
    const added = (await policy.prepareHop?.(request.url, info)) ?? [];
    const sent = [...added, ...request.headers];
    const [, session = ""] = sent.find(([name]) => name.toLowerCase() === "authorization") ?? [];
    signal.throwIfAborted();
    const sentMs = this.world.nowMs;
    const answered = Promise.withResolvers<GateResponse>();
    // It may be over before anybody waits for the answer.
    answered.promise.catch(() => {});
    const abort = (): void => {
      this.#left.add(request);
      answered.reject(signal.reason);
    };
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
        const { afterMs, ...answer } = this.#take(self, request, session.replace("Bearer ", ""), sentMs);
        self.after(afterMs, "target's answer", () => answered.resolve(responseOf(request.url, answer)));
      });
      return await answered.promise;
    } finally {
      callOff();
      signal.removeEventListener("abort", abort);
    }
  }

  #take(self: SimProcess, request: GateRequest, token: string, sentMs: number): Answer {
    const { method, url, body } = request;
    if (url.pathname === "/login") return this.#logIn(self, request);
    if (url.pathname === "/session") return this.#look(token);
    if (method === "POST") return this.#takeWrite(self, JSON.parse(String(body)) as BookedWrite);
    return this.#answerRead(self, url, sentMs);
  }

  #takeWrite(self: SimProcess, { run, number, token }: BookedWrite): Answer {
    const random = this.#random;
    const afterMs = random.between(1, this.mood.thinksMs);
    if (random.isHit(this.mood.busy)) {
      this.world.tell("target", `says 429 to ${number} of ${self.name}`);
      return { status: 429, json: {}, retryAfterS: 1, afterMs };
    }
    this.world.tell("target", `takes ${number} of ${run} from ${self.name}`);
    this.writes.push({ run, number, token, atMs: this.world.nowMs, from: self.name });
    if (random.isHit(this.mood.silent)) return { status: 200, json: {}, afterMs: SAYS_NO_ANSWER_MS };
    if (random.isHit(this.mood.lies)) return { status: 500, json: {}, afterMs };
    return { status: 200, json: { number }, afterMs };
  }

  /** It takes seconds, as logins that go over several pages do. */
  #logIn(self: SimProcess, request: GateRequest): Answer {
    const { user } = JSON.parse(String(request.body)) as Login;
    const { nowMs } = this.world;
    const afterMs = this.#random.between(...LOGIN_MS);
    const last = this.#logins.get(user);
    const isOver = last === undefined || last.untilMs < nowMs || this.#left.has(last.request);
    if (!isOver && last.self.isUp && last.self.disturbedAtMs < last.sinceMs)
      this.loginsTogether.push(`${self.name} logs ${user} in while ${last.self.name} does`);
    this.#logins.set(user, { self, request, sinceMs: nowMs, untilMs: nowMs + afterMs });
    this.world.tell("target", `logs ${user} in for ${self.name}`);
    const token = `session-${user}-${this.#sessions.size}`;
    this.#sessions.set(token, nowMs + afterMs);
    return { status: 200, json: { token }, afterMs };
  }

  /** Now and then it has forgotten a session of a while ago. */
  #look(token: string): Answer {
    const afterMs = this.#random.between(1, this.mood.thinksMs);
    const ageMs = this.world.nowMs - (this.#sessions.get(token) ?? 0);
    if (ageMs > KEEPS_MS && this.#random.isHit(FORGETS)) this.#sessions.delete(token);
    return { status: this.#sessions.has(token) ? 200 : 401, json: {}, afterMs };
  }

  #answerRead(self: SimProcess, url: URL, sentMs: number): Answer {
    const random = this.#random;
    const afterMs = random.between(1, this.mood.thinksMs);
    const token = url.searchParams.get("token");
    if (token !== null) {
      const there = this.writes.some((write) => write.token === token);
      return { status: 200, json: { there }, afterMs };
    }
    const run = url.searchParams.get("run") ?? "";
    this.reads.push({ path: url.pathname, sentMs, run });
    const asks = (this.#asks.get(url.search) ?? 0) + 1;
    this.#asks.set(url.search, asks);
    switch (url.pathname) {
      case "/stubborn":
        return asks > REFUSALS ? ok(afterMs) : { status: 503, json: {}, afterMs };
      case "/poison":
        this.#poison(self, 12_000);
        return ok(SAYS_NO_ANSWER_MS);
      case "/lingers":
        if (asks > LINGERS.deaths) return ok(LINGERS.ms);
        this.#poison(self, 1_000);
        return ok(SAYS_NO_ANSWER_MS);
      case "/asked":
        return {
          status: 200,
          json: { state: asks > 3 ? "done" : "queued", items: [{ asks }] },
          afterMs,
        };
      default:
        return ok(afterMs);
    }
  }

  #poison(self: SimProcess, withinMs: number): void {
    const afterMs = this.#random.between(100, withinMs);
    this.world.after(afterMs, `poison for ${self.name}`, () => this.onPoison(self));
  }
}

const ok = (afterMs: number): Answer => ({
  status: 200,
  json: { items: [{ number: "one" }, { number: "two" }] },
  afterMs,
});

interface Login {
  readonly user: string;
}

interface Answer {
  readonly status: number;
  readonly json: unknown;
  readonly afterMs: number;
  readonly retryAfterS?: number;
}

function responseOf(url: URL, { status, json, retryAfterS }: Omit<Answer, "afterMs">): GateResponse {
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
