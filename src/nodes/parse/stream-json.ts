import { limits } from "#domain/limits.ts";
import type { Json } from "#domain/json.ts";
import { boundsProblem } from "#domain/read-json.ts";
import { assert } from "#lib/assert.ts";
import { JsonScan } from "#lib/scan-json.ts";
import { decodeWhole } from "./decode-text.ts";
import { NodeFailure } from "#nodes/define-node.ts";

/**
 * Streams the items of one list in a JSON document of any length, some hundred at a time, without keeping the document in memory.
 * The text around the list is kept and parsed at the end, so that the node fails unless the whole document is JSON
 * (docs/decisions/0029).
 */

/** Limit for the text around the list, or for the document if there is no such list, because that is kept in memory and parsed at once. */
const WHOLE_BYTES_MAX = limits.wholeBytesMax;
const ITEM_BYTES_MAX = 10_000_000;
const OPEN = Buffer.from("[");
const CLOSE = Buffer.from("]");

export interface StreamedItems {
  /** The index of the first item in the list. */
  readonly first: number;
  readonly items: readonly Json[];
}

/** The names of the fields that lead to the list. Empty: the document itself is the list. */
export type ListPath = readonly string[];

/**
 * Yields the items of the list at `path`. If there is something else (an object, nothing, a list on the way), yields the whole
 * document instead, and the caller evaluates the path on it. Throws NodeFailure if it is not JSON.
 */
export async function* streamList(
  bytes: AsyncIterable<Uint8Array>,
  path: ListPath,
  place: string,
): AsyncGenerator<StreamedItems, { readonly whole: Json } | null, undefined> {
  const reading = new ListReading(path, place);
  for await (const chunk of bytes) yield* reading.take(chunk);
  return reading.end();
}

class ListReading {
  readonly #path: ListPath;
  readonly #place: string;
  readonly #scan: JsonScan;
  /** The text except the items. */
  readonly #around: Uint8Array[] = [];
  #aroundBytes = 0;
  /** The text of incomplete items. */
  #open: Uint8Array[] = [];
  #openBytes = 0;
  #items = 0;
  #parts = 0;

  constructor(path: ListPath, place: string) {
    this.#path = path;
    this.#place = place;
    this.#scan = new JsonScan(path, "last");
  }

  *take(chunk: Uint8Array): Generator<StreamedItems> {
    const scan = this.#scan;
    let at = 0;
    while (at < chunk.length) {
      const start = at;
      const wasInList = scan.isInList;
      const step = scan.read(chunk, at);
      at = step.end;
      if (scan.deepest > limits.dataDepthMax)
        throw new NodeFailure(`${this.#place} is nested deeper than ${limits.dataDepthMax} levels.`);
      if (!wasInList) {
        this.#keepAround(chunk.subarray(start, at));
        continue;
      }
      const { boundary } = step;
      if (boundary === null) this.#keepOpen(chunk.subarray(start, at));
      else {
        this.#keepOpen(chunk.subarray(start, boundary));
        yield* this.#complete(scan.isInList);
        if (scan.isInList) this.#keepOpen(chunk.subarray(boundary + 1, at));
        else this.#keepAround(chunk.subarray(boundary, at));
      }
    }
  }

  end(): { readonly whole: Json } | null {
    const whole = this.#parse(this.#around);
    if (!this.#scan.isFound) return { whole };
    let value: Json | undefined = whole;
    for (const name of this.#path) value = (value as { readonly [name: string]: Json } | undefined)?.[name];
    // Of two fields with the same name the last counts, but the items of the first have already been output.
    if (Array.isArray(value) && value.length === 0) return null;
    throw new NodeFailure(`${this.#place} has \`${this.#path.join(".")}\` twice.`);
  }

  /** The pending text ends with a complete item. */
  *#complete(continues: boolean): Generator<StreamedItems> {
    const list = this.#parse([OPEN, ...this.#open, CLOSE]);
    assert(Array.isArray(list), "text in brackets is a list");
    this.#open = [];
    this.#openBytes = 0;
    this.#parts += 1;
    // A comma with nothing before or after it.
    if (list.length === 0 && (continues || this.#parts > 1)) throw this.#noJson();
    if (list.length > 0) yield { first: this.#items, items: list };
    this.#items += list.length;
  }

  #keepAround(bytes: Uint8Array): void {
    this.#around.push(bytes);
    this.#aroundBytes += bytes.length;
    if (this.#aroundBytes > WHOLE_BYTES_MAX)
      throw new NodeFailure(
        `${this.#place} has more than ${WHOLE_BYTES_MAX} bytes that can't be streamed; \`records\` must be the path of a list in it.`,
      );
  }

  #keepOpen(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#open.push(bytes);
    this.#openBytes += bytes.length;
    if (this.#openBytes > ITEM_BYTES_MAX)
      throw new NodeFailure(
        `${this.#place}: item ${this.#items} is longer than ${ITEM_BYTES_MAX} bytes; every record must be shorter.`,
      );
  }

  #parse(parts: readonly Uint8Array[]): Json {
    const text = decodeWhole(Buffer.concat(parts), null, this.#place);
    const problem = boundsProblem(text);
    if (problem !== null) throw new NodeFailure(`${this.#place} ${problem}.`);
    try {
      return JSON.parse(text) as Json;
    } catch {
      throw text.trim() === "" ? new NodeFailure(`${this.#place} is empty, not JSON.`) : this.#noJson();
    }
  }

  #noJson(): NodeFailure {
    return new NodeFailure(`${this.#place} is not JSON.`);
  }
}
