import { pipeline, Readable, type Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from "node:zlib";
import { GateError } from "./gate-error.ts";

const CHUNK_BYTES = 65_536;

export const ACCEPTED_ENCODINGS = "gzip, deflate, br";

/** What the compressed bytes mean: one coding at most (docs/decisions/0015); null = sent as they are. */
export type Coding = "gzip" | "deflate" | "br" | null;

/** The coding that a `content-encoding` names. Throws GateError for a chain, or one that was not asked for. */
export function readCoding(header: string, host: string): Coding {
  const codings = header
    .split(",")
    .map((each) => each.trim().toLowerCase())
    .filter((each) => each !== "" && each !== "identity");
  if (codings.length > 1)
    throw new GateError("unreadable", `${host} answered with more than one content encoding`);
  switch (codings[0]) {
    case undefined:
      return null;
    case "gzip":
    case "x-gzip":
      return "gzip";
    case "deflate":
      return "deflate";
    case "br":
      return "br";
    default:
      throw new GateError(
        "unreadable",
        `${host} answered with a content encoding other than ${ACCEPTED_ENCODINGS}`,
      );
  }
}

/**
 * The body, decompressed. What comes out of the decompressor is counted while it streams, so that a bomb costs one chunk more
 * than `maxBytes` and not what it would unfold to.
 */
export async function* readBody(
  body: Readable,
  coding: Coding,
  maxBytes: number,
  host: string,
): AsyncGenerator<Uint8Array, void, undefined> {
  let bytes = 0;
  const decoded = coding === null ? body : await decode(body, coding);
  if (decoded === null) return;
  try {
    for await (const chunk of decoded as AsyncIterable<Uint8Array>) {
      bytes += chunk.length;
      if (bytes > maxBytes)
        throw new GateError("too_large", `the response of ${host} is over ${maxBytes} bytes, decompressed`);
      yield chunk;
    }
  } catch (error) {
    // Leaving the loop destroyed the decompressor, and with it the body and its connection.
    if (isDamaged(error))
      throw new GateError("connection", `the compressed response of ${host} is damaged or cut off`);
    throw error;
  }
}

export async function wholeBody(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  return Buffer.concat(await Array.fromAsync(chunks));
}

/** The decompressed stream, or null for a body without a byte (HEAD, 204, 304), which is no valid gzip. */
async function decode(body: Readable, coding: Exclude<Coding, null>): Promise<Readable | null> {
  const source = body[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  const first = await source.next();
  if (first.done === true) return null;
  const rest = { [Symbol.asyncIterator]: () => source };
  const whole = Readable.from(
    (async function* () {
      yield first.value;
      yield* rest;
    })(),
    { objectMode: false },
  );
  // Errors of either side reach the reader through the decompressor.
  return pipeline(whole, decoderFor(coding, first.value), () => undefined);
}

function decoderFor(coding: Exclude<Coding, null>, first: Uint8Array): Transform {
  const options = { chunkSize: CHUNK_BYTES };
  if (coding === "gzip") return createGunzip(options);
  if (coding === "br") return createBrotliDecompress(options);
  // RFC 9110 means zlib by `deflate`; some servers send it raw. A zlib stream begins with method 8.
  return ((first[0] ?? 0) & 0x0f) === 8 ? createInflate(options) : createInflateRaw(options);
}

function isDamaged(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return /^(Z_|ERR_+(ERROR|BROTLI|PADDING))/.test(code);
}

/** The body as text, by the charset of its content type; UTF-8 where it names none or one that nobody knows. */
export function decodeText(body: Uint8Array, contentType: string | undefined): string {
  const label = /charset\s*=\s*"?([^\s;"]+)/i.exec(contentType ?? "")?.[1] ?? "utf-8";
  try {
    return new TextDecoder(label).decode(body);
  } catch {
    return new TextDecoder().decode(body);
  }
}
