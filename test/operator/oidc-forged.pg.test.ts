// docs/single-sign-on.md#how-it-is-protected: a provider that does not behave. A real server on loopback that says what each case wants; and the other settings.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { after, before, test } from "node:test";
import { exportJWK, SignJWT, UnsecuredJWT, type JWTPayload } from "jose";
import { CLIENT } from "../oauth/provider.ts";
import { openTarget, type Target } from "../documents/target.ts";
import { codeOf as appCode, openBrowser, type Browser, type OperatorAnswer } from "./browser.ts";
import { finish, leave, oidcEnvironment } from "./oidc-stage.ts";
import { openOperatorStage, type OperatorStage, type Someone } from "./stage.ts";

const ALG = "RS256";
const ACCESS_TOKEN = "access-token-canary-8fK2pQ";
const own = generateKeyPairSync("rsa", { modulusLength: 2_048 });
const foreign = generateKeyPairSync("rsa", { modulusLength: 2_048 });

let site: Target;
let stage: OperatorStage;
let admin: Someone;

before(async () => {
  site = await openTarget();
  stage = await openOperatorStage(oidcEnvironment(site.url));
  admin = await stage.operator("admin");
  behave();
  site.on("GET /jwks", { json: { keys: [{ ...(await exportJWK(own.publicKey)), kid: "one", alg: ALG }] } });
});
after(async () => {
  await stage?.[Symbol.asyncDispose]();
  await site?.[Symbol.asyncDispose]();
});

function behave(more: object = {}): void {
  site.on("GET /.well-known/openid-configuration", {
    json: {
      issuer: site.url,
      authorization_endpoint: `${site.url}/authorize`,
      token_endpoint: `${site.url}/token`,
      jwks_uri: `${site.url}/jwks`,
      id_token_signing_alg_values_supported: [ALG],
      authorization_response_iss_parameter_supported: true,
      ...more,
    },
  });
}

const seconds = (): number => Math.floor(Date.now() / 1_000);

interface Case {
  readonly claims?: (good: JWTPayload) => object;
  readonly key?: typeof own.privateKey;
  readonly answer?: object;
  readonly path?: string;
}

/** Leaves, and is back at once with a code for which the token endpoint has an ID token as the case wants it. */
async function comeBack(browser: Browser, wanted: Case = {}): Promise<OperatorAnswer> {
  const { path = "/session/oidc" } = wanted;
  const body = path === "/session/oidc" ? {} : undefined;
  const url = new URL(await leave(browser, `${path}/begin`, body));
  const good = {
    iss: site.url,
    aud: CLIENT.id,
    sub: "subject-1",
    nonce: url.searchParams.get("nonce") ?? "",
    iat: seconds(),
    exp: seconds() + 300,
    email: admin.email,
    email_verified: true,
  };
  const token = new SignJWT((wanted.claims?.(good) ?? good) as JWTPayload).setProtectedHeader({
    alg: ALG,
    kid: "one",
  });
  const idToken = await token.sign(wanted.key ?? own.privateKey);
  site.on("POST /token", {
    json: { access_token: ACCESS_TOKEN, token_type: "Bearer", id_token: idToken, ...wanted.answer },
  });
  const query = new URLSearchParams({
    code: "code-canary-1",
    state: url.searchParams.get("state") ?? "",
    iss: site.url,
  });
  return path === "/session/oidc"
    ? await finish(browser, query.toString())
    : await browser.send("POST", path, { query: query.toString() });
}

const reasonOf = (answer: OperatorAnswer): unknown => answer.body?.error?.details?.[0]?.code;
const newBrowser = (): Browser => openBrowser(stage.service.url);

test("a good answer is one: the cases below differ from it in one thing each", async () => {
  const answer = await comeBack(newBrowser());
  assert.equal(answer.status, 201, `${answer.text}\n${stage.installation.logs().slice(-2_000)}`);
  const [request] = site.seen("POST /token");
  assert.match(request?.body ?? "", /code_verifier=[\w-]{43}/);
  assert.match(String(request?.headers.authorization), /^Basic /);
});

