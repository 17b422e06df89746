import type { FlattenedJWE } from "jose";

/**
 * The only format of a sealed value: a JWE (RFC 7516) in flattened JSON serialisation, UTF-8, compact, members in the order of
 * MEMBERS. docs/decisions/0013.
 */
export const KEY_ALGORITHM = "ECDH-ES+A256KW";
export const CONTENT_ALGORITHM = "A256GCM";
export const CURVE = "X25519";

const MEMBERS = ["protected", "encrypted_key", "iv", "ciphertext", "tag", "aad"] as const;

const KEY_BYTES = 32;
/** A 256-bit content key under AES key wrap. */
const WRAPPED_KEY_BYTES = 40;
const IV_BYTES = 12;
const TAG_BYTES = 16;

export function writeSealed(jwe: FlattenedJWE): Uint8Array {
  return Buffer.from(JSON.stringify(jwe, [...MEMBERS]), "utf8");
}

/**
 * Reads a sealed value in exactly this format; the header alone is never trusted (docs/decisions/0013). Undefined for another
 * algorithm or curve, a compressed or unauthenticated header, several recipients, a short tag, a missing or different AAD, and
 * any other encoding of the same bytes.
 */
export function readSealed(sealed: Uint8Array, aad: Buffer): { kid: string; jwe: FlattenedJWE } | undefined {
  const text = Buffer.from(sealed).toString("utf8");
  const value = parseObject(text);
  if (value === undefined || !hasExactly(value, MEMBERS)) return undefined;
  if (JSON.stringify(value, [...MEMBERS]) !== text) return undefined;
  const { encrypted_key, iv, tag, aad: boundTo } = value;
  const sized =
    decode(encrypted_key)?.length === WRAPPED_KEY_BYTES &&
    decode(iv)?.length === IV_BYTES &&
    decode(tag)?.length === TAG_BYTES &&
    decode(value.ciphertext) !== undefined;
  if (!sized || decode(boundTo)?.equals(aad) !== true) return undefined;
  const kid = readHeader(value.protected);
  return kid === undefined ? undefined : { kid, jwe: value };
}

/** The `kid` of a protected header that has exactly our members and algorithms. */
function readHeader(text: string): string | undefined {
  const header = parseObject(decode(text)?.toString("utf8") ?? "");
  if (header === undefined || Object.keys(header).toSorted().join() !== "alg,enc,epk,kid") return undefined;
  const { alg, enc, epk, kid } = header as Record<string, unknown>;
  if (alg !== KEY_ALGORITHM || enc !== CONTENT_ALGORITHM || typeof kid !== "string") return undefined;
  if (typeof epk !== "object" || epk === null || !hasExactly(epk, ["kty", "crv", "x"] as const))
    return undefined;
  const onCurve = epk.kty === "OKP" && epk.crv === CURVE && decode(epk.x)?.length === KEY_BYTES;
  return onCurve ? kid : undefined;
}

function parseObject(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function hasExactly<M extends string>(value: object, members: readonly M[]): value is Record<M, string> {
  const record = value as Record<string, unknown>;
  return (
    Object.keys(value).length === members.length &&
    members.every((member) => Object.hasOwn(value, member) && typeof record[member] === "string")
  );
}

/** Decodes base64url. Undefined if it is not canonical. */
function decode(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, "base64url");
  return bytes.toString("base64url") === text ? bytes : undefined;
}
