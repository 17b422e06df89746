import { BACKSLASH, COLON, endOfString, isEscaped, QUOTE } from "#lib/scan-json.ts";
import type { Cut } from "./cuts.ts";

/** Bytes between two yields. */
const TURN_BYTES = 262_144;

/** Returns the replacement of a match; `isNumber`: the match is a complete JSON number. */
export type Place = (found: Uint8Array, isNumber: boolean) => string;

/** A piece of a JSON text: its end, and whether it begins inside a string. */
export interface JsonPiece {
  readonly end: number;
  readonly inString: boolean;
}

/**
 * Replaces parts of a JSON text so that it stays JSON: inside strings, and in numbers, which become strings. Keys for which `isKept` is
 * true stay. null: a part crosses the end of a string or number, or the text is not JSON. Yields between steps of bounded length.
 */
export function* cutJson(
  bytes: Buffer,
  cuts: readonly Cut[],
  place: Place,
  isKept: (key: string) => boolean,
  piece: JsonPiece | null = null,
): Generator<void, Buffer | null> {
  const parts: Uint8Array[] = [];
  const last = piece?.end ?? bytes.length;
  let done = 0;
  let next = 0;
  let pauseAt = TURN_BYTES;
  for (let at = 0; at < last && next < cuts.length;) {
    if (at >= pauseAt) {
      yield;
      pauseAt = at + TURN_BYTES;
    }
    const isRest = at === 0 && piece?.inString === true;
    const token = isRest ? restOfString(bytes, 0, last) : readToken(bytes, at, piece);
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
    if (inside.length > 0 && (isRest || !token.isString || !isKeptKey(bytes, token, isKept))) {
      parts.push(bytes.subarray(done, token.first));
      const content = bytes.subarray(token.first, token.end);
      const isNumber = !token.isString && inside.length === 1 && isAllOf(inside[0], token);
      const clean = replaceCuts(content, inside, token.first, (found) => place(found, isNumber));
      parts.push(token.isString ? clean : Buffer.concat([Buffer.from('"'), clean, Buffer.from('"')]));
      done = token.end;
    }
    at = after;
  }
  parts.push(bytes.subarray(done, last));
  return Buffer.concat(parts);
}

const isAllOf = (cut: Cut | undefined, { first, end }: Token): boolean =>
  cut?.start === first && cut.end === end;

/** The bytes with the cuts replaced by `place`; `offset` is the position of the bytes in the text that has the cuts. */
export function replaceCuts(
  bytes: Buffer,
  cuts: readonly Cut[],
  offset: number,
  place: (found: Uint8Array) => string,
): Buffer {
  const parts: Uint8Array[] = [];
  let done = 0;
  for (const cut of cuts) {
    const start = Math.max(done, cut.start - offset);
    const end = cut.end - offset;
    parts.push(bytes.subarray(done, start), Buffer.from(place(bytes.subarray(start, end)), "latin1"));
    done = Math.max(done, end);
  }
  parts.push(bytes.subarray(done));
  return Buffer.concat(parts);
}

/** A longer string, or one that began earlier, may be split anywhere. */
const WHOLE_STRING_BYTES_MAX = 4_096;

/**
 * A position at or before `end` where a JSON text may be split without splitting a short string or a number, and whether it is inside a
 * string; `inString`: whether the beginning is.
 */
export function jsonBreak(bytes: Uint8Array, end: number, inString: boolean): JsonPiece {
  let isInside = inString;
  let opened = -1;
  let isHalf = false;
  // Most strings are short: this is faster than to search for each end.
  for (let at = 0; at < end; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      isInside = !isInside;
      opened = at;
    } else if (byte === BACKSLASH && isInside) isHalf = ++at === end;
  }
  if (isInside) {
    return opened >= 0 && end - opened <= WHOLE_STRING_BYTES_MAX
      ? { end: opened, inString: false }
      : { end: isHalf ? end - 1 : end, inString: true };
  }
  let first = end;
  while (first > 0 && end - first <= WHOLE_STRING_BYTES_MAX && isOfNumber(bytes[first - 1])) first--;
  return { end: first, inString: false };
}

interface Token {
  readonly isString: boolean;
  /** A string without its quotes. */
  readonly first: number;
  readonly end: number;
}

function readToken(bytes: Buffer, at: number, piece: JsonPiece | null): Token | null {
  if (bytes[at] === QUOTE) {
    const token = restOfString(bytes, at + 1, piece?.end ?? bytes.length);
    return piece === null && token.end === bytes.length ? null : token;
  }
  let end = at;
  while (isOfNumber(bytes[end])) end++;
  return end === at ? null : { isString: false, first: at, end };
}

/** The end of a string: its closing quote, or `last` if there is none. */
function restOfString(bytes: Buffer, first: number, last: number): Token {
  const end = endOfString(bytes, first, last);
  return { isString: true, first, end: end === -1 ? last : end };
}

/** `e` only inside: `true` and `else` are not numbers. */
const isOfNumber = (byte: number | undefined): boolean =>
  byte !== undefined &&
  ((byte >= 0x30 && byte <= 0x39) ||
    byte === 0x2b ||
    byte === 0x2d ||
    byte === 0x2e ||
    (byte | 0x20) === 0x65);

/** A cut as it was, or longer by the halves of escapes that it would leave. */
function onEscapes(bytes: Buffer, { first, end }: Token, cut: Cut): Cut {
  let { start } = cut;
  if (isEscaped(bytes, start, first)) start--;
  else {
    const unit = bytes.toString("latin1", Math.max(first, start - 5), start);
    const behind = /\\u[0-9a-fA-F]{0,3}$/.exec(unit)?.[0].length ?? 0;
    if (behind > 0 && !isEscaped(bytes, start - behind, first)) start -= behind;
  }
  const isHalf = cut.end < end && isEscaped(bytes, cut.end, first);
  return { start, end: isHalf ? cut.end + 1 : cut.end };
}

function isKeptKey(bytes: Buffer, { first, end }: Token, isKept: (key: string) => boolean): boolean {
  let after = end + 1;
  while (bytes[after] === 0x20 || (bytes[after] ?? 0xff) - 9 <= 4) after++;
  return bytes[after] === COLON && isKept(bytes.toString("utf8", first, end));
}
