import type { Cut } from "./cuts.ts";

/** All 24-bit windows that patterns can have in an encoding. */
export const BLOCK = 3;
export const BLOCK_BITS = 17;
export const placeOf = (block: number): number => Math.imul(block, 0x9e37_79b1) >>> (32 - BLOCK_BITS);

/** Bytes of the shortest pattern. */
const SHORTEST = 6;

export const NO_CHARACTER = 0xff;
/** A separator between characters of an encoding. All other values are lower. */
export const BETWEEN = 0xfe;

/** An encoding of bytes as characters of a fixed number of bits. */
export interface Encoding {
  readonly values: Uint8Array;
  readonly bits: number;
  /** Number of characters after which a byte and a character begin together. */
  readonly group: number;
}

function encoding(bits: number, group: number, alphabets: readonly string[], between: string): Encoding {
  const values = new Uint8Array(256).fill(NO_CHARACTER);
  for (const alphabet of alphabets)
    for (let value = 0; value < alphabet.length; value++) values[alphabet.charCodeAt(value)] = value;
  for (const character of between) values[character.charCodeAt(0)] = BETWEEN;
  return { values, bits, group };
}

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
/** Both alphabets of RFC 4648, also in lines. */
export const BASE64 = encoding(6, 4, [`${LETTERS}+/`, `${LETTERS}-_`], "\r\n");
export const HEX = encoding(4, 2, ["0123456789abcdef", "0123456789ABCDEF"], ": -\r\n");
const PADDING = 0x3d;

/** The purpose of decoding. */
export interface Wanted {
  /** The longest pattern. */
  readonly formBytes: number;
  find(bytes: Uint8Array): readonly Cut[];
}

/** Three-byte pieces of patterns, also by hash. */
export interface Blocks {
  readonly blocks: ReadonlySet<number>;
  readonly mayBlock: Uint8Array;
}

/** Groups may begin at any character: each grouping is decoded separately. */
export function findEncoded(
  text: Uint8Array,
  encoded: Encoding,
  { blocks, mayBlock }: Blocks,
  wanted: Wanted,
  found: Cut[],
): void {
  const { values, bits, group } = encoded;
  const charactersOfBlock = 24 / bits;
  const doneTo = Array.from({ length: group }, () => -1);
  let block = 0;
  let count = 0;
  for (let at = nextRun(text, 0, encoded); at < text.length; at++) {
    const value = values[text[at] as number] as number;
    if (value >= BETWEEN) {
      if (value === BETWEEN) continue;
      count = 0;
      at = nextRun(text, at + 1, encoded) - 1;
      continue;
    }
    block = ((block << bits) | value) & 0xff_ffff;
    if (++count < charactersOfBlock || mayBlock[placeOf(block)] === 0 || !blocks.has(block)) continue;
    const grouping = count % group;
    if (at <= (doneTo[grouping] ?? 0)) continue;
    doneTo[grouping] = decodeAround(text, at, encoded, wanted, found);
  }
}

/** Decodes the surroundings of a group that ends at `at` and searches them. Returns the position up to which nothing more is needed. */
export function decodeAround(
  text: Uint8Array,
  at: number,
  encoded: Encoding,
  wanted: Wanted,
  found: Cut[],
): number {
  const { values, bits } = encoded;
  const { places, lookedTo } = placesAround(text, at, encoded, wanted.formBytes);
  if (places.length * bits < 8 * SHORTEST) return lookedTo;
  for (const { start, end } of wanted.find(decode(text, places, values, bits))) {
    const last = Math.ceil((8 * end) / bits) - 1;
    let after = (places[last] ?? at) + 1;
    if (last >= places.length - 1) while (text[after] === PADDING) after++;
    found.push({ start: places[Math.floor((8 * start) / bits)] ?? at, end: after });
  }
  return lookedTo;
}

/**
 * The position of the next run of characters that is long enough for the shortest match. Searches from its end, so that short
 * words are skipped quickly.
 */
function nextRun(text: Uint8Array, first: number, { values, bits }: Encoding): number {
  const least = (8 * SHORTEST) / bits;
  for (let start = first; start + least <= text.length;) {
    let at = start + least - 1;
    while (at >= start && values[text[at] as number] !== NO_CHARACTER) at--;
    if (at < start) return start;
    start = at + 1;
  }
  return text.length;
}

/** The characters around a group that ends at `last`, and the position up to which nothing more is needed. */
function placesAround(
  text: Uint8Array,
  last: number,
  { values, bits, group }: Encoding,
  formBytes: number,
): { readonly places: readonly number[]; readonly lookedTo: number } {
  const charactersMax = Math.ceil((formBytes * 8) / bits) + 24;
  const places: number[] = [];
  for (let at = last; at >= 0 && places.length < charactersMax; at--) {
    const value = values[text[at] as number] as number;
    if (value === NO_CHARACTER) break;
    if (value !== BETWEEN) places.push(at);
  }
  places.length -= places.length % group;
  places.reverse();
  const lookedAt = places.length + charactersMax;
  for (let at = last + 1; at < text.length && places.length < lookedAt + charactersMax; at++) {
    const value = values[text[at] as number] as number;
    if (value === NO_CHARACTER) break;
    if (value !== BETWEEN) places.push(at);
  }
  return { places, lookedTo: places[lookedAt] ?? places.at(-1) ?? last };
}

function decode(text: Uint8Array, places: readonly number[], values: Uint8Array, bits: number): Uint8Array {
  const bytes = new Uint8Array(Math.floor((places.length * bits) / 8));
  let [waiting, waitingBits, length] = [0, 0, 0];
  for (const place of places) {
    waiting = ((waiting << bits) | (values[text[place] as number] as number)) & 0xffff;
    waitingBits += bits;
    if (waitingBits < 8) continue;
    waitingBits -= 8;
    bytes[length++] = (waiting >> waitingBits) & 0xff;
  }
  return bytes;
}
