import { createHash, randomBytes } from "node:crypto";

/** A target's challenge (RFC 7616, 3.3). */
export interface DigestChallenge {
  readonly realm: string;
  readonly nonce: string;
  readonly opaque: string | null;
  readonly algorithm: DigestAlgorithm;
  /** As the target wrote it; null: it named none, which means MD5. */
  readonly algorithmText: string | null;
  readonly isStale: boolean;
  /** Whether the user name is also sent as a digest. */
  readonly hidesUser: boolean;
}

/** RFC 7616, 3.3; with `-sess` the first nonce goes into the key. */
interface DigestAlgorithm {
  readonly hash: "sha256" | "sha512-256" | "md5";
  readonly isSession: boolean;
}

/** The strongest first. */
const HASHES = [
  ["SHA-256", "sha256"],
  ["SHA-512-256", "sha512-256"],
  ["MD5", "md5"],
] as const;

/** `none`: the header has no Digest challenge. `problem`: why no challenge can be answered, a phrase that follows the host's name. */
export type ReadChallenge = DigestChallenge | "none" | { readonly problem: string };

interface Scheme {
  readonly name: string;
  readonly parameters: ReadonlyMap<string, string>;
}

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const PARAMETER = new RegExp(`^(${TOKEN})[ \\t]*=[ \\t]*(?:"((?:[^"\\\\]|\\\\.)*)"|(${TOKEN}))`);
const SCHEME = new RegExp(`^(${TOKEN})(?=[ \\t,]|$)`);

/** The strongest of the challenges in `WWW-Authenticate` that can be answered. */
export function readChallenge(header: string): ReadChallenge {
  const digests = readSchemes(header).filter(({ name }) => name.toLowerCase() === "digest");
  if (digests.length === 0) return "none";
  const read = digests.map(({ parameters }) => challengeOf(parameters));
  const usable = read.filter((each) => "nonce" in each);
  const [best] = usable.sort((left, right) => rankOf(left) - rankOf(right));
  return best ?? read[0] ?? "none";
}

const rankOf = ({ algorithm }: DigestChallenge): number =>
  HASHES.findIndex(([, hash]) => hash === algorithm.hash);

/** RFC 9110, 11.6.1: commas separate both schemes and their parameters. Stops at the first part that can't be parsed. */
function readSchemes(header: string): readonly Scheme[] {
  const schemes: { name: string; parameters: Map<string, string> }[] = [];
  let rest = header;
  for (;;) {
    rest = rest.replace(/^[\s,]+/, "");
    const parameter = PARAMETER.exec(rest);
    const last = schemes.at(-1);
    if (parameter !== null && last !== undefined) {
      const [whole, name = "", quoted, token] = parameter;
      const value = quoted === undefined ? (token ?? "") : quoted.replaceAll(/\\(.)/gs, "$1");
      // The first one counts, as for a repeated header.
      if (!last.parameters.has(name.toLowerCase())) last.parameters.set(name.toLowerCase(), value);
      rest = rest.slice(whole.length);
      continue;
    }
    const scheme = SCHEME.exec(rest);
    if (scheme === null) return schemes;
    schemes.push({ name: scheme[1] ?? "", parameters: new Map() });
    // This also skips a token in place of parameters (`Negotiate abc==`).
    rest = rest.slice(scheme[0].length).replace(/^[ \t]+[A-Za-z0-9._~+/-]+=*[ \t]*(?=,|$)/, "");
  }
}

