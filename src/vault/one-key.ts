import { CompactEncrypt, compactDecrypt } from "jose";
import { CONTENT_ALGORITHM } from "./sealed-format.ts";
import { VaultError } from "./vault.ts";

const ALGORITHM = "dir";

/**
 * For data that lives for minutes and is opened by a process without a master key: a JWE (RFC 7516, compact, `dir`). Its key is
 * derived each time from a value that only the caller has; it is stored nowhere and opens nothing else.
 */
export async function encryptWithKey(key: Uint8Array, plaintext: Uint8Array): Promise<Uint8Array> {
  const jwe = await new CompactEncrypt(plaintext)
    .setProtectedHeader({ alg: ALGORITHM, enc: CONTENT_ALGORITHM })
    .encrypt(key);
  return Buffer.from(jwe, "ascii");
}

/** The caller owns the bytes and may zero them. Throws VaultError. */
export async function decryptWithKey(key: Uint8Array, encrypted: Uint8Array): Promise<Uint8Array> {
  try {
    const { plaintext } = await compactDecrypt(Buffer.from(encrypted).toString("ascii"), key, {
      keyManagementAlgorithms: [ALGORITHM],
      contentEncryptionAlgorithms: [CONTENT_ALGORITHM],
      maxDecompressedLength: 0,
    });
    return plaintext;
  } catch {
    throw new VaultError("cannot_open");
  }
}
