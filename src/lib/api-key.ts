import { crc32 } from "node:zlib";
import { randomBase62 } from "./new-id.ts";

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM_CHARACTERS = 32;
const KEY = /^(lk|lk_test|lko)_([0-9A-Za-z]{32})([0-9A-Za-z]{6})$/;

/** Of an API key, of one of test mode, and of an operator token. */
type Prefix = "lk" | "lk_test" | "lko";

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

function newKey(prefix: Prefix): string {
  const random = randomBase62(RANDOM_CHARACTERS);
  return `${prefix}_${random}${checksum(random)}`;
}

function isWellFormed(prefix: Prefix, text: string): boolean {
  const match = KEY.exec(text);
  return match !== null && match[1] === prefix && checksum(match[2] ?? "") === match[3];
}

/** `lk_` or `lk_test_` + 32 random base62 characters (190 bits) + checksum. Shown once. docs/decisions/0027. */
export const newApiKey = (isTest = false): string => newKey(isTest ? "lk_test" : "lk");

export const isWellFormedApiKey = (text: string): boolean =>
  isWellFormed("lk", text) || isWellFormed("lk_test", text);

export const OPERATOR_TOKEN_PREFIX = "lko_";

/** `lko_` and the same as an API key, so that neither is ever taken for the other. Shown once. docs/decisions/0022. */
export const newOperatorToken = (): string => newKey("lko");

/** The operator token that 32 secret bytes determine: the same form, with 190 bits of them. */
export function operatorTokenOf(bytes: Uint8Array): string {
  let number = BigInt(`0x${Buffer.from(bytes).toString("hex")}`);
  let random = "";
  while (random.length < RANDOM_CHARACTERS) {
    random += BASE62[Number(number % 62n)] ?? "0";
    number /= 62n;
  }
  return `lko_${random}${checksum(random)}`;
}

export const isWellFormedOperatorToken = (text: string): boolean => isWellFormed("lko", text);