const FORGED: Readonly<Record<string, Case>> = {
  "signed with another key": { key: foreign.privateKey },
  "for another audience": { claims: (good) => ({ ...good, aud: "another-client" }) },
  "for several, and given to another": {
    claims: (good) => ({ ...good, aud: [CLIENT.id, "another-client"], azp: "another-client" }),
  },
  "of another issuer": { claims: (good) => ({ ...good, iss: "https://evil.example" }) },
  "with another nonce": { claims: (good) => ({ ...good, nonce: "another" }) },
  "without a nonce": { claims: (good) => ({ ...good, nonce: undefined }) },
  "that is over": { claims: (good) => ({ ...good, exp: seconds() - 120 }) },
  "without a subject": { claims: (good) => ({ ...good, sub: undefined }) },
  "with a subject that is too long": { claims: (good) => ({ ...good, sub: "s".repeat(256) }) },
  "that is missing": { answer: { id_token: undefined } },
  "that is signed by nobody": {
    answer: { id_token: new UnsecuredJWT({ sub: "subject-1", iss: "x", aud: CLIENT.id }).encode() },
  },
  "that is no token": { answer: { id_token: "canary.canary.canary" } },
};

for (const [what, wanted] of Object.entries(FORGED)) {
  test(`an ID token ${what} counts for nothing`, async () => {
    const answer = await comeBack(newBrowser(), wanted);
    assert.deepEqual([answer.status, reasonOf(answer)], [401, "oidc_failed"], answer.text);
  });
}

test("to confirm who it is the provider must say that it has asked just now", async () => {
  const browser = newBrowser();
  await comeBack(browser);
  const path = "/session/step-up/oidc";
  for (const at of [undefined, seconds() - 3_600]) {
    const claims = (good: JWTPayload): JWTPayload => (at === undefined ? good : { ...good, auth_time: at });
    const answer = await comeBack(browser, { path, claims });
    assert.deepEqual([answer.status, reasonOf(answer)], [403, "oidc_failed"], answer.text);
  }
  assert.equal((await browser.send("GET", "/me")).body.is_stepped_up, false);
  const claims = (good: JWTPayload): JWTPayload => ({ ...good, auth_time: seconds() });
  const answer = await comeBack(browser, { path, claims });
  assert.deepEqual([answer.status, answer.body.is_stepped_up], [200, true], answer.text);
});

test("who was asked just now at the sign-in need not be asked again, and later must", async () => {
  const browser = newBrowser();
  const { body } = await comeBack(browser, { claims: (good) => ({ ...good, auth_time: seconds() }) });
  assert.equal(body.me.is_stepped_up, true);
  await stage.moveClock("6 minutes");
  assert.equal((await browser.send("GET", "/me")).body.is_stepped_up, false);
  await stage.moveClock("0");
});

test("a provider that is down, or another's, says so, and the password is the other way", async () => {
  // Another process: this one has kept what the provider said of itself.
  const service = await stage.installation.serve();
  const begin = async (): Promise<OperatorAnswer> =>
    await openBrowser(service.url).send("POST", "/session/oidc/begin", {});
  site.on("GET /.well-known/openid-configuration", { status: 503 });
  for (const happen of [
    () => site.on("GET /.well-known/openid-configuration", { status: 503 }),
    () => site.on("GET /.well-known/openid-configuration", { drop: true }),
    () => site.on("GET /.well-known/openid-configuration", { text: "<html>" }),
    () => behave({ issuer: "https://evil.example" }),
    () => behave({ code_challenge_methods_supported: ["plain"] }),
    () => behave({ jwks_uri: undefined }),
  ]) {
    happen();
    const answer = await begin();
    assert.deepEqual([answer.status, reasonOf(answer)], [502, "oidc_unavailable"]);
    assert.match(answer.body.error.message, /sign in with your password/);
  }
  behave();
  assert.equal((await begin()).status, 201, "as soon as it is there again");
  site.on("POST /token", { status: 503 });
  const browser = openBrowser(service.url);
  const url = new URL(await leave(browser, "/session/oidc/begin", {}));
  const query = new URLSearchParams({ code: "c", state: url.searchParams.get("state") ?? "", iss: site.url });
  const answer = await finish(browser, query.toString());
  assert.deepEqual([answer.status, reasonOf(answer)], [502, "oidc_unavailable"]);
  await service.end();
});

