import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
} from "node:crypto";
import { assert, must } from "#lib/assert.ts";
import { ExplainedError } from "#lib/explained-error.ts";
import { CURVE, KEY_ALGORITHM } from "./sealed-format.ts";

/** The vault's private keys, as stored in a key source: the primary one seals and opens, others (from before a rotation) only open. */
export interface MasterKey {
  /** The `kid` of the primary key. */
  readonly kid: string;
  /** The primary key's public half, JSON. */
  readonly publicJwk: string;
  /** The public halves of all keys, JSON, by `kid`. */
  readonly publicJwks: ReadonlyMap<string, string>;
  readonly privateKeys: ReadonlyMap<string, KeyObject>;
}

/** An unusable key text. The message says what to do and never quotes the text. */
export class MasterKeyError extends ExplainedError {}

/** A `kid` is 96 bits of the JWK thumbprint. */
const KID_CHARACTERS = 16;

/**
 * Generates a master key. `fileText` is the content of its file, `{"keys": [private JWK, …], "primary": kid}`, so that a rotation
 * adds a key without changing the format.
 */
export function generateMasterKey(): { fileText: string; publicJwk: string; kid: string } {
  const { kid, jwk } = generateKey();
  return { fileText: writeKeySet([jwk], kid), publicJwk: writePublicJwk(kid, jwk.x), kid };
}

/** Adds a new key to a keyset. Throws MasterKeyError when `fileText` is not a keyset. */
export function addMasterKey(fileText: string): { fileText: string; kid: string } {
  const { kid: primary } = readMasterKey(fileText);
  const { kid, jwk } = generateKey();
  return { fileText: writeKeySet([...parseKeySet(fileText.trim()).keys, jwk], primary), kid };
}

/** Makes another key the primary one, with which a new, empty database starts. */
export function setPrimaryKey(fileText: string, kid: string): string {
  return writeKeySet(parseKeySet(fileText.trim()).keys, kid);
}

function generateKey() {
  // One in 64 begins with a hyphen: `latchkey master-key promote -oE7…` would take it for an option.
  let made = generateParts();
  while (made.kid.startsWith("-")) made = generateParts();
  const { kid, x, d } = made;
  return { kid, jwk: { kty: "OKP", crv: CURVE, kid, use: "enc", alg: KEY_ALGORITHM, x, d } };
}

function generateParts() {
  const { privateKey } = generateKeyPairSync("x25519");
  const { x, d } = privateKey.export({ format: "jwk" });
  assert(typeof x === "string" && typeof d === "string", "an X25519 key has x and d");
  return { kid: keyId(x), x, d };
}

function writeKeySet(keys: readonly unknown[], primary: string): string {
  return `${JSON.stringify({ keys, primary }, null, 2)}\n`;
}

/** Reads what `generateMasterKey` made. Throws MasterKeyError. */
export function readMasterKey(fileText: string): MasterKey {
  const text = fileText.trim();
  if (text === "") throw new MasterKeyError("The master key is empty. Restore its file from your backup.");
  if (text.startsWith("lks_"))
    throw new MasterKeyError("This is a signing key, not a master key. Check that the two were not swapped.");
  const file = parseKeySet(text);
  const privateKeys = new Map(file.keys.map((jwk, index) => readPrivateKey(jwk, index + 1)));
  if (privateKeys.size !== file.keys.length)
    throw new MasterKeyError("The master key contains the same key twice. Remove one of them.");
  const primary = privateKeys.get(file.primary);
  if (primary === undefined) {
    throw new MasterKeyError(
      "The master key's `primary` does not name any of its keys. Set it to the `kid` of one of them.",
    );
  }
  const publicJwks = new Map(
    [...privateKeys].map(([kid, key]) => [kid, writePublicJwk(kid, publicPart(key))]),
  );
  return {
    kid: file.primary,
    publicJwk: must(publicJwks.get(file.primary), "primary"),
    publicJwks,
    privateKeys,
  };
}

/** A public key from the database or a key file, and its `kid`. Throws MasterKeyError. */
export function readPublicKey(publicJwk: string): { kid: string; key: KeyObject } {
  const jwk = parseJson(publicJwk);
  if (!isObject(jwk) || jwk["kty"] !== "OKP" || jwk["crv"] !== CURVE || typeof jwk["x"] !== "string") {
    throw new MasterKeyError(`The vault's public key is not a JSON Web Key on ${CURVE}.`);
  }
  if ("d" in jwk)
    throw new MasterKeyError(
      "The vault's public key contains a private key, which must never be stored there.",
    );
  const { x } = jwk;
  if (jwk["kid"] !== keyId(x)) throw new MasterKeyError("The vault's public key does not match its `kid`.");
  try {
    return { kid: keyId(x), key: createPublicKey({ key: { kty: "OKP", crv: CURVE, x }, format: "jwk" }) };
  } catch {
    throw new MasterKeyError("The vault's public key is damaged.");
  }
}

function parseKeySet(text: string): { keys: readonly unknown[]; primary: string } {
  const value = parseJson(text);
  if (value === undefined && text.startsWith("{")) {
    throw new MasterKeyError(
      "The master key is truncated or damaged: it is not complete JSON. Restore its file from your backup.",
    );
  }
  const keys = isObject(value) ? value["keys"] : undefined;
  const primary = isObject(value) ? value["primary"] : undefined;
  if (!Array.isArray(keys) || keys.length === 0 || typeof primary !== "string") {
    throw new MasterKeyError(
      'This is not a master key. Its file must contain JSON: {"keys": [private JWK, …], "primary": "<kid>"}.',
    );
  }
  return { keys, primary };
}

function readPrivateKey(jwk: unknown, place: number): [kid: string, key: KeyObject] {
  const refuse = (reason: string) => new MasterKeyError(`Key ${place} of the master key ${reason}`);
  if (!isObject(jwk) || jwk["kty"] !== "OKP" || jwk["crv"] !== CURVE) {
    throw refuse(`has the wrong type. It must be a JSON Web Key on ${CURVE} ("kty": "OKP").`);
  }
  const { x, d, kid } = jwk;
  if (typeof d !== "string") throw refuse("is only a public key. The private one (with `d`) is needed.");
  const damaged = "is truncated or damaged. Restore the file from your backup.";
  if (typeof x !== "string" || kid !== keyId(x)) throw refuse(damaged);
  let key: KeyObject;
  try {
    key = createPrivateKey({ key: { kty: "OKP", crv: CURVE, x, d }, format: "jwk" });
  } catch {
    // The cause would disclose which bytes were wrong.
    throw refuse(damaged);
  }
  // With mismatched halves, the vault would seal values that it can't open.
  if (publicPart(key) !== x) throw refuse(damaged);
  return [kid, key];
}

function publicPart(key: KeyObject): string {
  const { x } = createPublicKey(key).export({ format: "jwk" });
  assert(typeof x === "string", "an X25519 key has x");
  return x;
}

function writePublicJwk(kid: string, x: string): string {
  return JSON.stringify({ kty: "OKP", crv: CURVE, kid, use: "enc", alg: KEY_ALGORITHM, x });
}

/** RFC 7638: SHA-256 of the key's required members, in alphabetical order. */
function keyId(x: string): string {
  const members = JSON.stringify({ crv: CURVE, kty: "OKP", x });
  return createHash("sha256").update(members).digest("base64url").slice(0, KID_CHARACTERS);
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // V8's message quotes the text.
    return undefined;
  }
}