function challengeOf(
  parameters: ReadonlyMap<string, string>,
): DigestChallenge | { readonly problem: string } {
  const realm = parameters.get("realm");
  const nonce = parameters.get("nonce");
  if (realm === undefined || nonce === undefined || nonce === "")
    return { problem: "asks for a digest without a realm or a nonce" };
  const algorithmText = parameters.get("algorithm") ?? null;
  const [, name = "", session] = /^(.*?)(-sess)?$/i.exec(algorithmText ?? "MD5") ?? [];
  const hash = HASHES.find(([known]) => known === name.toUpperCase())?.[1];
  // The target determines this value, so it is shown only if it is a known one.
  if (hash === undefined)
    return { problem: "asks for a digest with an algorithm other than MD5, SHA-256 and SHA-512-256" };
  const kinds = (parameters.get("qop") ?? "").split(",").map((kind) => kind.trim().toLowerCase());
  if (!kinds.includes("auth"))
    return { problem: "asks for a digest without `qop=auth`, the only supported kind" };
  return {
    realm,
    nonce,
    opaque: parameters.get("opaque") ?? null,
    algorithm: { hash, isSession: session !== undefined },
    algorithmText,
    isStale: parameters.get("stale")?.toLowerCase() === "true",
    hidesUser: parameters.get("userhash")?.toLowerCase() === "true",
  };
}

/** `nextnonce` of the header `Authentication-Info` (RFC 7616, 3.5); null: there is none. */
export function readNextNonce(header: string): string | null {
  const [scheme] = readSchemes(`Digest ${header}`);
  return scheme?.parameters.get("nextnonce") ?? null;
}

export interface DigestUser {
  readonly username: string;
  readonly password: string;
}

/** One use of a challenge. */
export interface DigestUse {
  readonly method: string;
  /** Path and query, as sent. */
  readonly target: string;
  /** The number of this use of the nonce, from 1. */
  readonly count: number;
  readonly cnonce: string;
}

export const newCnonce = (): string => randomBytes(24).toString("base64url");

/** The value of the header `Authorization` (RFC 7616, 3.4). */
export function digestHeader(challenge: DigestChallenge, user: DigestUser, use: DigestUse): string {
  const { realm, nonce, opaque, algorithm, algorithmText, hidesUser } = challenge;
  const hash = (...parts: readonly Buffer[]): string => digestOf(algorithm.hash, parts);
  const [username, password] = [utf8(user.username), utf8(user.password)];
  // Headers are decoded as Latin-1, so these are the realm's bytes in any charset.
  const realmBytes = Buffer.from(realm, "latin1");
  const own = hash(username, realmBytes, password);
  const { cnonce, method, target } = use;
  const key = algorithm.isSession ? hash(latin1(own), latin1(nonce), latin1(cnonce)) : own;
  const count = use.count.toString(16).padStart(8, "0");
  const response = hash(
    ...[key, nonce, count, cnonce, "auth"].map(latin1),
    latin1(hash(latin1(method), latin1(target))),
  );
  const parameters = [
    hidesUser ? `username=${quoted(hash(username, realmBytes))}` : named(user.username),
    `realm=${quoted(realm)}`,
    `uri=${quoted(target)}`,
    ...(algorithmText === null ? [] : [`algorithm=${algorithmText}`]),
    `nonce=${quoted(nonce)}`,
    `nc=${count}`,
    `cnonce=${quoted(cnonce)}`,
    "qop=auth",
    `response=${quoted(response)}`,
    ...(opaque === null ? [] : [`opaque=${quoted(opaque)}`]),
    ...(hidesUser ? ["userhash=true"] : []),
  ];
  return `Digest ${parameters.join(", ")}`;
}

/** RFC 7616, 3.2: the digest of the parts, joined by colons. */
function digestOf(hash: DigestAlgorithm["hash"], parts: readonly Buffer[]): string {
  const hashing = createHash(hash);
  for (const [index, part] of parts.entries()) {
    if (index > 0) hashing.update(":");
    hashing.update(part);
  }
  return hashing.digest("hex");
}

/** RFC 7616, 4: in Unicode normalization form C. */
const utf8 = (text: string): Buffer => Buffer.from(text.normalize("NFC"), "utf8");
const latin1 = (text: string): Buffer => Buffer.from(text, "latin1");

const quoted = (text: string): string => `"${text.replaceAll(/["\\]/g, "\\$&")}"`;

/** RFC 7616, 3.4.4: a name that can't be quoted is encoded according to RFC 8187. */
function named(username: string): string {
  if (/^[\x20-\x7e]*$/.test(username)) return `username=${quoted(username)}`;
  const encoded = encodeURIComponent(username.normalize("NFC").toWellFormed()).replaceAll(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `username*=UTF-8''${encoded}`;
}
