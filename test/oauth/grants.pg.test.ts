// docs/strategies.md#oauth2: the grants without a target's own login; and where it tells what is missing.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { connect, openCaller } from "../caller.ts";
import { openBench, type Bench } from "../documents/bench.ts";
import { listen } from "../hosted/hosted-setup.ts";
import { openTarget, type Target } from "../documents/target.ts";
import { itemsBlueprint, Visitor } from "./oauth-setup.ts";

let bench: Bench;
/** Another origin than the API: what is sealed into a credential names both. */
let issuer: Target;

const PASSWORD = "user-password-canary-3kf9";
const strategy = (id: string, login: string, fields: string) => `
strategy: ${id}
account: acme
hosts: ["{TARGET}"]
${fields}
login: { type: oauth2, token_url: "${issuer.url}/token", client_id: client-1, ${login} }`;

before(async () => {
  issuer = await openTarget();
  bench = await openBench([
    strategy(
      "strat_password",
      "grant: password, username: user, password: pass, scopes: [read], extra_params: { audience: api }",
      "fields: [{ key: user, type: text }, { key: pass, type: password }]",
    ),
    strategy("strat_code", 'authorization_url: "{TARGET}/authorize"', ""),
    strategy(
      "strat_missing",
      'authorization_url: "{TARGET}/authorize", client_secret: { secret: NOT_THERE }',
      "",
    ),
    itemsBlueprint("password", "strat_password"),
    itemsBlueprint("code", "strat_code"),
  ]);
  bench.target.on("GET /api/items", ({ headers }) => ({ json: [{ sent: headers.authorization ?? null }] }));
});
after(async () => {
  await bench?.[Symbol.asyncDispose]();
  await issuer?.[Symbol.asyncDispose]();
});

const asked = () =>
  issuer.seen("POST /token").map(({ body }) => Object.fromEntries(new URLSearchParams(body)));
const tokens = (access: string, more: object = {}) => ({
  json: { access_token: access, token_type: "bearer", ...more },
});

test("grant: password gets its first tokens at the first run, refreshes them, and begins anew when that is refused", async () => {
  const id = await connect(bench.caller, "strat_password", { user: "ada", pass: PASSWORD });
  assert.equal(asked().length, 0, "collected, not tested");
  issuer.on("POST /token", tokens("access-token-1", { expires_in: 30, refresh_token: "refresh-token-1" }));
  const first = await bench.run("password", { credential_id: id });
  assert.equal(first.status.status, "completed", String(first.detail));
  assert.deepEqual(asked(), [
    {
      audience: "api",
      scope: "read",
      username: "ada",
      password: PASSWORD,
      client_id: "client-1",
      grant_type: "password",
    },
  ]);
  // The second net: what the target echoes is not stored.
  assert.deepEqual(first.results["out"]?.records[0]?.data, { sent: "Bearer [REDACTED]" });
  assert.equal(bench.target.seen("GET /api/items").at(-1)?.headers.authorization, "Bearer access-token-1");

  issuer.on("POST /token", tokens("access-token-2", { expires_in: 30 }));
  assert.equal((await bench.run("password", { credential_id: id })).status.status, "completed");
  assert.deepEqual(
    [asked().at(-1)?.["grant_type"], asked().at(-1)?.["refresh_token"]],
    ["refresh_token", "refresh-token-1"],
  );
  issuer.on("POST /token", ({ body }) =>
    body.includes("refresh_token")
      ? { status: 400, json: { error: "invalid_grant" } }
      : tokens("access-token-3", { expires_in: 3_600 }),
  );
  assert.equal((await bench.run("password", { credential_id: id })).status.status, "completed");
  // A target that did not rotate its refresh token is asked with the same one again.
  assert.equal(asked().at(-2)?.["refresh_token"], "refresh-token-1");
  assert.equal(asked().at(-1)?.["grant_type"], "password");
  assert.equal(bench.target.seen("GET /api/items").at(-1)?.headers.authorization, "Bearer access-token-3");
});

