// The portal's authorization server: what it gives, and everything that it must not.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { test } from "node:test";
import { load } from "cheerio";
import { OAUTH_CLIENTS } from "../../examples/portal/oauth-clients.ts";
import { ACCESS_TOKEN_SECONDS, createTokens } from "../../examples/portal/oauth-tokens.ts";
import { account, csrfOf, openPortal, visit, type Visitor } from "./portal-visitor.ts";

const [CLIENT = assert.fail("a client")] = OAUTH_CLIENTS;
const REDIRECT = "http://127.0.0.1:8080/connect/oauth/acme/strat_northwind_bank";
const VERIFIER = randomBytes(32).toString("base64url");
const CHALLENGE = createHash("sha256").update(VERIFIER).digest("base64url");

const authorizePath = (change: Readonly<Record<string, string>> = {}): string =>
  `/oauth/authorize?${new URLSearchParams({
    response_type: "code",
    client_id: CLIENT.id,
    redirect_uri: REDIRECT,
    scope: "transactions",
    state: "a-state",
    code_challenge: CHALLENGE,
    code_challenge_method: "S256",
    ...change,
  }).toString()}`;

/** Signs in where the request leads to, and gives the consent page. */
async function consent(visitor: Visitor): Promise<{ readonly action: string; readonly csrf: string }> {
  const first = await visitor.get(authorizePath());
  assert.equal(first.headers.get("location"), "/login");
  const { username, password } = account("demo");
  const signedIn = await visitor.post("/login", {
    username,
    password,
    _csrf: await csrfOf(visitor, "/login"),
  });
  const page = await visitor.get(signedIn.headers.get("location") ?? "");
  assert.match(
    page.headers.get("content-security-policy") ?? "",
    /form-action 'self' http:\/\/127\.0\.0\.1:8080;/,
  );
  const form = load(await page.text())("form#consent");
  return { action: form.attr("action") ?? "", csrf: form.find("input[name=_csrf]").attr("value") ?? "" };
}

async function codeOf(visitor: Visitor, decision = "allow"): Promise<URLSearchParams> {
  const { action, csrf } = await consent(visitor);
  const answer = await visitor.post(action, { _csrf: csrf, decision });
  const location = new URL(answer.headers.get("location") ?? "");
  assert.equal(location.origin + location.pathname, REDIRECT);
  assert.equal(location.searchParams.get("state"), "a-state");
  return location.searchParams;
}

interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly error?: string;
}

async function ask(origin: string, form: Record<string, string>, secret = CLIENT.secret) {
  const response = await fetch(`${origin}/oauth/token`, {
    method: "POST",
    body: new URLSearchParams(form),
    headers: { authorization: `Basic ${Buffer.from(`${CLIENT.id}:${secret}`).toString("base64")}` },
  });
  return { status: response.status, body: (await response.json()) as Tokens };
}

const exchange = (code: string, change: Readonly<Record<string, string>> = {}) => ({
  grant_type: "authorization_code",
  code,
  redirect_uri: REDIRECT,
  code_verifier: VERIFIER,
  ...change,
});
const refresh = (token: string) => ({ grant_type: "refresh_token", refresh_token: token });
const read = async (origin: string, token: string): Promise<number> =>
  (await fetch(`${origin}/api/bank/transactions`, { headers: { authorization: `Bearer ${token}` } })).status;

test("sign-in, consent, code, tokens; a refresh token is good once, and used twice it ends the connection", async (t) => {
  const { url } = await openPortal(t);
  const code = (await codeOf(visit(url))).get("code") ?? "";
  const first = await ask(url, exchange(code));
  assert.equal(first.status, 200);
  assert.equal(await read(url, first.body.access_token), 200);
  const second = await ask(url, refresh(first.body.refresh_token));
  assert.equal(second.status, 200);
  assert.notEqual(second.body.refresh_token, first.body.refresh_token);
  assert.equal(await read(url, second.body.access_token), 200);
  const reused = await ask(url, refresh(first.body.refresh_token));
  assert.deepEqual([reused.status, reused.body.error], [400, "invalid_grant"]);
  // The thief and the owner lose it alike.
  assert.equal(await read(url, second.body.access_token), 401);
  assert.equal((await ask(url, refresh(second.body.refresh_token))).body.error, "invalid_grant");
});

test("a code is good once, for its redirect URI and with its verifier; a second use takes back what the first gave", async (t) => {
  const { url } = await openPortal(t);
  for (const wrong of [
    { code_verifier: randomBytes(32).toString("base64url") },
    { redirect_uri: REDIRECT.replace("8080", "8081") },
  ]) {
    const code = (await codeOf(visit(url))).get("code") ?? "";
    assert.equal((await ask(url, exchange(code, wrong))).body.error, "invalid_grant", JSON.stringify(wrong));
  }
  const code = (await codeOf(visit(url))).get("code") ?? "";
  const { body } = await ask(url, exchange(code));
  assert.equal((await ask(url, exchange(code))).body.error, "invalid_grant");
  assert.equal(await read(url, body.access_token), 401);
  assert.equal((await ask(url, exchange(code), "wrong")).body.error, "invalid_client");
});

test("an unknown client is sent nowhere; what is asked wrongly goes back as an error; a no is a no", async (t) => {
  const { url } = await openPortal(t);
  const visitor = visit(url);
  for (const change of [
    { client_id: "somebody" },
    { redirect_uri: "https://evil.example/connect/oauth/acme/strat_northwind_bank" },
    { redirect_uri: `${REDIRECT}/more` },
    { redirect_uri: REDIRECT.replace("127.0.0.1", "127.0.0.1@evil.example") },
  ]) {
    const answer = await visitor.get(authorizePath(change));
    assert.deepEqual([answer.status, answer.headers.get("location")], [400, null], JSON.stringify(change));
  }
  for (const [change, error] of [
    [{ response_type: "token" }, "unsupported_response_type"],
    [{ scope: "everything" }, "invalid_scope"],
    [{ code_challenge_method: "plain" }, "invalid_request"],
    [{ code_challenge: "" }, "invalid_request"],
  ] as const) {
    const { headers } = await visitor.get(authorizePath(change));
    assert.equal(new URL(headers.get("location") ?? "").searchParams.get("error"), error);
  }
  assert.equal((await codeOf(visit(url), "deny")).get("error"), "access_denied");
  const { action, csrf } = await consent(visitor);
  assert.equal((await visitor.post(action, { decision: "allow" })).status, 400, "no token of the form");
  assert.equal(
    (await visit(url).post(action, { _csrf: csrf, decision: "allow" })).status,
    400,
    "another browser",
  );
});

test("access tokens end with their time, codes after a minute", () => {
  let nowMs = 0;
  const tokens = createTokens(() => nowMs);
  const grant = { clientId: CLIENT.id, username: "demo", scope: "transactions" };
  const given = tokens.exchangeCode(
    CLIENT.id,
    tokens.giveCode(grant, REDIRECT, CHALLENGE),
    REDIRECT,
    VERIFIER,
  );
  nowMs = ACCESS_TOKEN_SECONDS * 1_000;
  assert.ok(tokens.use(given?.access_token ?? ""));
  nowMs += 1;
  assert.equal(tokens.use(given?.access_token ?? ""), null);
  const code = tokens.giveCode(grant, REDIRECT, CHALLENGE);
  nowMs += 60_001;
  assert.equal(tokens.exchangeCode(CLIENT.id, code, REDIRECT, VERIFIER), null);
});
