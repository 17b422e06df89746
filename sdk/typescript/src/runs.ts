import type { RunResults, RunStatus } from "./api-types.ts";
import { decompressBrotli } from "./brotli.ts";
import { sleep, type Connection, type RequestOptions, type WriteOptions } from "./connection.ts";
import { download } from "./download.ts";
import { ApiError, ConnectionError, LatchkeyError, WaitTimeoutError } from "./errors.ts";
import { readRecords, type OutputRecord } from "./read-records.ts";
import { readEvents } from "./server-events.ts";
import { poll, WAIT_MS, type WaitOptions } from "./wait.ts";

const RECONNECT_MS = 1_000;
/** Other statuses are states in progress (`spec/interface.md`, "Blueprint run `status`"). */
const TERMINAL: ReadonlySet<string> = new Set(["completed", "failed", "cancelled"]);
const isTerminal = ({ status }: RunStatus): boolean => TERMINAL.has(status);

/** `id` is a run's id (`run_…`) or its run key. */
export class Runs {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** With `waitSeconds`, the response comes once the status has changed, or after that time (at most 60). */
  async readStatus(
    id: string,
    { waitSeconds, ...options }: RequestOptions & { readonly waitSeconds?: number | undefined } = {},
  ): Promise<RunStatus> {
    return await this.#connection.json({
      operation: "readRunStatus",
      parameters: { runId: id },
      headers: waitSeconds === undefined ? {} : { Prefer: `wait=${waitSeconds}` },
      options,
    });
  }

  /** Throws ConflictError unless the run is `completed`. `direct` results of 5 MB and more come as links all the same. */
  async readResults(
    id: string,
    {
      deliveryMethod,
      ...options
    }: RequestOptions & { readonly deliveryMethod?: "direct" | "presigned_url" } = {},
  ): Promise<RunResults> {
    return await this.#connection.json({
      operation: "readRunResults",
      parameters: { runId: id },
      query: { deliveryMethod },
      options,
    });
  }

  /** Throws ConflictError if the run has already ended. */
  async cancel(id: string, options?: WriteOptions): Promise<RunStatus> {
    return await this.#connection.json({ operation: "cancelRun", parameters: { runId: id }, options });
  }

  /**
   * Each new state of the run, until the terminal one. Reconnects when the connection is cut. Throws ApiError if the
   * stream is refused, for example because too many are open.
   */
  async *watch(
    id: string,
    { signal }: { readonly signal?: AbortSignal | undefined } = {},
  ): AsyncGenerator<RunStatus> {
    for (let lastId = ""; ;) {
      const headers = { Accept: "text/event-stream", ...(lastId !== "" && { "Last-Event-ID": lastId }) };
      const response = await this.#connection.send(
        { operation: "watchRun", parameters: { runId: id }, headers, options: { signal } },
        async (opened) => opened,
      );
      if (response.status === 204 || !response.body) return;
      try {
        for await (const { id: eventId, data: run } of readEvents<RunStatus>(response.body)) {
          lastId = eventId;
          yield run;
          if (isTerminal(run)) return;
        }
      } catch (error) {
        signal?.throwIfAborted();
        if (error instanceof SyntaxError)
          throw new LatchkeyError("The event stream is malformed", { cause: error });
      }
      await sleep(Math.random() * RECONNECT_MS, signal);
    }
  }

  /**
   * Waits until the run has ended, whether it is `completed`, `failed` or `cancelled`: by its event stream, or by polling
   * if there can be none. Throws WaitTimeoutError.
   */
  async waitFor(id: string, options: WaitOptions<RunStatus> = {}): Promise<RunStatus> {
    const { timeoutMs = WAIT_MS, onChange } = options;
    const started = Date.now();
    const timer = AbortSignal.timeout(timeoutMs);
    const signal = options.signal ? AbortSignal.any([timer, options.signal]) : timer;
    let last: RunStatus | undefined;
    try {
      for await (const run of this.watch(id, { signal })) {
        last = run;
        onChange?.(run);
        if (isTerminal(run)) return run;
      }
    } catch (error) {
      options.signal?.throwIfAborted();
      if (timer.aborted) throw new WaitTimeoutError(`${id} has not ended after ${timeoutMs} ms`, last);
      // Too many streams are open, or something in between does not let them through.
      if (!(error instanceof ConnectionError) && !(error instanceof ApiError && error.status === 429))
        throw error;
    }
    return await poll(async () => await this.readStatus(id, { signal: options.signal }), isTerminal, {
      ...options,
      timeoutMs: Math.max(0, started + timeoutMs - Date.now()),
    });
  }

  /**
   * The records under one result key, one by one, however many there are: only the current one is in memory. `key` can be
   * omitted if the run has a single result. A download that is cut goes on where it stopped.
   */
  async *records<Data = Readonly<Record<string, unknown>>>(
    id: string,
    key?: string,
    { signal }: { readonly signal?: AbortSignal | undefined } = {},
  ): AsyncGenerator<OutputRecord<Data>> {
    const read = async (): Promise<RunResults> =>
      await this.readResults(id, { deliveryMethod: "direct", signal });
    const first = await read();
    const chosen = chooseKey(Object.keys(first.results), key);
    if (first.dataDeliveryMethod === "direct") {
      yield* (first.results[chosen]?.records ?? []) as readonly OutputRecord<Data>[];
      return;
    }
    const firstLink = first.results[chosen];
    let isFirst = true;
    const link = async (): Promise<string> => {
      const current = isFirst ? firstLink : (await read()).results[chosen];
      isFirst = false;
      if (typeof current !== "string") throw new LatchkeyError(`${id} has no download for ${chosen}`);
      return current;
    };
    yield* readRecords<Data>(decompressBrotli(download(this.#connection, link, signal)));
  }
}

function chooseKey(keys: readonly string[], key: string | undefined): string {
  const [only] = keys;
  if (key === undefined && keys.length === 1 && only !== undefined) return only;
  if (key !== undefined && keys.includes(key)) return key;
  const problem = key === undefined ? "The run has several results" : `The run has no result ${key}`;
  throw new LatchkeyError(`${problem}: pass one of ${keys.join(", ")}`);
}
