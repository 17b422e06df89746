import { CookieJar, type SerializedCookieJar } from "tough-cookie";
import type { JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";

/** A cookie in the form of a browser. */
export interface BrowserCookie {
  readonly name: string;
  readonly value: string;
  /** With a leading dot, subdomains get it too. */
  readonly domain: string;
  readonly path: string;
  /** In seconds since 1970; -1: until the session ends. */
  readonly expires: number;
  readonly httpOnly: boolean;
  readonly secure: boolean;
  readonly sameSite: "Strict" | "Lax" | "None";
}

/** The cookies of one logged-in session. */
export interface SessionJar {
  /** The value of the `cookie` header for this URL, or undefined when no cookie belongs there. */
  cookieHeader(url: URL | string): string | undefined;
  /**
   * Stores the `set-cookie` lines of a response from this URL, except those that RFC 6265 or the public suffix list forbids.
   * Returns the values.
   */
  absorb(url: URL | string, setCookies: readonly string[]): readonly string[];
  /** Stores a browser's cookies, like `absorb`. */
  add(cookies: readonly BrowserCookie[]): void;
  /** All cookies, for a browser. */
  cookies(): readonly BrowserCookie[];
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
  const absorb: SessionJar["absorb"] = (url, setCookies) => {
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
  };
  return {
    absorb,
    add: (cookies) => cookies.forEach((cookie) => absorb(urlOf(cookie), [setCookieOf(cookie)])),
    cookies: () => (opened === null ? [] : plain().cookies.map(browserCookie)),
    cookieHeader(url) {
      return opened?.getCookieStringSync(String(url)) || undefined;
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

const urlOf = ({ domain, path, secure }: BrowserCookie): string =>
  `${secure ? "https" : "http"}://${domain.replace(/^\./, "")}${path}`;

/** As a target would have sent it. */
function setCookieOf({ name, value, domain, path, expires, ...flags }: BrowserCookie): string {
  return [
    `${name}=${value}`,
    `Path=${path}`,
    ...(domain.startsWith(".") ? [`Domain=${domain.slice(1)}`] : []),
    ...(expires > 0 ? [`Expires=${new Date(expires * 1_000).toUTCString()}`] : []),
    ...(flags.httpOnly ? ["HttpOnly"] : []),
    ...(flags.secure ? ["Secure"] : []),
    `SameSite=${flags.sameSite}`,
  ].join("; ");
}

function browserCookie(cookie: SerializedCookieJar["cookies"][number]): BrowserCookie {
  const { key, value, domain, path, expires, hostOnly, sameSite } = cookie;
  const until = typeof expires === "string" ? Date.parse(expires) : Number.NaN;
  return {
    name: String(key),
    value: String(value),
    domain: `${hostOnly === true ? "" : "."}${String(domain)}`,
    path: typeof path === "string" ? path : "/",
    expires: Number.isNaN(until) ? -1 : until / 1_000,
    httpOnly: cookie["httpOnly"] === true,
    secure: cookie["secure"] === true,
    sameSite: sameSite === "strict" ? "Strict" : sameSite === "none" ? "None" : "Lax",
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
