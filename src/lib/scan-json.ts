/**
 * Scans the brackets, commas and quotes of JSON bytes as they arrive, to find one list and the ends of its items. It validates
 * nothing: the items are passed to `JSON.parse`, which does.
 */

export const QUOTE = 0x22;
const COMMA = 0x2c;
export const COLON = 0x3a;
export const BACKSLASH = 0x5c;
const LIST = 0x5b;
const LIST_END = 0x5d;
const OBJECT = 0x7b;
const OBJECT_END = 0x7d;
/** Up to this length a string is read byte by byte; in a longer one, the end is searched for. */
const SHORT_BYTES = 24;
/** A longer name can't be one of the path's. */
const NAME_BYTES_MAX = 4_096;
const NOTHING = Buffer.alloc(0);

/** The position of the quote that ends a string whose content begins at `from`; -1: it doesn't end before `last`. */
export function endOfString(bytes: Uint8Array, from: number, last: number = bytes.length): number {
  let at = from;
  for (const short = Math.min(from + SHORT_BYTES, last); at < short; at += 1) {
    const byte = bytes[at];
    if (byte === BACKSLASH) at += 1;
    else if (byte === QUOTE) return at;
  }
  for (at = bytes.indexOf(QUOTE, at); at !== -1 && at < last; at = bytes.indexOf(QUOTE, at + 1))
    if (!isEscaped(bytes, at, from)) return at;
  return -1;
}

/** Whether an odd number of backslashes precedes a position, counting from `from`. */
export function isEscaped(bytes: Uint8Array, at: number, from: number): boolean {
  let before = at;
  while (before > from && bytes[before - 1] === BACKSLASH) before -= 1;
  return (at - before) % 2 === 1;
}

export interface ScanStep {
  /** Where to continue. */
  readonly end: number;
  /** In the list: the comma between two items, or the bracket that ends the list. Null: neither. */
  readonly boundary: number | null;
}

export class JsonScan {
  depth = 0;
  /** The deepest level so far. */
  deepest = 0;
  isInList = false;
  isFound = false;
  readonly #path: readonly string[];
  readonly #stopsAt: "each" | "last";
  /** How many names of the path have been matched to reach the open object, whose depth is this number plus one. */
  #matched = 0;
  /** Whether the next value belongs to the path's next name. */
  #isNamed: boolean;
  #listDepth = 0;
  #isText = false;
  #isEscaped = false;
  #mayBeName = false;
  /** The bytes of a string that may be a name of the path. */
  #name: Buffer | null = null;
  #lastName: string | null = null;

  /** `path`: the names of the fields that lead to the list. A step ends at `each` comma between two items, or reports only the `last` one. */
  constructor(path: readonly string[], stopsAt: "each" | "last") {
    this.#path = path;
    this.#stopsAt = stopsAt;
    this.#isNamed = path.length === 0;
  }

  /** Reads to the end of the chunk or of the current section: before or after the list, the list itself, or an item. */
  read(chunk: Uint8Array, from: number): ScanStep {
    return this.isInList ? this.#readItems(chunk, from) : { end: this.#seek(chunk, from), boundary: null };
  }

  #readItems(chunk: Uint8Array, from: number): ScanStep {
    const isEach = this.#stopsAt === "each";
    let boundary: number | null = null;
    let at = this.#isText ? this.#skipText(chunk, from) : from;
    let { depth, deepest } = this;
    while (at < chunk.length) {
      const byte = chunk[at];
      at += 1;
      if (byte === QUOTE) at = this.#skipText(chunk, at);
      else if (byte === LIST || byte === OBJECT) {
        depth += 1;
        if (depth > deepest) deepest = depth;
      } else if (byte === LIST_END || byte === OBJECT_END) {
        depth -= 1;
        if (depth < this.#listDepth) {
          boundary = at - 1;
          this.isInList = false;
          break;
        }
      } else if (byte === COMMA && depth === this.#listDepth) {
        boundary = at - 1;
        if (isEach) break;
      }
    }
    this.depth = depth;
    this.deepest = deepest;
    return { end: at, boundary };
  }

  /** Returns the position after the quote that ends the string, or the end of the chunk. */
  #skipText(chunk: Uint8Array, from: number): number {
    const first = this.#isEscaped ? from + 1 : from;
    const end = endOfString(chunk, first);
    this.#isText = end === -1;
    this.#isEscaped = this.#isText && isEscaped(chunk, chunk.length, first);
    return this.#isText ? chunk.length : end + 1;
  }

  #seek(chunk: Uint8Array, from: number): number {
    let at = this.#isText ? this.#seekText(chunk, from) : from;
    while (at < chunk.length) {
      const byte = chunk[at];
      at += 1;
      if (byte === QUOTE) {
        if (this.#isOwn && this.#mayBeName) [this.#name, this.#lastName] = [NOTHING, null];
        at = this.#seekText(chunk, at);
      } else if (this.#seekStructure(byte)) break;
    }
    return at;
  }

  #seekText(chunk: Uint8Array, from: number): number {
    const end = this.#skipText(chunk, from);
    if (this.#name === null) return end;
    const name = Buffer.concat([this.#name, chunk.subarray(from, this.#isText ? end : end - 1)]);
    const isTooLong = name.length > NAME_BYTES_MAX;
    this.#name = this.#isText && !isTooLong ? name : null;
    if (!this.#isText && !isTooLong) this.#lastName = nameOf(name);
    return end;
  }

  /** Whether the scan is in the object that the path leads to. */
  get #isOwn(): boolean {
    return this.depth === this.#matched + 1;
  }

  /** Returns true if the list begins here. */
  #seekStructure(byte: number | undefined): boolean {
    switch (byte) {
      case COLON:
        if (this.#isOwn && this.#mayBeName) {
          this.#mayBeName = false;
          this.#isNamed = this.#lastName !== null && this.#lastName === this.#path[this.#matched];
        }
        return false;
      case COMMA:
        if (this.#isOwn) {
          this.#mayBeName = true;
          this.#isNamed = false;
        }
        return false;
      case OBJECT:
      case LIST:
        return this.#openBracket(byte);
      case OBJECT_END:
      case LIST_END:
        this.depth -= 1;
        if (this.#matched > 0 && this.depth === this.#matched) this.#matched -= 1;
        return false;
      default:
        return false;
    }
  }

  #openBracket(byte: number): boolean {
    this.depth += 1;
    this.deepest = Math.max(this.deepest, this.depth);
    const isRoot = this.depth === 1;
    const isNamed = this.#isNamed;
    this.#isNamed = false;
    if (isRoot && this.#path.length > 0) {
      this.#mayBeName = byte === OBJECT;
      return false;
    }
    if (!isNamed || this.isFound) return false;
    if (byte === LIST && (isRoot || this.#matched + 1 === this.#path.length)) {
      this.isInList = true;
      this.isFound = true;
      this.#listDepth = this.depth;
      return true;
    }
    if (byte === OBJECT && !isRoot && this.#matched + 1 < this.#path.length) {
      this.#matched += 1;
      this.#mayBeName = true;
    }
    return false;
  }
}

function nameOf(name: Buffer): string | null {
  try {
    return JSON.parse(`"${name.toString("utf8")}"`) as string;
  } catch {
    return null;
  }
}
