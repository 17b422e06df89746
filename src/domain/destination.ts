import { isJsonObject, type Json } from "./json.ts";

/**
 * The plaintexts of the vault, each with the origins that it may reach. The format must stay readable for years. Older releases,
 * and this one in a rolling upgrade, ignore unknown parts: a pair with a key that no field can have, an additional member.
 */

/** No field can have this key, since a field's key begins with a letter. */
const RESERVED = "@";
const ORIGINS_KEY = "@origins";

export interface CredentialContent {
  /** The end user's values by field key, in the order of the form. */
  readonly fields: ReadonlyMap<string, string>;
  /** Null: the credential was sealed before credentials contained origins. */
  readonly origins: readonly string[] | null;
}

/** The content has a form that this release does not write: a later release wrote it, or a person who has only the public key. */
export class UnknownContent extends Error {
  override readonly name = "UnknownContent";

  constructor() {
    super("The content of a sealed value does not have this release's format.");
  }
}

/** JSON: `[["@origins", "https://a.example https://b.example"], [field key, value], …]`. */
export function writeCredential(fields: ReadonlyMap<string, string>, origins: readonly string[]): string {
  return JSON.stringify([[ORIGINS_KEY, origins.join(" ")], ...fields]);
}

/** Throws UnknownContent. */
export function readCredential(plain: string): CredentialContent {
  const pairs = new Map(parse(plain, isPairs));
  const origins = pairs.get(ORIGINS_KEY);
  pairs.delete(ORIGINS_KEY);
  if ([...pairs.keys()].some((key) => key.startsWith(RESERVED))) throw new UnknownContent();
  return { fields: pairs, origins: origins?.split(" ").filter((origin) => origin !== "") ?? null };
}

/** JSON of an object (tokens, a logged-in session) with an additional member `origins`. */
export function writeWithOrigins(value: object, origins: readonly string[]): string {
  return JSON.stringify({ ...value, origins });
}

/** Throws UnknownContent. */
export function readWithOrigins<T extends object>(
  plain: string,
): { readonly value: T; readonly origins: readonly string[] | null } {
  const { origins = null, ...value } = parse(plain, isJsonObject);
  if (origins !== null && !isTexts(origins)) throw new UnknownContent();
  return { value: value as T, origins };
}

/** For everything except credentials, which have their own form. */
export type SealedKind = "credential" | "login_session" | "oauth_token";

/** The origins in a plaintext of the vault; null: none. Throws UnknownContent. */
export function originsIn(kind: SealedKind, plain: string): readonly string[] | null {
  return (kind === "credential" ? readCredential(plain) : readWithOrigins(plain)).origins;
}

/** The same content with other origins. Throws UnknownContent. */
export function withOrigins(kind: SealedKind, plain: string, origins: readonly string[]): string {
  return kind === "credential"
    ? writeCredential(readCredential(plain).fields, origins)
    : writeWithOrigins(readWithOrigins(plain).value, origins);
}

/** Whether two lists contain the same origins, in any order. */
export function isSameOrigins(one: readonly string[], other: readonly string[]): boolean {
  const [a, b] = [new Set(one), new Set(other)];
  return a.size === b.size && a.isSubsetOf(b);
}

function parse<T extends Json>(plain: string, is: (value: Json) => value is T): T {
  let value: Json;
  try {
    value = JSON.parse(plain) as Json;
  } catch {
    // The error's message would quote the plaintext.
    throw new UnknownContent();
  }
  if (!is(value)) throw new UnknownContent();
  return value;
}

const isTexts = (value: Json): value is readonly string[] =>
  Array.isArray(value) && value.every((each) => typeof each === "string");

const isPairs = (value: Json): value is readonly (readonly [string, string])[] =>
  Array.isArray(value) && value.every((each) => isTexts(each) && each.length === 2);