test("a run whose tokens can't be had fails while it is authenticating, and its story holds no secret", async () => {
  const id = await connect(bench.caller, "strat_password", { user: "ada", pass: PASSWORD });
  for (const [answer, reason] of [
    [
      { status: 400, json: { error: "invalid_grant", error_description: PASSWORD } },
      /answered 400, invalid_grant$/,
    ],
    [{ status: 500, text: PASSWORD }, /answered with status 500$/],
    [{ json: { access_token: "x", token_type: "DPoP" } }, /a type other than Bearer$/],
    [{ json: { error: `</b>${PASSWORD}` }, status: 400 }, /answered 400, an error$/],
  ] as const) {
    issuer.on("POST /token", answer);
    const { status, detail, steps } = await bench.run("password", { credential_id: id });
    assert.equal(status.status, "failed");
    assert.ok(!steps.includes("running/running"), steps.join());
    assert.match(String(detail), reason);
    assert.ok(!`${detail}${bench.installation.logs()}`.includes(PASSWORD));
  }
});

test("a refused password counts as a rejected login: after two in a row none is sent any more", async () => {
  const id = await connect(bench.caller, "strat_password", { user: "ada", pass: PASSWORD });
  issuer.on("POST /token", { status: 400, json: { error: "invalid_grant" } });
  const before = asked().length;
  for (const _ of [1, 2, 3])
    assert.equal((await bench.run("password", { credential_id: id })).status.status, "failed");
  assert.equal(asked().length - before, 2);
});

test("an access token that is over, and no refresh token: reconnect needed", async () => {
  issuer.on("POST /token", tokens("access-token-4", { expires_in: 30 }));
  const session = (await bench.caller.post("/credential-sessions", { strategy_id: "strat_code" })).body;
  const visitor = new Visitor();
  const left = new URL(await visitor.leave(session.hosted_url));
  const back = `${left.searchParams.get("redirect_uri")}?code=c&state=${left.searchParams.get("state")}`;
  assert.equal((await visitor.open(back)).status, 200);
  const { body } = await bench.caller.get(`/credential-sessions/${session.id}`);
  const { status, detail } = await bench.run("code", { credential_id: body.credential_id });
  assert.equal(status.status, "failed");
  assert.match(String(detail), /reconnect needed: the access token has expired/);
});

test("behind TLS the cookie of a sign-in is a __Host- one, and the redirect URI begins with the public URL", async () => {
  issuer.on("POST /token", tokens("access-token-5"));
  const free = await listen(() => undefined);
  free.close();
  const at = free.origin;
  const service = await bench.installation.serve(
    { LATCHKEY_PUBLIC_URL: "https://connect.acme.example/in", LATCHKEY_PORT: new URL(at).port },
    ["api"],
  );
  const session = (
    await openCaller(at, bench.key).post("/credential-sessions", { strategy_id: "strat_code" })
  ).body;
  const local = (url: string): string => url.replace("https://connect.acme.example/in", at);
  const visitor = new Visitor();
  const page = await visitor.open(local(session.hosted_url));
  const csrf = /name="_csrf" value="([^"]+)"/.exec(page.text)?.[1] ?? "";
  const left = await visitor.open(local(session.hosted_url), { _csrf: csrf });
  assert.match(
    left.setCookies.join("\n"),
    /^__Host-latchkey-sign-in-[0-9a-f]{16}=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600; Secure$/,
  );
  const { searchParams } = new URL(left.location ?? "");
  const redirectUri = searchParams.get("redirect_uri") ?? "";
  assert.equal(redirectUri, "https://connect.acme.example/in/connect/oauth/acme/strat_code");
  const back = local(`${redirectUri}?code=c&state=${searchParams.get("state")}`);
  const cookie = String(left.setCookies[0]?.split(";", 1)[0]);
  const open = async (header: string) => (await fetch(back, { headers: { cookie: header } })).status;
  // What has another name, or is there twice, is not it.
  assert.equal(await open(cookie.replace("__Host-", "")), 400);
  assert.equal(await open(`${cookie}; ${cookie.slice(0, -1)}A`), 400);
  assert.equal(await open(cookie), 200);
  await service.end();
});

test("a secret that is not there is told by apply, by doctor and at the start, and keeps nobody else from working", async () => {
  const told = /the strategy acme\/strat_missing uses the secret NOT_THERE, which the account does not have/;
  const file = join(bench.installation.dataFolder, "account.yaml");
  writeFileSync(file, "account: acme\nname: Acme");
  const applied = await bench.installation.command("apply", "-f", file);
  assert.equal(applied.code, 0);
  assert.match(applied.stderr, told);
  assert.match(
    bench.installation.logs(),
    /"secret":"NOT_THERE".*acme\/strat_missing uses the secret NOT_THERE/,
  );
  const doctor = await bench.installation.command("doctor");
  assert.equal(doctor.code, 1);
  assert.match(doctor.stdout, told);
});
