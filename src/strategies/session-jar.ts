import { CookieJar, type SerializedCookieJar } from "tough-cookie";
import type { JsonObject } from "#domain/json.ts";

/** The cookies of one logged-in session. */
export interface SessionJar {
  /** The value of the `cookie` header for this URL, or undefined when no cookie belongs there. */
  cookieHeader(url: URL | string): string | undefined;
  /** Keeps the `set-cookie` lines of a response from this URL. Lines that RFC 6265 or the public suffix list refuse are skipped. */
  absorb(url: URL | string, setCookies: readonly string[]): void;
  /** The value of a cookie by name: the one that belongs to this URL, else the one of another place that was set last. */
  value(name: string, url: URL | string): string | undefined;
  /** Plain JSON; secret. */
  serialise(): JsonObject;
}

/** Browsers' limit is 4,096 for name and value; attributes come on top. */
const COOKIE_CHARACTERS_MAX = 8_192;

/** A new jar, or one that `serialise` gave. `localhost`, loopback and IP hosts work like any other. */
export function openJar(serialised?: JsonObject | null): SessionJar {
  const jar =
    serialised === undefined || serialised === null
      ? new CookieJar(undefined, { rejectPublicSuffixes: true, allowSpecialUseDomain: true })
      : CookieJar.deserializeSync(JSON.stringify(serialised));
  const plain = (): SerializedCookieJar =>
    JSON.parse(JSON.stringify(jar.serializeSync())) as SerializedCookieJar;
  return {
    cookieHeader(url) {
      const header = jar.getCookieStringSync(String(url));
      return header === "" ? undefined : header;
    },
    absorb(url, setCookies) {
      for (const line of setCookies) {
        if (line.length <= COOKIE_CHARACTERS_MAX) jar.setCookieSync(line, String(url), { ignoreError: true });
      }
    },
    value(name, url) {
      const here = jar.getCookiesSync(String(url)).find((cookie) => cookie.key === name);
      return (here ?? plain().cookies.findLast((cookie) => cookie.key === name))?.value;
    },
    serialise: () => plain() as unknown as JsonObject,
  };
}
