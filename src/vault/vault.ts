import type { KeyObject } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { FlattenedEncrypt, flattenedDecrypt } from "jose";
import { encodeBinding, type SealBinding } from "./binding.ts";
import { readPublicKey } from "./master-key.ts";
import { CONTENT_ALGORITHM, KEY_ALGORITHM, readSealed, writeSealed } from "./sealed-format.ts";

/** A sealed value as a row stores it, always together with the key's id, so that it is known which key each value needs. */
export interface Sealed {
  readonly sealed: Uint8Array;
  /** The key that it was sealed with. */
  readonly kid: string;
}

/**
 * The barrier: bytes in, bytes out. The public key seals; only the private key opens. A seal proves that its content belongs to
 * its row, but not who created it: anyone with the public key can seal.
 */
export interface Vault {
  /** Whether this process has the private half of the current sealing key. */
  readonly canOpen: boolean;
  /** Whether this process can open values sealed with that key. */
  holds(kid: string): boolean;
  /** Neither retains nor changes `plaintext`: the caller may zero it afterwards. */
  seal(plaintext: Uint8Array, binding: SealBinding): Promise<Sealed>;
  /** The caller owns the bytes and may zero them. Throws VaultError. */
  open(sealed: Uint8Array, binding: SealBinding): Promise<Uint8Array>;
}

/** A vault whose keys can change while it is in use, for rotations. */
export interface Keyring extends Vault {
  /** The key that seals now. */
  readonly kid: string;
  /** Seals with this key from now on. Throws MasterKeyError. */
  sealWith(publicJwk: string): void;
  /**
   * Whether this process can open values sealed with that key, after reading the private keys again. Throws the errors of reading
   * them.
   */
  learn(kid: string): Promise<boolean>;
}

export type VaultErrorCode = "cannot_open" | "no_private_key";

/** The same error for every problem with a sealed value, and without a cause, so that nobody learns how close a forgery came. */
export class VaultError extends Error {
  override readonly name = "VaultError";
  readonly code: VaultErrorCode;

  constructor(code: VaultErrorCode) {
    super(
      code === "cannot_open"
        ? "The vault cannot open this."
        : "This process can seal but not open: it has no master key. Provide one, or leave opening to the worker role.",
    );
    this.code = code;
  }
}

type PrivateKeys = ReadonlyMap<string, KeyObject>;

/** The least time between two readings: a row that names an unknown key must not make every run read a file. */
const REREAD_MS = 1_000;
const SEARCHES_MAX = 100;

/**
 * Opens a vault with the primary public key (JWK text) and, where it may open values, private keys by `kid`. `reread` returns the
 * current private keys, for a source that can be read again. Throws MasterKeyError.
 */
export function openVault(keys: {
  readonly publicKey: string;
  readonly privateKeys?: PrivateKeys | undefined;
  readonly reread?: (() => Promise<PrivateKeys>) | undefined;
}): Keyring {
  let primary = readPublicKey(keys.publicKey);
  let privateKeys: PrivateKeys = keys.privateKeys ?? new Map<string, KeyObject>();
  let rereadAt = -Infinity;
  let next: Promise<void> | null = null;
  /** The next reading, for all who wait for it. */
  const readNext = (reread: () => Promise<PrivateKeys>): Promise<void> =>
    (next ??= sleep(Math.max(0, rereadAt + REREAD_MS - performance.now())).then(async () => {
      next = null;
      rereadAt = performance.now();
      // Keys are only added: a value sealed a moment ago can still be opened after its key was removed from the file.
      privateKeys = new Map([...privateKeys, ...(await reread())]);
    }));
  const searches = new Map<string, { readonly startedAt: number; readonly found: Promise<boolean> }>();
  const learn = async (kid: string): Promise<boolean> => {
    const { reread } = keys;
    if (privateKeys.has(kid)) return true;
    if (!reread) return false;
    const last = searches.get(kid);
    if (last && performance.now() - last.startedAt < REREAD_MS) return await last.found;
    if (searches.size >= SEARCHES_MAX) searches.clear();
    const found = readNext(reread).then(() => privateKeys.has(kid));
    searches.set(kid, { startedAt: performance.now(), found });
    return await found;
  };
  return {
    get kid() {
      return primary.kid;
    },
    get canOpen() {
      return privateKeys.has(primary.kid);
    },
    holds: (kid) => privateKeys.has(kid),
    sealWith: (publicJwk) => {
      primary = readPublicKey(publicJwk);
    },
    learn,
    seal: async (plaintext, binding) => await seal(primary, plaintext, binding),
    open: async (sealed, binding) => {
      if (privateKeys.size === 0) throw new VaultError("no_private_key");
      const read = readSealed(sealed, encodeBinding(binding));
      // If the keys can't be read again, the key counts as unknown. The chore that follows the keys logs the reason.
      if (read && !privateKeys.has(read.kid)) await learn(read.kid).catch(() => false);
      return await open(read && privateKeys.get(read.kid), read);
    },
  };
}

async function seal(
  { kid, key }: { kid: string; key: KeyObject },
  plaintext: Uint8Array,
  binding: SealBinding,
): Promise<Sealed> {
  const jwe = await new FlattenedEncrypt(plaintext)
    .setProtectedHeader({ alg: KEY_ALGORITHM, enc: CONTENT_ALGORITHM, kid })
    .setAdditionalAuthenticatedData(encodeBinding(binding))
    .encrypt(key);
  return { sealed: writeSealed(jwe), kid };
}

async function open(key: KeyObject | undefined, read: ReturnType<typeof readSealed>): Promise<Uint8Array> {
  if (!key || !read) throw new VaultError("cannot_open");
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
