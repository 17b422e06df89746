/**
 * Reads the brackets, commas and quotes of JSON as it comes, to find one list and where its items end. It checks nothing: what it
 * cuts out is given to `JSON.parse`, which does.
 */

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const LIST = 0x5b;
const LIST_END = 0x5d;
const OBJECT = 0x7b;
const OBJECT_END = 0x7d;
/** Up to here a string is read byte by byte; what is longer is searched for its end. */
const SHORT_BYTES = 24;
/** A longer name is none of the path's. */
const NAME_BYTES_MAX = 4_096;

export interface ScanStep {
  /** Where to go on. */
  readonly end: number;
  /** In the list: the last comma between two items, or the bracket that ends the list. Null: none. */
  readonly boundary: number | null;
}

export class JsonScan {
  depth = 0;
  /** The most levels so far. */
  deepest = 0;
  isInList = false;
  isFound = false;
  readonly #path: readonly string[];
  /** How many names of the path lead to the object that is open; it has this depth plus one. */
  #matched = 0;
  /** The next value is that of the path's next name. */
  #isNamed: boolean;
  #listDepth = 0;
  #isText = false;
  #isEscaped = false;
  #mayBeName = false;
  /** The bytes of a text that may be a name of the path. */
  #name: number[] | null = null;
  #lastName: string | null = null;

  constructor(path: readonly string[]) {
    this.#path = path;
    this.#isNamed = path.length === 0;
  }

  /** Reads up to the end of the chunk, or of what it is in: around the list, or the list. */
  read(chunk: Uint8Array, from: number): ScanStep {
    return this.isInList ? this.#readItems(chunk, from) : { end: this.#seek(chunk, from), boundary: null };
  }

  #readItems(chunk: Uint8Array, from: number): ScanStep {
    let boundary: number | null = null;
    let at = from;
    let { depth, deepest } = this;
    while (at < chunk.length) {
      if (this.#isText) {
        at = this.#skipText(chunk, at);
        continue;
      }
      const byte = chunk[at];
      if (byte === QUOTE) this.#isText = true;
      else if (byte === LIST || byte === OBJECT) {
        depth += 1;
        if (depth > deepest) deepest = depth;
      } else if (byte === LIST_END || byte === OBJECT_END) {
        depth -= 1;
        if (depth < this.#listDepth) {
          this.depth = depth;
          this.deepest = deepest;
          this.isInList = false;
          return { end: at + 1, boundary: at };
        }
      } else if (byte === COMMA && depth === this.#listDepth) boundary = at;
      at += 1;
    }
    this.depth = depth;
    this.deepest = deepest;
    return { end: at, boundary };
  }

  /** Behind the quote that ends the text, or the end of the chunk. */
  #skipText(chunk: Uint8Array, from: number): number {
    let at = from;
    const short = Math.min(from + SHORT_BYTES, chunk.length);
    for (; at < short; at += 1) {
      const byte = chunk[at];
      if (this.#isEscaped) this.#isEscaped = false;
      else if (byte === BACKSLASH) this.#isEscaped = true;
      else if (byte === QUOTE) {
        this.#isText = false;
        return at + 1;
      }
    }
    while (at < chunk.length) {
      if (this.#isEscaped) {
        this.#isEscaped = false;
        at += 1;
        continue;
      }
      const quote = chunk.indexOf(QUOTE, at);
      const end = quote === -1 ? chunk.length : quote;
      let backslashes = 0;
      while (end - backslashes > at && chunk[end - backslashes - 1] === BACKSLASH) backslashes += 1;
      if (quote === -1) {
        this.#isEscaped = backslashes % 2 === 1;
        return end;
      }
      at = quote + 1;
      if (backslashes % 2 === 0) {
        this.#isText = false;
        return at;
      }
    }
    return at;
  }

  #seek(chunk: Uint8Array, from: number): number {
    for (let at = from; at < chunk.length; at += 1) {
      const byte = chunk[at] ?? 0;
      if (this.#isText) this.#seekText(byte);
      else if (this.#seekStructure(byte)) return at + 1;
    }
    return chunk.length;
  }

  #seekText(byte: number): void {
    const isEnd = !this.#isEscaped && byte === QUOTE;
    this.#isEscaped = !this.#isEscaped && byte === BACKSLASH;
    if (!isEnd) {
      this.#name?.push(byte);
      if (this.#name !== null && this.#name.length > NAME_BYTES_MAX) this.#name = null;
      return;
    }
    this.#isText = false;
    if (this.#name !== null) this.#lastName = nameOf(this.#name);
    this.#name = null;
  }

  /** True: the list begins here. */
  #seekStructure(byte: number): boolean {
    const isOwn = this.depth === this.#matched + 1;
    switch (byte) {
      case QUOTE:
        this.#isText = true;
        this.#name = isOwn && this.#mayBeName ? [] : null;
        return false;
      case COLON:
        if (isOwn && this.#mayBeName) {
          this.#mayBeName = false;
          this.#isNamed = this.#lastName !== null && this.#lastName === this.#path[this.#matched];
        }
        return false;
      case COMMA:
        if (isOwn) {
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

function nameOf(bytes: readonly number[]): string | null {
  try {
    return JSON.parse(`"${Buffer.from(bytes).toString("utf8")}"`) as string;
  } catch {
    return null;
  }
}
