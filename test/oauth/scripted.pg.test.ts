// docs/decisions/0020: a token endpoint that does not behave. A real server on loopback that says what each case wants.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openBench, type Bench } from "../documents/bench.ts";
import { openTarget, to, type Answer, type Target } from "../documents/target.ts";
import { keepSecret } from "../keep-secret.ts";
import { Visitor } from "./oauth-setup.ts";

const SECRET = "scripted-client-secret-canary-9k2";
const TOKEN = "access-token-canary-4fJ8sL2nQ7";

let bench: Bench;
let elsewhere: Target;

const strategy = (id: string, login: string) => `
strategy: ${id}
account: acme
name: Scripted
hosts: ["{TARGET}"]
login: { type: oauth2, client_id: "client-1", ${login} }`;
const OWN = 'authorization_url: "{TARGET}/authorize?audience=api", token_url: "{TARGET}/token"';

before(async () => {
  elsewhere = await openTarget();
  bench = await openBench([
    strategy("strat_scripted", `${OWN}, client_secret: { secret: SCRIPTED }`),
    strategy(
      "strat_post",
      `${OWN}, client_secret: { secret: SCRIPTED }, token_auth: client_secret_post, scopes: [a, b]`,
    ),
    strategy("strat_public", OWN),
    strategy("strat_unset", `${OWN}, client_secret: { secret: NOBODY }`),
    ...DISCOVERED.map((_, index) =>
      strategy(`strat_discovered_${index}`, `issuer: "{TARGET}/tenant-${index}"`),
    ),
    strategy("strat_down", 'issuer: "http://127.0.0.1:1"'),
  ]);
  await keepSecret(bench.installation, "SCRIPTED", SECRET, bench.target.url);
});
after(async () => {
  await bench?.[Symbol.asyncDispose]();
  await elsewhere?.[Symbol.asyncDispose]();
});

async function leave(strategyId: string) {
  const session = (await bench.caller.post("/credential-sessions", { strategy_id: strategyId })).body;
  const visitor = new Visitor();
  return { session, visitor, url: new URL(await visitor.leave(session.hosted_url)) };
}

/** Leaves, and comes back at once with a code, as from a server that agreed. */
async function comeBack(strategyId: string, more: Readonly<Record<string, string>> = {}) {
  const { session, visitor, url } = await leave(strategyId);
  const back = new URL(url.searchParams.get("redirect_uri") ?? "");
  const answer = { code: "code-canary-1", state: url.searchParams.get("state") ?? "", ...more };
  for (const [name, value] of Object.entries(answer)) back.searchParams.set(name, value);
  const page = await visitor.open(back.href);
  return { page, session, url, status: (await bench.caller.get(`/credential-sessions/${session.id}`)).body };
}

const good = (more: object = {}): Answer => ({
  json: { access_token: TOKEN, token_type: "Bearer", ...more },
});
const logs = (): string => bench.installation.logs();

test("a server without discovery: parameters of the address survive, the code goes with the verifier and the secret", async () => {
  bench.target.on("POST /token", good({ expires_in: 3600, refresh_token: "refresh-1" }));
  // Without a configured issuer its name is nothing to compare with.
  const { page, status, url } = await comeBack("strat_scripted", { iss: "https://somebody.example" });
  assert.equal(page.status, 200, logs().split("\n").slice(-4).join("\n"));
  assert.equal(status.status, "completed");
  assert.equal(url.searchParams.get("audience"), "api");
  assert.equal(url.searchParams.has("scope"), false);
  const [request] = bench.target.seen("POST /token");
  const body = new URLSearchParams(request?.body);
  // RFC 6749, 2.3.1: both are form-encoded before they are joined.
  const basic = Buffer.from(
    String(request?.headers.authorization).slice("Basic ".length),
    "base64",
  ).toString();
  assert.deepEqual(basic.split(":").map(decodeURIComponent), ["client-1", SECRET]);
  assert.deepEqual([...body.keys()].toSorted(), ["code", "code_verifier", "grant_type", "redirect_uri"]);
  assert.match(body.get("code_verifier") ?? "", /^[\w-]{43}$/);
});

test("token_auth: the secret in the body, and no secret at all for a client without one", async () => {
  bench.target.on("POST /token", good());
  assert.equal((await comeBack("strat_post")).page.status, 200);
  const posted = bench.target.seen("POST /token").at(-1);
  assert.equal(posted?.headers.authorization, undefined);
  assert.equal(new URLSearchParams(posted?.body).get("client_secret"), SECRET);
  assert.equal((await comeBack("strat_public")).page.status, 200);
  const none = bench.target.seen("POST /token").at(-1);
  assert.equal(none?.headers.authorization, undefined);
  assert.equal(new URLSearchParams(none?.body).get("client_id"), "client-1");
  assert.equal(new URLSearchParams(none?.body).has("client_secret"), false);
});

