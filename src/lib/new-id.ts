import { randomBytes, randomUUIDv7 } from "node:crypto";

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const TIME_CHARACTERS = 8;
const RANDOM_CHARACTERS = 20;

// Random bytes are fetched for many ids at once, because a fetch costs more than the rest of an id. No byte is used twice.
const stock = { bytes: Buffer.alloc(0), at: 0 };
const STOCK_BYTES = 4_096;

function randomByte(): number {
  if (stock.at >= stock.bytes.length) {
    stock.bytes = randomBytes(STOCK_BYTES);
    stock.at = 0;
  }
  const byte = stock.bytes[stock.at] as number;
  // Returned bytes may become a key, so they are erased here.
  stock.bytes[stock.at++] = 0;
  return byte;
}

/** `count` characters of base62 from a CSPRNG, without modulo bias. */
export function randomBase62(count: number): string {
  let text = "";
  while (text.length < count) {
    const byte = randomByte();
    // 248 = 4 × 62: bytes above it would favour the first letters.
    if (byte < 248) text += BASE62[byte % 62];
  }
  return text;
}

/** What people copy by hand: without 0, O, 1 and I. */
const READABLE = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ";

/** `count` characters of READABLE from a CSPRNG, five bits each. */
export const randomReadable = (count: number): string =>
  Array.from({ length: count }, () => READABLE[randomByte() % READABLE.length]).join("");

/** The first `count` characters of READABLE that these bytes determine, one a byte. */
export const readableOf = (bytes: Uint8Array, count: number): string =>
  Array.from(bytes.subarray(0, count), (byte) => READABLE[byte % READABLE.length]).join("");

/** A new id: the prefix, eight characters of time (so that indexes grow at one end), and twenty random characters (119 bits). */
export function newId(prefix: string): string {
  let time = Date.now();
  let head = "";
  for (let index = 0; index < TIME_CHARACTERS; index++) {
    head = (BASE62[time % 62] ?? "0") + head;
    time = Math.floor(time / 62);
  }
  return prefix + head + randomBase62(RANDOM_CHARACTERS);
}

/** A new `run_key`: UUID version 7 (docs/decisions/0011). */
export function newRunKey(): string {
  return randomUUIDv7();
}
