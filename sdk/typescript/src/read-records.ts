import type { ResultRecord } from "./api-types.ts";
import { LatchkeyError } from "./errors.ts";

const [QUOTE, BACKSLASH, OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [34, 92, 123, 125, 91, 93];

/** A record whose fields have the type `Data`, which nothing checks: it is what the Blueprint puts out. */
export interface OutputRecord<Data> extends Omit<ResultRecord, "data"> {
  readonly data: Data;
}

/**
 * The records of `{"totalRecords": n, "records": […]}`, one by one: only the current record is in memory.
 * Throws LatchkeyError if the text ends before its last bracket.
 */
export async function* readRecords<Data>(
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<OutputRecord<Data>> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const scanner = new RecordScanner();
  for await (const bytes of chunks)
    for (const text of scanner.push(decoder.decode(bytes, { stream: true })))
      yield JSON.parse(text) as OutputRecord<Data>;
  if (!scanner.isAtEnd) throw new LatchkeyError("The download ended before its last record");
}

/** Finds the objects in the array `records` of the outermost object, across chunks. */
class RecordScanner {
  #rest = "";
  /** Where to go on in `#rest`. */
  #at = 0;
  /** Where the current record, or the current name of the outermost object, begins in `#rest`; -1: none. */
  #start = -1;
  #depth = 0;
  #isInText = false;
  #name = "";
  #isInRecords = false;
  isAtEnd = false;

  *push(chunk: string): Generator<string> {
    this.#rest += chunk;
    const text = this.#rest;
    for (; this.#at < text.length; this.#at += 1) {
      const code = text.charCodeAt(this.#at);
      if (this.#isInText) {
        if (code === BACKSLASH) {
          // The escaped character may be in the next chunk.
          if (this.#at + 1 === text.length) break;
          this.#at += 1;
        } else if (code === QUOTE) this.#endText(text);
      } else if (code === QUOTE) {
        this.#isInText = true;
        if (this.#depth === 1) this.#start = this.#at + 1;
      } else if (code === OPEN_BRACE || code === OPEN_BRACKET) this.#open(code);
      else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
        this.#depth -= 1;
        if (this.#depth === 2 && this.#isInRecords) {
          yield text.slice(this.#start, this.#at + 1);
          this.#start = -1;
        }
        if (this.#depth === 1) this.#isInRecords = false;
        if (this.#depth === 0) this.isAtEnd = true;
      }
    }
    const kept = this.#start === -1 ? this.#at : this.#start;
    this.#rest = text.slice(kept);
    this.#at -= kept;
    if (this.#start !== -1) this.#start = 0;
  }

  #endText(text: string): void {
    this.#isInText = false;
    if (this.#depth !== 1) return;
    this.#name = text.slice(this.#start, this.#at);
    this.#start = -1;
  }

  #open(code: number): void {
    this.#depth += 1;
    if (this.#depth === 2) this.#isInRecords = code === OPEN_BRACKET && this.#name === "records";
    if (this.#depth === 3 && this.#isInRecords) this.#start = this.#at;
  }
}
