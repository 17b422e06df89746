import { OPERATIONS } from "./api-types.ts";
import { ApiError, ConnectionError, errorOf, LatchkeyError } from "./errors.ts";

export interface ClientOptions {
  /** An API key of your account, `lk_…`. Keep it in your backend. */
  readonly apiKey: string;
  /** The URL of your Latchkey, such as `https://connect.example.com`, with or without `/api/v1`. */
  readonly baseUrl: string;
  /** How long one attempt of a request may take. Default: 60,000. */
  readonly timeoutMs?: number | undefined;
  /** How often a failed request is repeated. Default: 3. */
  readonly maxRetries?: number | undefined;
  /** Replaces the runtime's `fetch`, for proxies and tests. */
  readonly fetch?: typeof globalThis.fetch | undefined;
}

export interface RequestOptions {
  /** Ends the request, its retries and its pauses. */
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
  readonly maxRetries?: number | undefined;
}

export interface WriteOptions extends RequestOptions {
  /**
   * Identifies the operation for 24 hours: the same key and the same body have one effect, however often they are sent. By
   * default each call gets a key of its own, which only covers the retries of that call.
   */
  readonly idempotencyKey?: string | undefined;
}

export interface Call {
  readonly operation: keyof typeof OPERATIONS;
  readonly parameters?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON, unless it is FormData. */
  readonly body?: unknown;
  readonly options?: WriteOptions | undefined;
}

const PAUSE_MS = 500;
const PAUSE_MAX_MS = 8_000;
/** A longer `Retry-After` is the caller's decision. */
const RETRY_AFTER_MAX_MS = 60_000;

/** Sends requests: with the API key, a time limit, and retries that keep their idempotency key. */
export class Connection {
  /** Without `/api/v1`, and without a slash at the end. */
  readonly #root: string;
  readonly #apiKey: string;
  readonly #timeoutMs: number;
  readonly #maxRetries: number;
  readonly #fetch: typeof globalThis.fetch;

