import { createHmac, createSecretKey } from "node:crypto";

/** HMAC-SHA256 under one key: 32 bytes. */
export type Hmac = (data: string | Uint8Array) => Buffer;

/** Imports the key once: in Node 24 `createHmac` takes 13 µs with raw bytes, which it imports each time, and 2.5 µs with a KeyObject. */
export function openHmac(key: Buffer): Hmac {
  const imported = createSecretKey(key);
  return (data) => createHmac("sha256", imported).update(data).digest();
}
