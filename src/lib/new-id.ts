import { randomBytes, randomUUIDv7 } from "node:crypto";

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const TIME_CHARACTERS = 8;
const RANDOM_CHARACTERS = 20;

/** `count` characters of base62 from a CSPRNG, without modulo bias. */
export function randomBase62(count: number): string {
  let text = "";
  while (text.length < count) {
    for (const byte of randomBytes(count * 2)) {
      // 248 = 4 × 62: bytes above it would favour the first letters.
      if (byte < 248 && text.length < count) text += BASE62[byte % 62];
    }
  }
  return text;
}

/** A new id: prefix, eight characters of time (so that indexes grow at one end), twenty random ones (119 bits). */
export function newId(prefix: string): string {
  let time = Date.now();
  let head = "";
  for (let index = 0; index < TIME_CHARACTERS; index++) {
    head = (BASE62[time % 62] ?? "0") + head;
    time = Math.floor(time / 62);
  }
  return prefix + head + randomBase62(RANDOM_CHARACTERS);
}

/** A new `run_key`: UUID version 7 (design, page 1, Ids). */
export function newRunKey(): string {
  return randomUUIDv7();
}
