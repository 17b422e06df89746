import type { Cut } from "./cuts.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
/** Bytes between two pauses. */
const TURN_BYTES = 262_144;

/**
 * Replaces parts of a JSON text so that it stays JSON: inside its strings, and a number as a string with the part replaced. A key
 * that `isKept` says stays. Null: a part goes over the end of a string or a number, or the text is no JSON. Yields between steps of
 * bounded length.
 */
export function* cutJson(
  bytes: Buffer,
  cuts: readonly Cut[],
  place: string,
  isKept: (key: string) => boolean,
): Generator<void, Buffer | null> {
  const parts: Uint8Array[] = [];
  let done = 0;
  let next = 0;
  let pauseAt = TURN_BYTES;
  for (let at = 0; at < bytes.length && next < cuts.length;) {
    if (at >= pauseAt) {
      yield;
      pauseAt = at + TURN_BYTES;
    }
    const token = readToken(bytes, at);
    if (token === null) {
      if ((cuts[next]?.start ?? 0) <= at) return null;
      at++;
      continue;
    }
    const inside: Cut[] = [];
    for (let cut = cuts[next]; cut !== undefined && cut.start < token.end; cut = cuts[++next]) {
      if (cut.start < token.first || cut.end > token.end) return null;
      inside.push(token.isString ? onEscapes(bytes, token, cut) : cut);
    }
    const after = token.isString ? token.end + 1 : token.end;
    if (inside.length > 0 && !(token.isString && isKeptKey(bytes, token, isKept))) {
      parts.push(bytes.subarray(done, token.first));
      const clean = replaceCuts(bytes.subarray(token.first, token.end), inside, token.first, place);
      parts.push(token.isString ? clean : Buffer.concat([Buffer.from('"'), clean, Buffer.from('"')]));
      done = token.end;
    }
    at = after;
  }
  parts.push(bytes.subarray(done));
  return Buffer.concat(parts);
}

/** The bytes with `place` where the cuts are; `offset` is where the bytes begin in what the cuts were found in. */
export function replaceCuts(bytes: Buffer, cuts: readonly Cut[], offset: number, place: string): Buffer {
  const parts: Uint8Array[] = [];
  const inPlace = Buffer.from(place, "latin1");
  let done = 0;
  for (const { start, end } of cuts) {
    parts.push(bytes.subarray(done, Math.max(done, start - offset)), inPlace);
    done = Math.max(done, end - offset);
  }
  parts.push(bytes.subarray(done));
  return Buffer.concat(parts);
}

interface Token {
  readonly isString: boolean;
  /** Without its quotes. */
  readonly first: number;
  readonly end: number;
}

function readToken(bytes: Buffer, at: number): Token | null {
  if (bytes[at] === QUOTE) {
    for (let end = bytes.indexOf(QUOTE, at + 1); end >= 0; end = bytes.indexOf(QUOTE, end + 1))
      if (!isEscaped(bytes, end, at + 1)) return { isString: true, first: at + 1, end };
    return null;
  }
  let end = at;
  while (isOfNumber(bytes[end])) end++;
  return end === at ? null : { isString: false, first: at, end };
}

/** The letters of `e` only inside: `true` and `else` are no numbers. */
const isOfNumber = (byte: number | undefined): boolean =>
  byte !== undefined &&
  ((byte >= 0x30 && byte <= 0x39) ||
    byte === 0x2b ||
    byte === 0x2d ||
    byte === 0x2e ||
    (byte | 0x20) === 0x65);

/** Whether an odd number of backslashes stands before a place. */
function isEscaped(bytes: Buffer, at: number, first: number): boolean {
  let before = at;
  while (before > first && bytes[before - 1] === BACKSLASH) before--;
  return (at - before) % 2 === 1;
}

/** A cut as it was, or longer by the halves of escapes that it would leave. */
function onEscapes(bytes: Buffer, { first, end }: Token, cut: Cut): Cut {
  let { start } = cut;
  if (isEscaped(bytes, start, first)) start--;
  else {
    const unit = bytes.toString("latin1", Math.max(first, start - 5), start);
    const behind = /\\u[0-9a-fA-F]{0,3}$/.exec(unit)?.[0].length ?? 0;
    if (behind > 0 && !isEscaped(bytes, start - behind, first)) start -= behind;
  }
  const isHalf = cut.end < end && bytes[cut.end - 1] === BACKSLASH && isEscaped(bytes, cut.end, first);
  return { start, end: isHalf ? cut.end + 1 : cut.end };
}

function isKeptKey(bytes: Buffer, { first, end }: Token, isKept: (key: string) => boolean): boolean {
  let after = end + 1;
  while (bytes[after] === 0x20 || (bytes[after] ?? 0xff) - 9 <= 4) after++;
  return bytes[after] === COLON && isKept(bytes.toString("utf8", first, end));
}