const BAD: Record<string, Answer | ((origin: string) => Answer)> = {
  "status 500": { status: 500, text: "oops" },
  "a redirect to another origin": (origin) => to(`${origin}/steal`, 307),
  "a redirect of its own": to("/token2", 302),
  "300 kB": { json: { access_token: TOKEN, token_type: "Bearer", pad: "x".repeat(300_000) } },
  "a page instead of JSON": { html: "<h1>Log in</h1>" },
  "a list": { json: [TOKEN] },
  "JSON that is cut off": { headers: { "content-type": "application/json" }, text: '{"access_token":"' },
  "no access_token": { json: { token_type: "Bearer", refresh_token: "r" } },
  "an empty access_token": good({ access_token: "" }),
  "an access_token with a line break": good({ access_token: `${TOKEN}\nX-Evil: 1` }),
  "no token_type": { json: { access_token: TOKEN } },
  "token_type mac": good({ token_type: "mac" }),
  "token_type DPoP": good({ token_type: "DPoP" }),
  "an expires_in that is no number": good({ expires_in: "soon" }),
  "a refresh_token that is no text": good({ refresh_token: 5 }),
  "an ID token, where no issuer is known": good({ id_token: "e30.e30.e30" }),
  "error invalid_grant": {
    status: 400,
    json: { error: "invalid_grant", error_description: "code-canary-1 is bad" },
  },
  "an error with status 200": { json: { error: "bad_verification_code" } },
  "401 with a challenge": {
    status: 401,
    headers: { "www-authenticate": "Basic" },
    json: { error: "invalid_client" },
  },
  "204": { status: 204 },
  "no answer at all": { drop: true },
};

for (const [name, answer] of Object.entries(BAD)) {
  test(`the token endpoint gives ${name}: the session stays pending, nothing is kept, nothing is told`, async () => {
    bench.target.on("POST /token", typeof answer === "function" ? answer(elsewhere.url) : answer);
    const { page, session, status } = await comeBack("strat_scripted");
    assert.equal(page.location, `${session.hosted_url}?again=failed`);
    assert.equal(status.status, "pending");
    assert.deepEqual(elsewhere.all, [], "neither secret nor code arrives at another origin");
    assert.equal(bench.target.seen("POST /token2").length + bench.target.seen("GET /token2").length, 0);
    assert.match(logs(), /a sign-in at a target failed/);
    for (const secret of [TOKEN, SECRET, "code-canary-1"]) assert.ok(!logs().includes(secret), secret);
  });
}

test("a secret that is not there, and a server that is not there: nobody leaves, and the operator reads why", async () => {
  for (const [id, reason] of [
    ["strat_unset", /the account has no secret NOBODY; set it: latchkey secrets set/],
    ["strat_down", /the connection to 127.0.0.1:1 failed/],
  ] as const) {
    await assert.rejects(leave(id), /stayed: 502.*could not be finished/s);
    assert.match(logs(), reason);
  }
});

/** Each with an issuer of its own: what a process has read it keeps for ten minutes. */
const DISCOVERED: readonly (readonly [(issuer: string, origin: string) => Answer, RegExp])[] = [
  [
    (issuer, origin) => ({ json: { ...sound(issuer, origin), issuer: `${origin}/other` } }),
    /it belongs to the issuer http:\S+\/other; use that as `issuer`/,
  ],
  [
    (issuer, origin) => ({ json: { ...sound(issuer, origin), token_endpoint: `${elsewhere.url}/token` } }),
    /which the strategy does not name/,
  ],
  [
    (issuer, origin) => ({ json: { ...sound(issuer, origin), token_endpoint: undefined } }),
    /metadata has no token endpoint/,
  ],
  [
    (issuer, origin) => ({
      json: { ...sound(issuer, origin), authorization_endpoint: "javascript:alert(1)" },
    }),
    /metadata has no authorization endpoint/,
  ],
  [
    (issuer, origin) => ({ json: { ...sound(issuer, origin), code_challenge_methods_supported: ["plain"] } }),
    /PKCE with S256/,
  ],
  [() => to(`${elsewhere.url}/meta`), /the answer has status 302/],
  [() => ({ status: 404 }), /has no metadata document/],
];
const sound = (issuer: string, origin: string) => ({
  issuer,
  authorization_endpoint: `${origin}/authorize`,
  token_endpoint: `${origin}/token`,
});

for (const [index, [answer, reason]] of DISCOVERED.entries()) {
  test(`discovery that is refused before anybody leaves: ${reason.source}`, async () => {
    const { url: origin } = bench.target;
    bench.target.on(
      `GET /tenant-${index}/.well-known/openid-configuration`,
      answer(`${origin}/tenant-${index}`, origin),
    );
    await assert.rejects(leave(`strat_discovered_${index}`), /stayed: 502/);
    assert.match(logs().split("\n").slice(-4).join("\n"), reason);
    assert.deepEqual(elsewhere.all, []);
  });
}
