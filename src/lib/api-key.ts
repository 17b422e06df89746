import { crc32 } from "node:zlib";
import { randomBase62 } from "./new-id.ts";

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM_CHARACTERS = 32;
const KEY = /^lk_([0-9A-Za-z]{32})([0-9A-Za-z]{6})$/;

/** Six base62 characters of CRC32, so that secret scanners recognise a key, and a mistyped one never reaches the database. */
function checksum(random: string): string {
  let value = crc32(random);
  let text = "";
  for (let index = 0; index < 6; index++) {
    text = (BASE62[value % 62] ?? "0") + text;
    value = Math.floor(value / 62);
  }
  return text;
}

/** `lk_` + 32 random base62 characters (190 bits) + checksum. Shown once. docs/decisions/0027. */
export function newApiKey(): string {
  const random = randomBase62(RANDOM_CHARACTERS);
  return `lk_${random}${checksum(random)}`;
}

export function isWellFormedApiKey(text: string): boolean {
  const match = KEY.exec(text);
  return match !== null && checksum(match[1] ?? "") === match[2];
}
