import { Agent, request, type Dispatcher } from "undici";
import { ExplainedError } from "#lib/explained-error.ts";

/** A request to an API of the service that the person at the command line has named. */
export interface ServiceRequest {
  readonly method: "GET" | "POST" | "DELETE";
  /** Below the API's root, encoded, with its query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: object | undefined;
}

export interface ServiceAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** The service can't be reached, or is not one. The message says what to do, and has no secret. */
export class ServiceUnreachable extends ExplainedError {}

/** How long the service may take to begin its answer, and to continue it. */
const ANSWER_MS = 60_000;
const CONNECT_MS = 10_000;

/**
 * Sends requests to one service with an operator token or an API key. This address comes from the person who runs the command and never from a
 * document, so the egress gate's rules about private addresses do not apply. Redirects are not followed: they could lead the token
 * elsewhere.
 */
export class ServiceClient {
  readonly url: string;
  readonly #token: (() => string) | null;
  readonly #root: string;
  readonly #agent = new Agent({ connect: { timeout: CONNECT_MS } });

  /** `url` without a trailing slash. `token` opens the operator token or the API key for each request; null: there is none yet. */
  constructor(url: string, token: (() => string) | null, root: "/operator/v1" | "/api/v1" = "/operator/v1") {
    this.url = url;
    this.#token = token;
    this.#root = root;
  }

  /** Throws ServiceUnreachable. */
  async send(asked: ServiceRequest): Promise<ServiceAnswer> {
    const answer = await this.#ask(asked);
    const { statusCode: status, headers } = answer;
    if (status >= 300 && status < 400) {
      await answer.body.dump();
      throw new ServiceUnreachable(
        `${this.url} redirects to another address. Set LATCHKEY_URL, or --url, to that one.`,
      );
    }
    const contentType = headers["content-type"] ?? "";
    return {
      status,
      contentType: typeof contentType === "string" ? contentType : (contentType[0] ?? ""),
      bytes: this.#read(answer.body),
    };
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  async #ask({ method, path, body, headers = {} }: ServiceRequest): Promise<Dispatcher.ResponseData> {
    const text = body === undefined ? undefined : JSON.stringify(body);
    try {
      return await request(`${this.url}${this.#root}${path}`, {
        method,
        dispatcher: this.#agent,
        headers: {
          // Operations without a sign-in want a header that no page of another site can send.
          ...(this.#token ? { authorization: `Bearer ${this.#token()}` } : { "x-csrf-token": "none" }),
          accept: "*/*",
          "user-agent": "Latchkey command line",
          ...headers,
          ...(text === undefined ? {} : { "content-type": "application/json" }),
        },
        body: text ?? null,
        headersTimeout: ANSWER_MS,
        bodyTimeout: ANSWER_MS,
      });
    } catch (error) {
      throw this.#unreachable(error);
    }
  }

  async *#read(bytes: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    try {
      yield* bytes;
    } catch (error) {
      throw this.#unreachable(error);
    }
  }

  /** Only the error's code, because messages of TLS quote certificates. */
  #unreachable(error: unknown): ServiceUnreachable {
    const { code = "no answer" } = error as NodeJS.ErrnoException;
    return new ServiceUnreachable(
      `${this.url} can't be reached (${code}). Check LATCHKEY_URL, or --url, and whether the service is running.`,
    );
  }
}
