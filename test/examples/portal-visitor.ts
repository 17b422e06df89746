import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { load } from "cheerio";
import { Secret, TOTP } from "otpauth";
import { CookieJar } from "tough-cookie";
import { PORTAL_ACCOUNTS, type PortalAccount } from "../../examples/portal/accounts.ts";
import { type Portal, type PortalOptions, startPortal } from "../../examples/portal/portal.ts";

/** A portal of the test's own, on a free port, closed when the test ends. */
export async function openPortal(t: TestContext, options: Omit<PortalOptions, "port"> = {}): Promise<Portal> {
  const portal = await startPortal({ port: 0, ...options });
  t.after(() => portal.close());
  return portal;
}

export interface Visitor {
  readonly jar: CookieJar;
  get(path: string): Promise<Response>;
  post(path: string, form: Record<string, string>): Promise<Response>;
}

/** A browser as far as cookies go; redirects are left to the test. */
export function visit(origin: string): Visitor {
  const jar = new CookieJar();
  const send = async (path: string, init: RequestInit) => {
    const url = origin + path;
    const headers = new Headers(init.headers);
    headers.set("cookie", await jar.getCookieString(url));
    const response = await fetch(url, { ...init, headers, redirect: "manual" });
    for (const cookie of response.headers.getSetCookie()) await jar.setCookie(cookie, url);
    return response;
  };
  return {
    jar,
    get: (path) => send(path, {}),
    post: (path, form) => send(path, { method: "POST", body: new URLSearchParams(form) }),
  };
}

/** The token of the form at that path. */
export async function csrfOf(visitor: Visitor, path: string): Promise<string> {
  const value = load(await (await visitor.get(path)).text())("input[name=_csrf]")
    .first()
    .attr("value");
  assert.ok(value, `a CSRF token on ${path}`);
  return value;
}

export function account(username: string): PortalAccount {
  const found = PORTAL_ACCOUNTS.find((one) => one.username === username);
  assert.ok(found);
  return found;
}

/** The first page of a sign-in, with the right token. */
export async function postPassword(visitor: Visitor, username: string, password: string): Promise<Response> {
  return visitor.post("/login", { username, password, _csrf: await csrfOf(visitor, "/login") });
}

export async function postCode(visitor: Visitor, code: string): Promise<Response> {
  return visitor.post("/login/otp", { code, _csrf: await csrfOf(visitor, "/login/otp") });
}

/** The code of `steps` time steps from now. */
export function codeNow(secret: string | null, steps = 0): string {
  assert.ok(secret);
  const totp = new TOTP({ secret: Secret.fromBase32(secret), algorithm: "SHA1", digits: 6, period: 30 });
  return totp.generate({ timestamp: Date.now() + steps * 30_000 });
}

/** A visitor who is signed in as `demo`. */
export async function signedInVisitor(origin: string): Promise<Visitor> {
  const visitor = visit(origin);
  const { username, password } = account("demo");
  assert.equal((await postPassword(visitor, username, password)).status, 302);
  return visitor;
}
