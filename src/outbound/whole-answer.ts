import type { IncomingHttpHeaders } from "node:http";
import { Readable } from "node:stream";
import type { Agent, Dispatcher } from "undici";
import type { Deadline } from "./deadline.ts";

/** Longest body that is taken whole. */
const SMALL_BYTES_MAX = 65_536;
/** RFC 9110, 15.3.5: the answer ends with its headers. */
const NO_CONTENT = 204;

/** What came back for one hop. */
export interface Answer {
  readonly statusCode: number;
  readonly headers: IncomingHttpHeaders;
  /** Whole if HTTP itself says that it is small, and otherwise a stream. */
  readonly body: Uint8Array | Readable;
}

export interface Asking {
  /**
   * Called when the request's connection is established (name resolved, TLS handshake completed) but no byte of the request was sent. If it
   * throws, the request ends before its first byte.
   */
  readonly beforeFirstByte: (() => void) | undefined;
  /** A longer body is a stream, however small; null: every body is. */
  readonly wholeBytesMax: number | null;
  /** Ends the request, and the stream of its answer. */
  readonly deadline: Pick<Deadline, "stopBy">;
}

/** Sends a request. */
export type Ask = (options: Dispatcher.DispatchOptions, asking: Asking) => Promise<Answer>;

/** A small answer is taken without a stream, which would cost more than the rest of it. */
export const askThrough =
  (agent: Agent): Ask =>
  async (options, asking) =>
    await new Promise((answered, failed) => {
      const handler = new AnswerHandler(asking, answered, (error) => {
        const { body } = options;
        if (body instanceof Readable) body.on("error", () => undefined).destroy();
        failed(error);
      });
      asking.deadline.stopBy(() => handler.stop());
      agent.dispatch(options, handler);
    });

/** Takes one answer: whole, or as a stream. */
class AnswerHandler implements Dispatcher.DispatchHandler {
  readonly #asking: Asking;
  readonly #answered: (answer: Answer) => void;
  readonly #failed: (error: unknown) => void;
  #stopped: Error | null = null;
  #controller: Dispatcher.DispatchController | null = null;
  #whole: (Pick<Answer, "statusCode" | "headers"> & { readonly chunks: Uint8Array[] }) | null = null;
  #stream: Readable | null = null;

  constructor(asking: Asking, answered: (answer: Answer) => void, failed: (error: unknown) => void) {
    this.#asking = asking;
    this.#answered = answered;
    this.#failed = failed;
  }

  /** A request that still waits for its connection is not sent. */
  stop(): void {
    const stopped = new Error("the exchange was stopped");
    this.#stopped = stopped;
    if (this.#stream !== null) this.#stream.destroy(stopped);
    else if (this.#controller !== null) this.#controller.abort(stopped);
    else this.#failed(stopped);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#stopped !== null) return controller.abort(this.#stopped);
    this.#controller = controller;
    this.#asking.beforeFirstByte?.();
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    statusCode: number,
    headers: IncomingHttpHeaders,
  ): void {
    if (statusCode < 200) return;
    const { wholeBytesMax } = this.#asking;
    if (wholeBytesMax !== null && isSmall(statusCode, headers, wholeBytesMax))
      this.#whole = { statusCode, headers, chunks: [] };
    else {
      this.#stream = bodyOf(controller);
      this.#answered({ statusCode, headers, body: this.#stream });
    }
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#whole !== null) this.#whole.chunks.push(chunk);
    else if (this.#stream?.push(chunk) === false) controller.pause();
  }

  onResponseEnd(): void {
    this.#stream?.push(null);
    if (this.#whole === null) return;
    const { statusCode, headers, chunks } = this.#whole;
    const [first = new Uint8Array(), ...rest] = chunks;
    this.#answered({ statusCode, headers, body: rest.length === 0 ? first : Buffer.concat(chunks) });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#stream === null) this.#failed(error);
    else this.#stream.destroy(error);
  }
}

/** The body as it comes. Leaving it before its end closes the connection. */
function bodyOf(controller: Dispatcher.DispatchController): Readable {
  const body = new Readable({
    read: () => controller.resume(),
    destroy: (error, done) => {
      controller.abort(error ?? new Error("the body was not read to its end"));
      done(error);
    },
  });
  // Its reader gets the error, too; without one there would be nobody to handle it.
  return body.on("error", () => undefined);
}

function isSmall(status: number, headers: Answer["headers"], bytesMax: number): boolean {
  if (status === NO_CONTENT) return true;
  const length = headers["content-length"];
  return (
    typeof length === "string" &&
    /^\d{1,9}$/.test(length) &&
    Number(length) <= Math.min(SMALL_BYTES_MAX, bytesMax) &&
    headers["transfer-encoding"] === undefined
  );
}
