import {
  createPrivateKey,
  createPublicKey,
  sign,
  timingSafeEqual,
  verify,
  type KeyObject,
} from "node:crypto";
import { openHmac } from "./hmac.ts";

/**
 * The keys of the audit log, both derived from the signing key. The seal proves that one of our processes wrote an entry. The
 * signature fixes its place in the chain and can be verified with the public key alone.
 */
export interface AuditKeys extends AuditVerifier {
  seal(bytes: Uint8Array): Buffer;
  isSealed(bytes: Uint8Array, seal: Uint8Array): boolean;
  sign(bytes: Uint8Array): Buffer;
}

/** What everybody may have. */
export interface AuditVerifier {
  isSigned(bytes: Uint8Array, signature: Uint8Array): boolean;
  /** The 32 bytes of the Ed25519 key, base64url. */
  readonly publicKey: string;
}

/** The prefixes of an Ed25519 key's 32 bytes in PKCS #8 and in SubjectPublicKeyInfo (RFC 8410). */
const PRIVATE_HEAD = Buffer.from("302e020100300506032b657004220420", "hex");
const PUBLIC_HEAD = Buffer.from("302a300506032b6570032100", "hex");
const KEY_BYTES = 32;

/** `publicKey`: base64url. Throws RangeError: it is no such key. */
export function openAuditVerifier(publicKey: string): AuditVerifier {
  const raw = Buffer.from(publicKey, "base64url");
  if (raw.length !== KEY_BYTES || raw.toString("base64url") !== publicKey)
    throw new RangeError("not the 32 bytes of an Ed25519 key in base64url");
  const key = createPublicKey({ key: Buffer.concat([PUBLIC_HEAD, raw]), format: "der", type: "spki" });
  return { publicKey, isSigned: (bytes, signature) => verify(null, bytes, key, signature) };
}

export function openAuditKeys(sealKey: Buffer, signSeed: Buffer): AuditKeys {
  const privateKey = createPrivateKey({
    key: Buffer.concat([PRIVATE_HEAD, signSeed]),
    format: "der",
    type: "pkcs8",
  });
  const publicKey = createPublicKey(privateKey);
  const seal = openHmac(sealKey);
  return {
    seal,
    isSealed: (bytes, given) => given.length === 32 && timingSafeEqual(seal(bytes), given),
    sign: (bytes) => sign(null, bytes, privateKey),
    isSigned: (bytes, signature) => verify(null, bytes, publicKey, signature),
    publicKey: rawPublicKey(publicKey),
  };
}

function rawPublicKey(key: KeyObject): string {
  return key.export({ format: "der", type: "spki" }).subarray(PUBLIC_HEAD.length).toString("base64url");
}
