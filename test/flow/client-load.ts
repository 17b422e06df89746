import { setTimeout as sleep } from "node:timers/promises";
import type { ApiAnswer, Caller } from "../caller.ts";

/** What clients have met who never give up: each trigger has its key and is repeated until it is taken. */
export interface Load extends AsyncDisposable {
  readonly accepted: readonly string[];
  /** Every answer that was not the wanted one, as `status`, in order of first sight, with how often. */
  readonly refusals: ReadonlyMap<string, number>;
  readonly longestMs: number;
  /** When the last request was answered as wanted. */
  readonly servedAt: number;
  /** Sends no new requests; resolves when each has been accepted. */
  stop(): Promise<void>;
}

const BETWEEN_MS = 50;
const RETRY_MS = 100;

/** `count` clients that trigger one run after the other. An answer that is not 202 is noted with its body's form. */
export function startLoad(caller: Caller, path: string, body: unknown, count: number, name: string): Load {
  const load = { accepted: [] as string[], refusals: new Map<string, number>(), longestMs: 0, servedAt: 0 };
  let isOver = false;
  let isGivenUp = false;
  const once = async (key: string): Promise<boolean> => {
    const begun = performance.now();
    const answer = await caller
      .post(path, body, { "Idempotency-Key": key })
      .catch((error: unknown) => String(error));
    load.longestMs = Math.max(load.longestMs, performance.now() - begun);
    if (typeof answer !== "string" && answer.status === 202) {
      load.accepted.push(answer.body.id);
      load.servedAt = performance.now();
      return true;
    }
    const form = typeof answer === "string" ? answer : formOf(answer);
    load.refusals.set(form, (load.refusals.get(form) ?? 0) + 1);
    return false;
  };
  const clients = Array.from({ length: count }, async (_, client) => {
    for (let number = 0; !isOver; number++) {
      while (!(await once(`${name}-${client}-${number}`)) && !isGivenUp) await sleep(RETRY_MS);
      await sleep(BETWEEN_MS);
    }
  });
  return Object.assign(load, {
    stop: async (): Promise<void> => {
      isOver = true;
      await Promise.all(clients);
    },
    [Symbol.asyncDispose]: async (): Promise<void> => {
      isOver = isGivenUp = true;
      await Promise.all(clients);
    },
  });
}

/** `503 internal_error, Retry-After 1`: status, type of the envelope, header. */
function formOf({ status, body, headers }: ApiAnswer): string {
  const isEnvelope = JSON.stringify(Object.keys(body ?? {})) === '["error"]';
  return `${status} ${isEnvelope ? body.error.type : "without the envelope"}, Retry-After ${headers.get("retry-after")}`;
}

/** What the service answers while its database is away, and nothing else. */
export const AWAY = "503 internal_error, Retry-After 1";
