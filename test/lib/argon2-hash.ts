import { argon2Sync } from "node:crypto";

/** A password's hash as anybody can make one who has no key: `memory` in KiB. */
export function argon2Hash(password: string, { memory, passes }: { memory: number; passes: number }): string {
  const nonce = Buffer.alloc(16, 1);
  const tag = argon2Sync("argon2id", {
    message: password,
    nonce,
    parallelism: 1,
    tagLength: 32,
    memory,
    passes,
  });
  const text = (bytes: Buffer): string => bytes.toString("base64").replaceAll("=", "");
  return `$argon2id$v=19$m=${memory},t=${passes},p=1$${text(nonce)}$${text(tag)}`;
}
