import { setTimeout as sleep } from "node:timers/promises";
import { CommandFailed } from "#cli/output.ts";

/** The customer's backend. It uses six endpoints of the API and nothing internal to the service. */
export interface Backend {
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
}

export interface CallOptions {
  readonly body?: unknown;
  /** Instead of a JSON body: for triggers with files. */
  readonly form?: FormData;
  readonly idempotencyKey?: string;
}

export interface Answer {
  readonly status: number;
  readonly replayed: boolean;
  readonly body: Record<string, unknown>;
}

const TRIES = 100;
const AGAIN_MS = 200;

/** `stopped`: after it no request is sent any more, nor sent again. */
export function openBackend(serviceUrl: string, apiKey: string, stopped: AbortSignal): Backend {
  return {
    call: async (method, path, options = {}) => {
      // Requests are retried while the service restarts, which idempotency keys make safe.
      for (let tries = 1; ; tries++) {
        try {
          return await send(`${serviceUrl}/api/v1${path}`, method, apiKey, stopped, options);
        } catch (error) {
          if (error instanceof CommandFailed || stopped.aborted || tries === TRIES) throw error;
          await sleep(AGAIN_MS, undefined, { signal: stopped });
        }
      }
    },
  };
}

async function send(
  url: string,
  method: string,
  apiKey: string,
  signal: AbortSignal,
  options: CallOptions,
): Promise<Answer> {
  const response = await fetch(url, {
    method,
    signal,
    headers: {
      authorization: `Bearer ${apiKey}`,
      ...(options.idempotencyKey === undefined ? {} : { "idempotency-key": options.idempotencyKey }),
      ...(options.body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
    ...(options.form === undefined ? {} : { body: options.form }),
  });
  const text = await response.text();
  if (response.status === 503) throw new Error("not available yet");
  if (!response.ok) throw new CommandFailed(`${method} ${url} answered ${response.status}: ${text}`);
  return {
    status: response.status,
    replayed: response.headers.get("idempotent-replay") === "true",
    body: (text === "" ? {} : JSON.parse(text)) as Record<string, unknown>,
  };
}
