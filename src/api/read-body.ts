import type { FastifyRequest } from "fastify";
import type { Caller } from "#actions/services.ts";
import type { BodyPrint } from "#domain/idempotency.ts";
import { limits } from "#domain/limits.ts";
import { Problem } from "#domain/problem.ts";
import type { TriggerBody } from "#domain/trigger-routing.ts";
import { assert, must } from "#lib/assert.ts";
import { JsonTextError, parseJsonInSteps, runSteps, type JsonTree } from "#lib/json-text.ts";
import { bodyLane, type Turn } from "./body-lane.ts";
import { inTurn, LARGE_BYTES } from "./large-bodies.ts";

/** A trigger's body, parsed from either encoding. */
export interface ReadBody {
  readonly values: TriggerBody;
  /** The text for the fingerprint; for a large body it costs as much as reading it. */
  print(): BodyPrint;
  /** Those of a small JSON body. */
  readonly bytes: Buffer | null;
  /** Removes the files that were stored while the body was read, except those of these parts. */
  discard(kept: ReadonlySet<string>): Promise<void>;
}

export function tooLarge(what: string): Problem {
  // The rest of the body is not read: the connection ends with this answer.
  return new Problem("validation_error", `${what} is too large.`, {
    status: 413,
    headers: { Connection: "close" },
  });
}

/** The limit of a JSON body, and its sender. */
interface BodyLimit {
  readonly bytesMax: number;
  /** The authenticated caller; null: none, and then the limit admits no large body. */
  readonly sender: string | null;
}

/** A customer's backend, by its key. */
export const senderOf = ({ keyId }: Caller): string => `key/${keyId}`;

/** The reservation in the lane for a body without a declared length, until it turns out to be longer. */
const UNKNOWN_BYTES = limits.jsonBodyBytesMax;

/** Reads the whole body. A large one waits for its turn. Throws Problem 413 and 503. */
async function readBytes(request: FastifyRequest, bytesMax: number, lane: LaneOfOne): Promise<Buffer> {
  const length = Number(request.headers["content-length"] ?? 0);
  if (length > bytesMax) throw tooLarge("The body");
  const whole = takeWhole(request, bytesMax);
  if (whole) return whole;
  if (length >= LARGE_BYTES) await lane.enter(length);
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    // destroyOnReturn would close the connection under the answer.
    for await (const chunk of request.raw.iterator({ destroyOnReturn: false })) {
      size += (chunk as Buffer).length;
      if (size > bytesMax) throw tooLarge("The body");
      chunks.push(chunk as Buffer);
      if (size >= LARGE_BYTES && length === 0)
        await lane.enter(size > UNKNOWN_BYTES ? bytesMax : UNKNOWN_BYTES);
    }
  } catch (error) {
    // The caller disconnected: not a fault of the service, whatever the connection's error code.
    if (!(error instanceof Problem) && !request.raw.complete) throw malformed("The body ended early.");
    throw error;
  }
  return Buffer.concat(chunks);
}

/** A body's reservation in the lane, if it needs one. */
class LaneOfOne {
  readonly sender: string | null;
  #turn: Turn | null = null;

  constructor(sender: string | null) {
    this.sender = sender;
  }

  async enter(bytes: number): Promise<void> {
    if (this.#turn) this.#turn.grow(bytes);
    else this.#turn = await bodyLane.enter(must(this.sender, "the sender of a large body"), bytes);
  }

  end(): void {
    this.#turn?.end();
  }
}

/** A small body usually arrives with its headers: taking it from the stream's buffer costs a fraction of iterating the stream. */
function takeWhole({ raw }: FastifyRequest, bytesMax: number): Buffer | null {
  const size = raw.readableLength;
  if (!raw.complete || raw.destroyed || size === 0 || size > bytesMax) return null;
  const bytes = raw.read() as Buffer;
  assert(bytes.length === size, "a stream that has ended gives all that it holds");
  return bytes;
}

/** The media type without its parameters, in lower case; an empty string when the header is absent. */
export function mediaType(request: FastifyRequest): string {
  return (request.headers["content-type"] ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

/** A JSON body that has been read, and not parsed. Its turn in the lane ends when it is parsed or disposed of. */
export interface UnparsedJson extends Disposable {
  /** null: it is large, and hashing it would delay other requests. */
  readonly bytes: Buffer | null;
  /** Throws Problem 413, 422. */
  parse(): Promise<ReadonlyMap<string, JsonTree>>;
}

/**
 * A JSON object body; an absent body counts as `{}` (docs/api.md#order-of-checks). Throws Problem 415 for another type,
 * 413 over the limit, 422 for what is not a JSON object, 503 when too many large ones are waiting.
 */
export async function readJsonObject(
  request: FastifyRequest,
  limit: BodyLimit,
): Promise<ReadonlyMap<string, JsonTree>> {
  using body = await readUnparsedJson(request, limit);
  return await body.parse();
}

/** The same in two steps. */
export async function readUnparsedJson(
  request: FastifyRequest,
  { bytesMax, sender }: BodyLimit,
): Promise<UnparsedJson> {
  assert(sender !== null || bytesMax < LARGE_BYTES, "a large body has a sender");
  const type = mediaType(request);
  if (type !== "" && type !== "application/json") throw unsupportedType("application/json");
  const lane = new LaneOfOne(sender);
  try {
    const bytes = await readBytes(request, bytesMax, lane);
    if (bytes.length > 0) requireJson(request, type);
    return {
      bytes: bytes.length < LARGE_BYTES ? bytes : null,
      parse: async () => await parseObject(bytes, sender).finally(() => lane.end()),
      [Symbol.dispose]: () => lane.end(),
    };
  } catch (error) {
    lane.end();
    throw error;
  }
}

/** Throws Problem 415. */
function requireJson(request: FastifyRequest, type: string): void {
  if (type === "") throw unsupportedType("application/json");
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(request.headers["content-type"] ?? "")?.[1];
  if (charset !== undefined && charset.toLowerCase() !== "utf-8")
    throw unsupportedType("application/json in UTF-8");
}

async function parseObject(bytes: Buffer, sender: string | null): Promise<ReadonlyMap<string, JsonTree>> {
  if (bytes.length === 0) return new Map();
  const tree = await parse(bytes, sender);
  if (!(tree instanceof Map)) throw malformed("The body must be a JSON object.");
  return tree as ReadonlyMap<string, JsonTree>;
}

export function unsupportedType(wanted: string): Problem {
  return new Problem("validation_error", `The body must be ${wanted}; say so in the Content-Type header.`, {
    status: 415,
  });
}

export function malformed(message: string): Problem {
  return new Problem("validation_error", message, { details: [{ message, code: "invalid_input_data" }] });
}

async function parse(bytes: Buffer, sender: string | null): Promise<JsonTree> {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    const steps = parseJsonInSteps(text, { depthMax: limits.jsonDepthMax, valuesMax: limits.jsonValuesMax });
    return sender === null || bytes.length < LARGE_BYTES ? runSteps(steps) : await inTurn(sender, steps);
  } catch (error) {
    if (error instanceof JsonTextError) {
      if (error.reason !== "values") throw malformed(error.message);
      throw new Problem("validation_error", error.message, { status: 413 });
    }
    throw malformed("The body is not valid UTF-8.");
  }
}
