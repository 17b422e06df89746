import { randomBytes } from "node:crypto";
import type { OperatorKeys } from "#lib/signing.ts";

/** Cookies of browsers in which operators have signed in, by the part of the cookie's name that identifies the operator. */
export type KnownBrowserCookies = ReadonlyMap<string, string>;

/** The cookie that marks a browser as known to belong to an operator. */
export interface KnownBrowser {
  readonly nameKey: string;
  readonly value: string;
}

const NONCE_BYTES = 16;
const VALUE = /^([\w-]{22})\.([\w-]{43})$/;
const NAME_KEY_CHARACTERS = 16;

const nameKeyOf = (keys: OperatorKeys, name: string): string =>
  keys.nameHash(`browser/${name}`).toString("hex").slice(0, NAME_KEY_CHARACTERS);

/** The nonce of a genuine cookie for this name key; null: not genuine. */
function readValue(keys: OperatorKeys, nameKey: string, value: string): string | null {
  const [, nonce = "", mac = ""] = VALUE.exec(value) ?? [];
  return nonce !== "" && keys.verifyKnownBrowser(nameKey, nonce, mac) ? nonce : null;
}

/** The counter key for a browser's attempts under this name; null: that operator never signed in there. */
export function findKnownBrowser(
  keys: OperatorKeys,
  name: string,
  cookies: KnownBrowserCookies,
): string | null {
  const nameKey = nameKeyOf(keys, name);
  return readValue(keys, nameKey, cookies.get(nameKey) ?? "");
}

/** The same for everyone, for requests before the name is known. */
export function findAnyKnownBrowser(keys: OperatorKeys, cookies: KnownBrowserCookies): string | null {
  for (const [nameKey, value] of cookies) {
    const nonce = readValue(keys, nameKey, value);
    if (nonce !== null) return nonce;
  }
  return null;
}

/** After a sign-in. A known browser keeps its cookie. */
export function makeKnownBrowser(
  keys: OperatorKeys,
  name: string,
  cookies: KnownBrowserCookies,
): KnownBrowser {
  const nameKey = nameKeyOf(keys, name);
  const nonce = findKnownBrowser(keys, name, cookies) ?? randomBytes(NONCE_BYTES).toString("base64url");
  return { nameKey, value: `${nonce}.${keys.knownBrowser(nameKey, nonce)}` };
}
