import type { Cut } from "./cuts.ts";
import { BASE64, BETWEEN, decodeAround, NO_CHARACTER, type Wanted } from "./find-encoded.ts";

/** A window is four characters: 24 bits. */
const WINDOW = 4;
/** Characters of the shortest pattern. */
const SHORTEST = 8;
/** Five bytes contain six whole characters, so that one of three consecutive windows lies within them. */
const STRIDE = 3;
const BYTES = 5;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const HASH_BITS = 18;
const hashOf = (bits: number): number => Math.imul(bits, 0x9e37_79b1) >>> (32 - HASH_BITS);

/** All four-character windows of base64 that the beginnings of patterns can produce, for any grouping of bytes by three. */
export interface Base64Windows {
  /** Patterns of five bytes or more. */
  add(form: Uint8Array): void;
  /** A bit for each number of characters before the window at which a byte and a character begin together; 0: no pattern has this window. */
  find(bits: number): number;
}

export function base64Windows(): Base64Windows {
  const ways = new Map<number, number>();
  const may = new Uint32Array(1 << (HASH_BITS - 5));
  return {
    add(form) {
      for (let offset = 0; offset <= 8 * BYTES - 24; offset += 2) {
        const first = offset >> 3;
        const [a = 0, b = 0, c = 0, d = 0] = form.subarray(first, first + 4);
        const four = ((a << 24) | (b << 16) | (c << 8) | d) >>> 0;
        const bits = (four >>> (8 - (offset & 7))) & 0xff_ffff;
        // Six bits per character, eight per byte: three characters back for each two bits.
        const back = (3 * (offset >> 1)) & 3;
        ways.set(bits, (ways.get(bits) ?? 0) | (1 << back));
        const hash = hashOf(bits);
        may[hash >>> 5] = (may[hash >>> 5] ?? 0) | (1 << (hash & 31));
      }
    },
    find(bits) {
      const hash = hashOf(bits);
      return ((may[hash >>> 5] as number) & (1 << (hash & 31))) === 0 ? 0 : (ways.get(bits) ?? 0);
    },
  };
}

/**
 * Finds patterns in base64, in lines and anywhere inside a longer text. It checks every third window; if one has the bits of a pattern,
 * its surroundings are decoded. Across line ends, which would split windows, it checks every window.
 */
export function findBase64(text: Uint8Array, windows: Base64Windows, wanted: Wanted, found: Cut[]): void {
  const { values } = BASE64;
  const look = pollOnce(text, wanted, found);
  for (let first = nextRun(text, 0); first < text.length;) {
    let end = first + SHORTEST;
    while (end < text.length && (values[text[end] as number] as number) < BETWEEN) end++;
    for (let at = first; at <= end - WINDOW; at += STRIDE) {
      const bits =
        ((values[text[at] as number] as number) << 18) |
        ((values[text[at + 1] as number] as number) << 12) |
        ((values[text[at + 2] as number] as number) << 6) |
        (values[text[at + 3] as number] as number);
      const ways = windows.find(bits);
      if (ways !== 0)
        for (let back = 0; back < WINDOW; back++) if ((ways & (1 << back)) !== 0) look(at + 3 - back);
    }
    first = nextRun(text, end + 1);
  }
  const lookAcross = pollOnce(text, wanted, found);
  for (let at = nextLineEnd(text, 0); at >= 0;)
    at = nextLineEnd(text, acrossLines(text, at, windows, lookAcross));
}

/** The next run of characters that is long enough for the shortest pattern. Searches backwards from its end to skip words. */
function nextRun(text: Uint8Array, first: number): number {
  const { values } = BASE64;
  for (let start = first; start + SHORTEST <= text.length;) {
    let at = start + SHORTEST - 1;
    while (at >= start && (values[text[at] as number] as number) < BETWEEN) at--;
    if (at < start) return start;
    start = at + 1;
  }
  return text.length;
}

/** `last`: the end of a group. Nothing is decoded twice with the same grouping. */
function pollOnce(text: Uint8Array, wanted: Wanted, found: Cut[]): (last: number) => void {
  const { values } = BASE64;
  const doneTo = [-1, -1, -1, -1];
  // Separators are skipped up to here, so that a grouping continues across a line end.
  let counted = 0;
  let between = 0;
  return (last) => {
    for (; counted < last; counted++) if (values[text[counted] as number] === BETWEEN) between++;
    for (; counted > last; counted--) if (values[text[counted - 1] as number] === BETWEEN) between--;
    const grouping = (last - between) & 3;
    if (last > (doneTo[grouping] as number))
      doneTo[grouping] = decodeAround(text, last, BASE64, wanted, found);
  };
}

function nextLineEnd(text: Uint8Array, first: number): number {
  const feed = text.indexOf(LINE_FEED, first);
  const before = feed < 0 ? text : text.subarray(0, feed);
  const lone = before.indexOf(CARRIAGE_RETURN, first);
  return lone < 0 ? feed : lone;
}

/** Checks every window within seven characters of the line end at `lineEnd`, and of following line ends as near. Returns its end. */
function acrossLines(
  text: Uint8Array,
  lineEnd: number,
  windows: Base64Windows,
  look: (last: number) => void,
): number {
  const { values } = BASE64;
  let at = lineEnd;
  for (let before = 0; at > 0 && before < NEAR; at--) {
    const value = values[text[at - 1] as number] as number;
    if (value === NO_CHARACTER) break;
    if (value !== BETWEEN) before++;
  }
  if (at === lineEnd) return lineEnd + 1;
  const recent = [0, 0, 0, 0];
  let [bits, count, since] = [0, 0, 0];
  for (; at < text.length && since < NEAR; at++) {
    const value = values[text[at] as number] as number;
    if (value === NO_CHARACTER) break;
    if (value === BETWEEN) {
      since = 0;
      continue;
    }
    if (at > lineEnd) since++;
    bits = ((bits << 6) | value) & 0xff_ffff;
    recent[count++ & 3] = at;
    const ways = count < WINDOW ? 0 : windows.find(bits);
    if (ways !== 0)
      for (let back = 0; back < WINDOW; back++)
        if ((ways & (1 << back)) !== 0) look(recent[(count - 1 - back) & 3] as number);
  }
  return Math.max(at, lineEnd + 1);
}

/** Two windows less one character. */
const NEAR = 7;