  constructor({ apiKey, baseUrl, timeoutMs = 60_000, maxRetries = 3, fetch }: ClientOptions) {
    if (!/^\S+$/.test(apiKey ?? ""))
      throw new LatchkeyError("apiKey is missing: pass a key of your account, lk_…");
    if (!URL.canParse(baseUrl))
      throw new LatchkeyError("baseUrl is not a URL: pass one such as https://connect.example.com");
    this.#root = new URL(baseUrl).href
      .replace(/[?#].*$/, "")
      .replace(/\/+$/, "")
      .replace(/\/api\/v1$/, "");
    this.#apiKey = apiKey;
    this.#timeoutMs = timeoutMs;
    this.#maxRetries = maxRetries;
    // Called as a function: as a method, it would have the wrong `this` in browsers and workers.
    this.#fetch = fetch ?? ((...request) => globalThis.fetch(...request));
  }

  /** The response's JSON. Throws ApiError or ConnectionError. */
  async json<T>(call: Call): Promise<T> {
    return await this.send(call, async (response) => await readJson<T>(response));
  }

  /** A download link, which needs no API key. */
  async download(
    url: string,
    headers: Readonly<Record<string, string>>,
    signal?: AbortSignal,
  ): Promise<Response> {
    return await this.#attempt(url, { headers }, { signal }, async (response) => response);
  }

  /** What `read` makes of a successful response, whose body is within the time limit only until `read` returns. */
  async send<T>(call: Call, read: (response: Response) => Promise<T>): Promise<T> {
    const { options = {} } = call;
    const { url, init } = this.#request(call);
    for (let attempt = 0; ; attempt += 1)
      try {
        return await this.#attempt(url, init, options, read);
      } catch (error) {
        const pauseMs = pauseBefore(error, attempt);
        options.signal?.throwIfAborted();
        if (pauseMs === undefined || attempt >= (options.maxRetries ?? this.#maxRetries)) throw error;
        await sleep(pauseMs, options.signal);
      }
  }

  #request({ operation, parameters = {}, query = {}, headers = {}, body, options }: Call): {
    url: string;
    init: RequestInit;
  } {
    const { method, path, isVersioned } = OPERATIONS[operation];
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(parameters[name] ?? ""),
    );
    const search = new URLSearchParams(
      Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined),
    ).toString();
    const isForm = body instanceof FormData;
    return {
      url: `${this.#root}${isVersioned ? "/api/v1" : ""}${filled}${search && `?${search}`}`,
      init: {
        method,
        headers: {
          Accept: "application/json",
          Authorization: `Bearer ${this.#apiKey}`,
          // The same key in each attempt: several attempts have one effect.
          ...(method !== "GET" && { "Idempotency-Key": options?.idempotencyKey ?? crypto.randomUUID() }),
          ...(body !== undefined && !isForm && { "Content-Type": "application/json" }),
          ...headers,
        },
        ...(body !== undefined && { body: isForm ? body : JSON.stringify(body) }),
      },
    };
  }

  async #attempt<T>(
    url: string,
    init: RequestInit,
    options: RequestOptions,
    read: (response: Response) => Promise<T>,
  ): Promise<T> {
    const timer = new AbortController();
    const timeoutMs = options.timeoutMs ?? this.#timeoutMs;
    const timeout = setTimeout(
      () => timer.abort(new LatchkeyError(`No response after ${timeoutMs} ms`)),
      timeoutMs,
    );
    try {
      const signal = options.signal ? AbortSignal.any([timer.signal, options.signal]) : timer.signal;
      const response = await this.#fetch(url, { ...init, redirect: "manual", signal });
      if (response.status >= 300 && response.status < 400)
        throw new LatchkeyError(`baseUrl redirects to ${originOf(response, url)}: use that URL instead`);
      if (!response.ok) throw withRetryAfter(await errorOf(response), response);
      return await read(response);
    } catch (error) {
      options.signal?.throwIfAborted();
      if (error instanceof LatchkeyError && !timer.signal.aborted) throw error;
      throw new ConnectionError(`The request failed without a response`, { cause: error });
    } finally {
      clearTimeout(timeout);
    }
  }
}

/** Throws LatchkeyError if it is not JSON. */
export async function readJson<T>(response: Response): Promise<T> {
  const text = await response.text();
  try {
    return JSON.parse(text) as T;
  } catch {
    throw new LatchkeyError("The response is not JSON, so it is not from Latchkey: check baseUrl");
  }
}

const originOf = ({ headers }: Response, url: string): string => {
  const location = headers.get("location") ?? "";
  return URL.canParse(location, url) ? new URL(location, url).origin : "another place";
};

const retryAfterMs = new WeakMap<ApiError, number>();

function withRetryAfter(error: ApiError, { headers }: Response): ApiError {
  const value = headers.get("retry-after") ?? "";
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000;
  if (seconds >= 0) retryAfterMs.set(error, seconds * 1000);
  return error;
}

/** How long to wait before the request is repeated; undefined if repeating it is of no use. */
function pauseBefore(error: unknown, attempt: number): number | undefined {
  // Full jitter: clients that failed together do not come back together.
  const pauseMs = Math.random() * Math.min(PAUSE_MAX_MS, PAUSE_MS * 2 ** attempt);
  if (error instanceof ConnectionError) return pauseMs;
  if (!(error instanceof ApiError)) return undefined;
  const { status } = error;
  const mayPass =
    status === 408 || status === 429 || status >= 500 || error.hasCode("idempotency_key_in_use");
  const wantedMs = retryAfterMs.get(error) ?? 0;
  return mayPass && wantedMs <= RETRY_AFTER_MAX_MS ? wantedMs + pauseMs : undefined;
}

/** Rejects with the signal's reason once it is aborted. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end);
      resolve();
    }, ms);
    signal?.addEventListener("abort", end, { once: true });
  });
}
