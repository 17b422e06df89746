import type { Cut } from "./cuts.ts";

/** Searches for many patterns at once. */
export interface PatternSearch {
  /** Patterns shorter than six bytes are ignored. `alone`: matches only without an adjacent letter or digit. */
  add(bytes: Uint8Array, alone: boolean): void;
  /** Adds the longest match at each position to `found`. */
  scan(text: Uint8Array, found: Cut[]): void;
}

const WINDOW = 6;
const BLOCK = 3;
/** Tree steps per byte of text before a beginning counts as a full match. */
const STEPS_PER_BYTE = 16;
const ENOUGH_BYTES = 32;

/** A common piece of one or more secrets, and its continuations. */
interface Branch {
  label: Uint8Array;
  /** A secret ends here: `alone` if all such secrets must stand alone. */
  end: "no" | "alone" | "yes";
  readonly next: Map<number, Branch>;
}

/** The window's last block determines its shift (Wu and Manber, 1994); if the shift is 0, the tree of its six bytes is walked. */
export function makePatternSearch(ignoreCase: boolean): PatternSearch {
  const fold = foldTable(ignoreCase);
  const shift = new Uint8Array(65_536).fill(WINDOW - BLOCK + 1);
  const branches = new Map<number, Branch>();

  const add = (bytes: Uint8Array, alone: boolean): void => {
    if (bytes.length < WINDOW) return;
    const pattern = bytes.map((byte) => fold[byte] ?? 0);
    for (let at = 0; at <= WINDOW - BLOCK; at++) {
      const block = blockHash(pattern[at] ?? 0, pattern[at + 1] ?? 0, pattern[at + 2] ?? 0);
      shift[block] = Math.min(shift[block] ?? 0, WINDOW - BLOCK - at);
    }
    const key = windowKey(pattern, 0, IDENTITY);
    const root = branches.get(key) ?? { label: new Uint8Array(), end: "no", next: new Map() };
    branches.set(key, root);
    grow(root, pattern.subarray(WINDOW), alone);
  };
  const scan = (text: Uint8Array, found: Cut[]): void => {
    let steps = STEPS_PER_BYTE * text.length;
    const last = text.length - WINDOW;
    for (let at = 0; at <= last;) {
      const skip = shift[
        blockHash(
          fold[text[at + 3] as number] as number,
          fold[text[at + 4] as number] as number,
          fold[text[at + 5] as number] as number,
        )
      ] as number;
      if (skip !== 0) {
        at += skip;
        continue;
      }
      const root = branches.get(windowKey(text, at, fold));
      if (root !== undefined) {
        const { end, isMatch } = walk(root, text, at, fold, steps > 0);
        steps -= end - at;
        if (isMatch) found.push({ start: at, end });
        if (isMatch && steps <= 0) {
          at = end;
          continue;
        }
      }
      at++;
    }
  };
  return { add, scan };
}

const blockHash = (first: number, second: number, third: number): number =>
  ((first << 8) ^ (second << 4) ^ third) & 0xffff;

const IDENTITY = Uint8Array.from({ length: 256 }, (_each, byte) => byte);

/** A space and a plus are equal: forms encode one as the other. */
function foldTable(ignoreCase: boolean): Uint8Array {
  const fold = Uint8Array.from(IDENTITY);
  fold[0x20] = 0x2b;
  if (ignoreCase) for (let letter = 0x41; letter <= 0x5a; letter++) fold[letter] = letter | 0x20;
  return fold;
}

function windowKey(text: Uint8Array, at: number, fold: Uint8Array): number {
  let key = 0;
  for (let next = at; next < at + WINDOW; next++) key = key * 256 + (fold[text[next] ?? 0] ?? 0);
  return key;
}

function grow(root: Branch, rest: Uint8Array, alone: boolean): void {
  let branch = root;
  let left = rest;
  while (left.length > 0) {
    const first = left[0] ?? 0;
    const next = branch.next.get(first);
    if (next === undefined) {
      branch.next.set(first, { label: left.slice(), end: alone ? "alone" : "yes", next: new Map() });
      return;
    }
    let same = 0;
    while (same < next.label.length && same < left.length && next.label[same] === left[same]) same++;
    if (same < next.label.length) {
      const lower: Branch = { ...next, label: next.label.slice(same) };
      const upper: Branch = {
        label: next.label.slice(0, same),
        end: "no",
        next: new Map([[lower.label[0] ?? 0, lower]]),
      };
      branch.next.set(first, upper);
      branch = upper;
    } else branch = next;
    left = left.subarray(same);
  }
  if (branch.end !== "yes") branch.end = alone ? "alone" : "yes";
}

/** The longest secret at a position; without one, `end` is how far anything matched. `!isExact`: 32 bytes are enough. */
function walk(
  root: Branch,
  text: Uint8Array,
  start: number,
  fold: Uint8Array,
  isExact: boolean,
): { readonly end: number; readonly isMatch: boolean } {
  let at = start + WINDOW;
  let matchEnd = -1;
  let branch: Branch | undefined = root;
  while (branch !== undefined) {
    if (branch.end === "yes" || (branch.end === "alone" && isWholeWord(text, start, at))) matchEnd = at;
    const next: Branch | undefined = at < text.length ? branch.next.get(fold[text[at] ?? 0] ?? 0) : undefined;
    branch = undefined;
    if (next !== undefined) {
      let same = 0;
      while (same < next.label.length && next.label[same] === fold[text[at + same] ?? 0]) same++;
      at += same;
      if (same === next.label.length) branch = next;
    }
  }
  if (!isExact && at - start >= ENOUGH_BYTES) return { end: at, isMatch: true };
  return matchEnd < 0 ? { end: at, isMatch: false } : { end: matchEnd, isMatch: true };
}

const isWholeWord = (text: Uint8Array, start: number, end: number): boolean =>
  !isLetterOrDigit(text[start - 1]) && !isLetterOrDigit(text[end]);

const isLetterOrDigit = (byte: number | undefined): boolean =>
  byte !== undefined && ((byte >= 0x30 && byte <= 0x39) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a));
