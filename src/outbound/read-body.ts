import { pipeline, Readable, type Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from "node:zlib";
import { GateError } from "./gate-error.ts";

const CHUNK_BYTES = 65_536;

export const ACCEPTED_ENCODINGS = "gzip, deflate, br";

/** The content coding, at most one (docs/decisions/0015); null: not encoded. */
export type Coding = "gzip" | "deflate" | "br" | null;

/** The coding that a `content-encoding` header names. Throws GateError for more than one, or one that was not requested. */
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
 * The decompressed body. Its bytes are counted while it streams, so that a decompression bomb costs at most one chunk more than
 * `maxBytes`.
 */
export async function* readBody(
  body: Readable,
  coding: Coding,
  { maxBytes, cutsBody = false }: { readonly maxBytes: number; readonly cutsBody?: boolean },
  host: string,
): AsyncGenerator<Uint8Array, void, undefined> {
  let bytes = 0;
  const decoded = coding === null ? body : await decode(body, coding);
  if (decoded === null) return;
  try {
    for await (const chunk of decoded as AsyncIterable<Uint8Array>) {
      bytes += chunk.length;
      if (bytes > maxBytes) {
        if (!cutsBody)
          throw new GateError("too_large", `the response of ${host} is over ${maxBytes} bytes, decompressed`);
        yield chunk.subarray(0, chunk.length - (bytes - maxBytes));
        return;
      }
      yield chunk;
    }
  } catch (error) {
    // Leaving the loop destroyed the decompressor, and with it the body and its connection.
    if (isDamaged(error))
      throw new GateError("connection", `the compressed response of ${host} is damaged or truncated`);
    throw error;
  }
}

export async function wholeBody(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  return Buffer.concat(await Array.fromAsync(chunks));
}

/** The decompressed stream, or null for an empty body (HEAD, 204, 304), which is not valid gzip. */
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
  // In RFC 9110 `deflate` is the zlib format; some servers send raw deflate data. A zlib stream begins with method 8.
  return ((first[0] ?? 0) & 0x0f) === 8 ? createInflate(options) : createInflateRaw(options);
}

function isDamaged(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return /^(Z_|ERR_+(ERROR|BROTLI|PADDING))/.test(code);
}

/** The body as text, in the charset of its content type; UTF-8 if that names none, or an unknown one. */
export function decodeText(body: Uint8Array, contentType: string | undefined): string {
  const label = /charset\s*=\s*"?([^\s;"]+)/i.exec(contentType ?? "")?.[1] ?? "utf-8";
  try {
    return new TextDecoder(label).decode(body);
  } catch {
    return new TextDecoder().decode(body);
  }
}
