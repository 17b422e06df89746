import { setTimeout as sleep } from "node:timers/promises";

/** An answer of the public API. */
export interface ApiAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed body; undefined for an empty one. */
  readonly body: any;
}

/** A customer's backend. */
export interface Caller {
  /** With another key, of the same service. */
  as(apiKey: string): Caller;
  get(path: string, headers?: Record<string, string>): Promise<ApiAnswer>;
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<ApiAnswer>;
  put(path: string, body?: unknown, headers?: Record<string, string>): Promise<ApiAnswer>;
  delete(path: string, headers?: Record<string, string>): Promise<ApiAnswer>;
  /** As `get`; of a stream that goes on, only what comes first. */
  peek(path: string): Promise<ApiAnswer>;
  /** Polls until the run is terminal (20 s at most) and gives the last projection, with every step seen on the way. */
  waitForRun(
    runId: string,
    timeoutMs?: number,
  ): Promise<{ readonly body: any; readonly steps: readonly string[] }>;
}

/** The pause between two polls grows with the wait, so that a long one costs little: fifty of them at once are the service's main work. */
const POLL_MS = { min: 25, max: 200, ofWait: 1 / 8 };
const pauseMs = (waitedMs: number): number => Math.min(POLL_MS.min + waitedMs * POLL_MS.ofWait, POLL_MS.max);

export function openCaller(serviceUrl: string, apiKey: string): Caller {
  const call = async (
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
    peeks = false,
  ): Promise<ApiAnswer> => {
    const isForm = body instanceof FormData;
    const response = await fetch(`${serviceUrl}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${apiKey}`,
        ...(body === undefined || isForm ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined
        ? {}
        : { body: isForm || typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = peeks && response.ok ? await beginningOf(response) : await response.text();
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: text === "" || (peeks && response.ok) ? undefined : JSON.parse(text),
    };
  };
  const caller: Caller = {
    as: (key) => openCaller(serviceUrl, key),
    get: async (path, headers) => await call("GET", path, undefined, headers),
    post: async (path, body, headers) => await call("POST", path, body, headers),
    put: async (path, body, headers) => await call("PUT", path, body, headers),
    delete: async (path, headers) => await call("DELETE", path, undefined, headers),
    peek: async (path) => await call("GET", path, undefined, {}, true),
    waitForRun: async (runId, timeoutMs = 20_000) => {
      const steps: string[] = [];
      const startedAt = performance.now();
      for (;;) {
        const { status, text, body } = await caller.get(`/blueprint-runs/${runId}/status`);
        if (status === 200) {
          const step = `${body.status}/${body.progress_step}`;
          if (steps.at(-1) !== step) steps.push(step);
          if (body.ended_at !== null) return { body, steps };
        } else if (status !== 503) {
          // 503 passes, as its Retry-After says; any other answer is what the test must see.
          throw new Error(`the status of run ${runId} was answered ${status}: ${text}`);
        }
        const waitedMs = performance.now() - startedAt;
        if (waitedMs > timeoutMs) throw new Error(`run ${runId} did not end in time: ${steps.join(", ")}`);
        await sleep(pauseMs(waitedMs));
      }
    },
  };
  return caller;
}

async function beginningOf({ body }: Response): Promise<string> {
  const reader = body?.getReader();
  const { value } = (await reader?.read()) ?? {};
  await reader?.cancel();
  return new TextDecoder().decode(value);
}

/** Opens the hosted form and submits it as a browser without script would. */
export async function submitHostedForm(
  hostedUrl: string,
  values: Readonly<Record<string, string>>,
): Promise<Response> {
  const page = await (await fetch(hostedUrl)).text();
  const form = page.includes('enctype="multipart/form-data"') ? new FormData() : new URLSearchParams();
  const files = new Set<string>();
  for (const [input] of page.matchAll(/<input\b[^>]*>/g)) {
    const attribute = (name: string): string => new RegExp(`\\b${name}="([^"]*)"`).exec(input)?.[1] ?? "";
    if (attribute("type") === "hidden") form.set(attribute("name"), attribute("value"));
    if (attribute("type") === "file") files.add(attribute("name"));
  }
  for (const [name, value] of Object.entries(values)) {
    if (form instanceof FormData && files.has(name)) form.set(name, new Blob([value]), "a-file.pem");
    else form.set(name, value);
  }
  return await fetch(hostedUrl, { method: "POST", body: form, redirect: "manual" });
}

/** A credential of a strategy, collected through the hosted form. Gives its id. */
export async function connect(
  caller: Caller,
  strategyId: string,
  values: Readonly<Record<string, string>>,
): Promise<string> {
  const session = await caller.post("/credential-sessions", { strategy_id: strategyId });
  const submitted = await submitHostedForm(session.body.hosted_url, values);
  if (submitted.status >= 400)
    throw new Error(`the hosted form answered ${submitted.status}: ${await submitted.text()}`);
  const { body } = await caller.get(`/credential-sessions/${session.body.id}`);
  return body.credential_id;
}
