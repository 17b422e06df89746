import type { Readable, Writable } from "node:stream";

/** JSON-RPC 2.0, one message a line, as the Model Context Protocol has it on standard input and output. */
export type Id = string | number;

export interface Handlers {
  /** Answers a request. Throws RpcError. */
  readonly request: (method: string, parameters: unknown, signal: AbortSignal) => Promise<unknown>;
}

const PARSE_ERROR = -32_700;
const INVALID_REQUEST = -32_600;
export const METHOD_NOT_FOUND = -32_601;
export const INVALID_PARAMS = -32_602;
const INTERNAL_ERROR = -32_603;

/** An answer that is an error. Its message goes to the client. */
export class RpcError extends Error {
  override readonly name = "RpcError";
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

const LINE_BYTES_MAX = 4_194_304;

interface Message {
  readonly jsonrpc?: unknown;
  readonly id?: unknown;
  readonly method?: unknown;
  readonly params?: unknown;
}

/** Serves until the input ends and every request is answered. */
export async function serve(input: Readable, output: Writable, handlers: Handlers): Promise<void> {
  const running = new Map<Id, AbortController>();
  const write = (message: object): void =>
    void output.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const refuse = (id: Id | null, error: RpcError): void =>
    write({ id, error: { code: error.code, message: error.message } });

  const answer = async (id: Id, method: string, parameters: unknown): Promise<void> => {
    const controller = new AbortController();
    running.set(id, controller);
    try {
      const result = await handlers.request(method, parameters, controller.signal);
      if (!controller.signal.aborted) write({ id, result });
    } catch (error) {
      // A cancelled request has no answer.
      if (controller.signal.aborted) return;
      refuse(id, error instanceof RpcError ? error : new RpcError(INTERNAL_ERROR, "Unexpected error."));
    } finally {
      running.delete(id);
    }
  };

  const pending = new Set<Promise<void>>();
  const take = (line: string): void => {
    const message = parse(line);
    if (message instanceof RpcError) return refuse(null, message);
    const { id, method, params } = message;
    // An answer to a request of ours: we send none.
    if (typeof method !== "string") return;
    if (id === undefined) {
      const cancelled = (params as { requestId?: Id } | undefined)?.requestId;
      if (method === "notifications/cancelled" && cancelled !== undefined) running.get(cancelled)?.abort();
      return;
    }
    if (running.has(id as Id)) return refuse(id as Id, new RpcError(INVALID_REQUEST, "This id is in use."));
    const work = answer(id as Id, method, params).finally(() => pending.delete(work));
    pending.add(work);
  };
  for await (const line of readLines(input)) {
    if (line === null)
      refuse(null, new RpcError(INVALID_REQUEST, `A message has at most ${LINE_BYTES_MAX} bytes.`));
    else if (line.trim() !== "") take(line);
  }
  await Promise.all(pending);
}

function parse(line: string): Message | RpcError {
  let message: unknown;
  try {
    message = JSON.parse(line);
  } catch {
    return new RpcError(PARSE_ERROR, "A line must be one JSON object.");
  }
  if (typeof message !== "object" || message === null || Array.isArray(message))
    return new RpcError(INVALID_REQUEST, "A message must be an object; batches are not supported.");
  const { jsonrpc, id } = message as Message;
  const hasId = id === undefined || typeof id === "string" || typeof id === "number";
  if (jsonrpc !== "2.0" || !hasId)
    return new RpcError(INVALID_REQUEST, "This is no message of JSON-RPC 2.0.");
  return message as Message;
}

/** The input's lines; null in place of one that is too long. */
async function* readLines(input: Readable): AsyncGenerator<string | null> {
  let parts: Buffer[] = [];
  let size = 0;
  for await (const chunk of input as AsyncIterable<Buffer | string>) {
    let rest = Buffer.from(chunk);
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      const last = rest.subarray(0, end);
      rest = rest.subarray(end + 1);
      yield size + last.length > LINE_BYTES_MAX ? null : Buffer.concat([...parts, last]).toString("utf8");
      parts = [];
      size = 0;
    }
    size += rest.length;
    // Of a line that is too long nothing is kept.
    parts = size > LINE_BYTES_MAX ? [] : [...parts, rest];
  }
  if (size > 0) yield size > LINE_BYTES_MAX ? null : Buffer.concat(parts).toString("utf8");
}
