import type { Agent, Dispatcher } from "undici";

/** Longest body that is taken whole. */
const SMALL_BYTES_MAX = 65_536;
/** RFC 9110, 15.3.5: the answer ends with its headers. */
const NO_CONTENT = 204;

/** What came back for one hop. */
export interface Answer extends Pick<Dispatcher.ResponseData, "statusCode" | "headers"> {
  /** Whole if HTTP itself says that it is small, and otherwise a stream. */
  readonly body: Uint8Array | Dispatcher.ResponseData["body"];
}

export interface Asking {
  /**
   * Called when the request's connection is established (name resolved, TLS handshake completed) but no byte of the request was sent. If it
   * throws, the request ends before its first byte.
   */
  readonly beforeFirstByte: (() => void) | undefined;
  /** A longer body is a stream, however small; null: every body is. */
  readonly wholeBytesMax: number | null;
}

/** Sends a request. */
export type Ask = (options: Dispatcher.RequestOptions, asking: Asking) => Promise<Answer>;

/** A small answer is taken without a stream, which would cost more than the rest of it. */
export function askThrough(agent: Agent): Ask {
  const taking = agent.compose((dispatch) => (options, handler) => {
    const { opaque } = options as Dispatcher.RequestOptions<Asked>;
    return dispatch(options, opaque === undefined ? handler : new AnswerHandler(handler, opaque));
  });
  return async (options, asking) =>
    await new Promise((answered, failed) => {
      const opaque: Asked = { ...asking, answered, failed };
      // What is taken whole never reaches the handler of the promise that `request` returns.
      taking.request<Asked>({ ...options, opaque }).then(answered, failed);
    });
}

interface Asked extends Asking {
  readonly answered: (answer: Answer) => void;
  readonly failed: (error: unknown) => void;
}

/** Takes a small answer, and gives every other one to the handler behind it. */
class AnswerHandler implements Dispatcher.DispatchHandler {
  readonly #behind: Dispatcher.DispatchHandler;
  readonly #asked: Asked;
  #whole: (Pick<Answer, "statusCode" | "headers"> & { readonly chunks: Uint8Array[] }) | null = null;

  constructor(behind: Dispatcher.DispatchHandler, asked: Asked) {
    this.#behind = behind;
    this.#asked = asked;
  }

  onRequestStart(controller: Dispatcher.DispatchController, context: unknown): void {
    this.#asked.beforeFirstByte?.();
    this.#behind.onRequestStart?.(controller, context);
  }

  onRequestUpgrade(...given: Parameters<NonNullable<Dispatcher.DispatchHandler["onRequestUpgrade"]>>): void {
    this.#behind.onRequestUpgrade?.(...given);
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    statusCode: number,
    headers: Answer["headers"],
    statusText?: string,
  ): void {
    const { wholeBytesMax } = this.#asked;
    if (statusCode >= 200 && wholeBytesMax !== null && isSmall(statusCode, headers, wholeBytesMax))
      this.#whole = { statusCode, headers, chunks: [] };
    else this.#behind.onResponseStart?.(controller, statusCode, headers, statusText);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#whole === null) this.#behind.onResponseData?.(controller, chunk);
    else this.#whole.chunks.push(chunk);
  }

  onResponseEnd(controller: Dispatcher.DispatchController, trailers: Answer["headers"]): void {
    if (this.#whole === null) return this.#behind.onResponseEnd?.(controller, trailers);
    const { statusCode, headers, chunks } = this.#whole;
    const [first = new Uint8Array(), ...rest] = chunks;
    this.#asked.answered({ statusCode, headers, body: rest.length === 0 ? first : Buffer.concat(chunks) });
  }

  onResponseError(controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#whole === null) this.#behind.onResponseError?.(controller, error);
    else this.#asked.failed(error);
  }
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