test("with LATCHKEY_OIDC_REQUIRE_TOTP the app is wanted as well, and can be set up without a password", async () => {
  const service = await stage.installation.serve({
    LATCHKEY_OIDC_REQUIRE_TOTP: "true",
    LATCHKEY_PASSWORD_SIGN_IN: "off",
  });
  const browser = openBrowser(service.url);
  assert.deepEqual((await browser.send("GET", "/session/ways")).body.password, false);
  const byPassword = await browser.signIn(admin.email, admin.password);
  assert.deepEqual([byPassword.status, byPassword.body.error.type], [403, "authorization_error"]);

  const { body } = await comeBack(browser, { claims: (good) => ({ ...good, auth_time: seconds() }) });
  assert.deepEqual([body.me.is_stepped_up, body.me.needs, body.me.step_up_by], [false, "second_factor", []]);
  assert.equal(reasonOf(await browser.send("GET", "/overview")), "second_factor_missing");
  assert.equal((await browser.send("POST", "/session/step-up/oidc/begin")).status, 409);
  const begun = await browser.send("POST", "/me/second-factor", {});
  assert.equal(begun.status, 200, begun.text);
  const { secret } = begun.body;
  const confirmed = await browser.send("POST", "/me/second-factor/confirm", { code: appCode(secret) });
  assert.equal(confirmed.status, 200, confirmed.text);
  assert.equal((await browser.send("GET", "/overview")).status, 200);

  const again = openBrowser(service.url);
  assert.equal((await comeBack(again)).body.me.needs, "code");
  assert.equal(reasonOf(await again.send("GET", "/overview")), "step_up_required");
  const given = await again.send("POST", "/session/step-up", { code: appCode(secret, 1) });
  assert.deepEqual([given.status, given.body.needs], [200, null], given.text);
  assert.equal((await again.send("GET", "/overview")).status, 200);
  await service.end();
});

test("where the provider answers, an app is not set up by somebody who has the session", async () => {
  const someone = await stage.operator("viewer");
  const browser = newBrowser();
  await comeBack(browser, { claims: (good) => ({ ...good, sub: "subject-2", email: someone.email }) });
  const refused = await browser.send("POST", "/me/second-factor", {});
  assert.deepEqual([refused.status, refused.body.error.details[0].field], [422, "current_password"]);
});

test("sessions of a provider that is not set up any more want our own second factor", async () => {
  const browser = newBrowser();
  await comeBack(browser);
  const service = await stage.installation.serve({
    LATCHKEY_OIDC_ISSUER: "",
    LATCHKEY_OIDC_CLIENT_ID: "",
    LATCHKEY_OIDC_CLIENT_SECRET: "",
    LATCHKEY_OIDC_LABEL: "",
  });
  const there = openBrowser(service.url);
  there.cookie = browser.cookie;
  assert.equal((await there.send("GET", "/me")).body.needs, "code");
  assert.equal((await there.send("POST", "/session/oidc/begin", {})).status, 409);
  await service.end();
});

test("nothing that was forged is in a log", () => {
  const logs = stage.installation.logs();
  assert.match(logs, /single sign-on failed/);
  for (const canary of ["canary", CLIENT.secret]) assert.ok(!logs.includes(canary), canary);
  assert.doesNotMatch(logs, /eyJ[\w-]+\.eyJ/);
});
