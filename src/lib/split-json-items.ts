import { JsonScan } from "./scan-json.ts";

/**
 * Streams the records of a stored result, as bytes, in batches; the text is never held in memory. It must be compact JSON written
 * by this service.
 */
export async function* splitJsonItems(bytes: AsyncIterable<Uint8Array>): AsyncIterable<readonly Buffer[]> {
  const scan = new JsonScan(["records"], "each");
  let held: Buffer[] = [];
  for await (const chunk of bytes) {
    const items: Buffer[] = [];
    for (let at = 0; at < chunk.length && !isOver(scan);) {
      const start = at;
      const wasInList = scan.isInList;
      const { end, boundary } = scan.read(chunk, at);
      at = end;
      if (!wasInList) continue;
      const part = Buffer.from(chunk.buffer, chunk.byteOffset + start, (boundary ?? end) - start);
      // A copy, because the decompressor reuses the chunk's memory.
      if (boundary === null) held.push(Buffer.from(part));
      else {
        const item = held.length > 0 ? Buffer.concat([...held, part]) : part;
        held = [];
        if (item.length > 0) items.push(item);
      }
    }
    if (items.length > 0) yield items;
  }
  if (!isOver(scan)) throw new Error("a stored result is truncated");
}

const isOver = ({ isFound, isInList }: JsonScan): boolean => isFound && !isInList;
