import { CookieJar, type SerializedCookieJar } from "tough-cookie";
import type { JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";

/** The cookies of one logged-in session. */
export interface SessionJar {
  /** The value of the `cookie` header for this URL, or undefined when no cookie belongs there. */
  cookieHeader(url: URL | string): string | undefined;
  /**
   * Stores the `set-cookie` lines of a response from this URL, except those that RFC 6265 or the public suffix list forbids.
   * Returns the values.
   */
  absorb(url: URL | string, setCookies: readonly string[]): readonly string[];
  /** The limit of RFC 6265 that the target exceeded with the number of its cookies; null: none. */
  readonly overflow: string | null;
  /** The value of a cookie by name: the one for this URL, else the one that was set last for another URL. */
  value(name: string, url: URL | string): string | undefined;
  /** Plain JSON; secret. */
  serialise(): JsonObject;
}

/** Browsers limit name and value to 4,096 characters; attributes are extra. */
const COOKIE_CHARACTERS_MAX = 8_192;

/** Creates a new jar, or restores one from `serialise`. `localhost`, loopback and IP hosts work like any other. */
export function openJar(serialised?: JsonObject | null): SessionJar {
  // Every run opens one, and most targets set no cookies.
  let opened = serialised ? CookieJar.deserializeSync(JSON.stringify(serialised)) : null;
  const open = (): CookieJar =>
    (opened ??= new CookieJar(undefined, { rejectPublicSuffixes: true, allowSpecialUseDomain: true }));
  const plain = (): SerializedCookieJar =>
    JSON.parse(JSON.stringify(open().serializeSync())) as SerializedCookieJar;
  let set = opened === null ? 0 : plain().cookies.length;
  let overflow: string | null = null;
  return {
    cookieHeader(url) {
      return opened?.getCookieStringSync(String(url)) || undefined;
    },
    absorb(url, setCookies) {
      const values: string[] = [];
      for (const line of setCookies) {
        if (overflow !== null) break;
        if (line.length > COOKIE_CHARACTERS_MAX) continue;
        const cookie = open().setCookieSync(line, String(url), { ignoreError: true });
        if (cookie) values.push(cookie.value);
        // Cookies are counted only when a limit may be exceeded.
        if (++set % limits.domainCookiesMax === 0) overflow = overLimit(plain());
      }
      if (overflow === null && set > limits.domainCookiesMax && values.length > 0)
        overflow = overLimit(plain());
      return values;
    },
    get overflow() {
      return overflow;
    },
    value(name, url) {
      if (opened === null) return undefined;
      const here = opened.getCookiesSync(String(url)).find((cookie) => cookie.key === name);
      return (here ?? plain().cookies.findLast((cookie) => cookie.key === name))?.value;
    },
    serialise: () => plain() as unknown as JsonObject,
  };
}

function overLimit({ cookies }: SerializedCookieJar): string | null {
  if (cookies.length > limits.cookiesMax)
    return `the target set more than ${limits.cookiesMax} cookies in all`;
  for (const [domain, own] of Map.groupBy(cookies, (cookie) => String(cookie.domain)))
    if (own.length > limits.domainCookiesMax)
      return `${domain} set more than ${limits.domainCookiesMax} cookies, the most that are kept for one domain`;
  return null;
}
