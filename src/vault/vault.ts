import type { KeyObject } from "node:crypto";
import { FlattenedEncrypt, flattenedDecrypt } from "jose";
import { encodeBinding, type SealBinding } from "./binding.ts";
import { readPublicKey } from "./master-key.ts";
import { CONTENT_ALGORITHM, KEY_ALGORITHM, readSealed, writeSealed } from "./sealed-format.ts";

/**
 * The barrier: bytes in, bytes out. Whoever has the public key seals; only who holds the private key opens. A seal proves that
 * its content belongs to its row, not who made it: anybody with the public key can seal.
 */
export interface Vault {
  /** The key that seals. */
  readonly kid: string;
  /** Whether this process holds the private half of the key that seals. */
  readonly canOpen: boolean;
  /** Neither keeps nor changes `plaintext`: who made it may zero it afterwards. */
  seal(plaintext: Uint8Array, binding: SealBinding): Promise<Uint8Array>;
  /** The caller owns the bytes and may zero them. Throws VaultError. */
  open(sealed: Uint8Array, binding: SealBinding): Promise<Uint8Array>;
}

export type VaultErrorCode = "cannot_open" | "no_private_key";

/** One error for whatever is wrong with a sealed value, with no cause: nobody learns how close a forgery came. */
export class VaultError extends Error {
  override readonly name = "VaultError";
  readonly code: VaultErrorCode;

  constructor(code: VaultErrorCode) {
    super(
      code === "cannot_open"
        ? "The vault cannot open this."
        : "This process can seal but not open: it has no master key. Give it one, or leave opening to the worker role.",
    );
    this.code = code;
  }
}

/** A vault over the primary public key (JWK text) and, where it may open, private keys by `kid`. Throws MasterKeyError. */
export function openVault(keys: {
  readonly publicKey: string;
  readonly privateKeys?: ReadonlyMap<string, KeyObject> | undefined;
}): Vault {
  const { kid, key: publicKey } = readPublicKey(keys.publicKey);
  const privateKeys = keys.privateKeys ?? new Map<string, KeyObject>();
  return {
    kid,
    canOpen: privateKeys.has(kid),
    seal: async (plaintext, binding) => await seal(publicKey, kid, plaintext, binding),
    open: async (sealed, binding) => await open(privateKeys, sealed, binding),
  };
}

async function seal(
  publicKey: KeyObject,
  kid: string,
  plaintext: Uint8Array,
  binding: SealBinding,
): Promise<Uint8Array> {
  const jwe = await new FlattenedEncrypt(plaintext)
    .setProtectedHeader({ alg: KEY_ALGORITHM, enc: CONTENT_ALGORITHM, kid })
    .setAdditionalAuthenticatedData(encodeBinding(binding))
    .encrypt(publicKey);
  return writeSealed(jwe);
}

async function open(
  privateKeys: ReadonlyMap<string, KeyObject>,
  sealed: Uint8Array,
  binding: SealBinding,
): Promise<Uint8Array> {
  if (privateKeys.size === 0) throw new VaultError("no_private_key");
  const read = readSealed(sealed, encodeBinding(binding));
  const key = read && privateKeys.get(read.kid);
  if (!key) throw new VaultError("cannot_open");
  try {
    const { plaintext } = await flattenedDecrypt(read.jwe, key, {
      keyManagementAlgorithms: [KEY_ALGORITHM],
      contentEncryptionAlgorithms: [CONTENT_ALGORITHM],
      maxDecompressedLength: 0,
    });
    return plaintext;
  } catch {
    throw new VaultError("cannot_open");
  }
}
