import { LatchkeyError } from "./errors.ts";
import { chunksOf } from "./server-events.ts";

/** Decompresses as it reads. Works in Node.js, Bun and Deno, and wherever `DecompressionStream` knows Brotli. */
export async function* decompressBrotli(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const zlib = await import("node:zlib").catch(() => undefined);
  if (zlib) {
    const { Readable } = await import("node:stream");
    const source = Readable.from(chunks, { objectMode: false });
    const decompressed = zlib.createBrotliDecompress();
    source.on("error", (error) => decompressed.destroy(error));
    try {
      yield* source.pipe(decompressed) as AsyncIterable<Uint8Array>;
    } finally {
      source.destroy();
    }
    return;
  }
  yield* chunksOf(streamOf(chunks).pipeThrough(brotliStream()));
}

function brotliStream(): DecompressionStream {
  try {
    return new DecompressionStream("brotli" as "gzip");
  } catch {
    throw new LatchkeyError(
      "This runtime cannot decompress Brotli: read the records in Node.js, Bun or Deno, or request direct results",
    );
  }
}

function streamOf(chunks: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array<ArrayBuffer>> {
  const iterator = chunks[Symbol.asyncIterator]();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await iterator.next();
      if (done === true) controller.close();
      else controller.enqueue(value as Uint8Array<ArrayBuffer>);
    },
    async cancel() {
      await iterator.return?.();
    },
  });
}
