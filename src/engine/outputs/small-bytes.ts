import { limits } from "#domain/limits.ts";

/** Bytes that fit a row, or a stream of all bytes. */
export type SmallBytes =
  | { readonly content: Buffer; readonly stream: null }
  | { readonly content: null; readonly stream: AsyncIterable<Uint8Array> };

/** Reads only far enough to know whether the bytes fit a row. */
export async function readSmall(bytes: AsyncIterable<Uint8Array>): Promise<SmallBytes> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = bytes[Symbol.asyncIterator]();
  for (;;) {
    const next = await reader.next();
    if (next.done === true) return { content: Buffer.concat(chunks), stream: null };
    chunks.push(next.value);
    size += next.value.length;
    if (size > limits.rowContentBytesMax) return { content: null, stream: joined(chunks, reader) };
  }
}

async function* joined(
  chunks: readonly Uint8Array[],
  rest: AsyncIterator<Uint8Array>,
): AsyncIterable<Uint8Array> {
  try {
    yield* chunks;
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}

/** The bytes of a row as a stream. */
export async function* streamOf(content: Uint8Array): AsyncIterable<Uint8Array> {
  if (content.length > 0) yield content;
}
