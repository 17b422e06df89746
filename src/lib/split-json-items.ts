const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_BRACKET, OPEN_BRACE, CLOSE_BRACKET, CLOSE_BRACE] = [0x5b, 0x7b, 0x5d, 0x7d];

/**
 * The items of the first list in a JSON text, each as its bytes, in batches as they come in; the text itself is never held whole. It
 * must be compact JSON as this service writes it.
 */
export async function* splitJsonItems(bytes: AsyncIterable<Uint8Array>): AsyncIterable<readonly Buffer[]> {
  const scanner = new ItemScanner();
  for await (const chunk of bytes) {
    const items = scanner.push(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    if (items.length > 0) yield items;
  }
  if (!scanner.isAtEnd) throw new Error("a stored result ends in its middle");
}

class ItemScanner {
  #held: Buffer[] = [];
  #depth = 0;
  #isInList = false;
  #isInString = false;
  #isEscaped = false;
  isAtEnd = false;

  /** The items that end in this chunk. */
  push(chunk: Buffer): readonly Buffer[] {
    const items: Buffer[] = [];
    let start = 0;
    const finish = (end: number): void => {
      const tail = chunk.subarray(start, end);
      const item = this.#held.length > 0 ? Buffer.concat([...this.#held, tail]) : tail;
      this.#held = [];
      start = end + 1;
      if (item.length > 0) items.push(item);
    };
    for (let at = 0; at < chunk.length && !this.isAtEnd; at++) {
      const code = chunk[at];
      if (this.#isInString) this.#readString(code);
      else if (code === QUOTE) this.#isInString = true;
      else if (!this.#isInList) {
        this.#isInList = code === OPEN_BRACKET;
        start = at + 1;
      } else if (code === OPEN_BRACE || code === OPEN_BRACKET) this.#depth++;
      else if (this.#depth > 0) {
        if (code === CLOSE_BRACE || code === CLOSE_BRACKET) this.#depth--;
      } else if (code === COMMA) finish(at);
      else if (code === CLOSE_BRACKET) {
        finish(at);
        this.isAtEnd = true;
      }
    }
    // A copy: the chunk's memory is the decompressor's.
    if (this.#isInList && !this.isAtEnd && start < chunk.length)
      this.#held.push(Buffer.from(chunk.subarray(start)));
    return items;
  }

  #readString(code: number | undefined): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (code === BACKSLASH) this.#isEscaped = true;
    else if (code === QUOTE) this.#isInString = false;
  }
}
