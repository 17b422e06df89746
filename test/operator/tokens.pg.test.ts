// docs/operator-api.md#operator-tokens: shown once, hashed, with a role and an end, revoked at once in every process.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createOperatorToken, revokeTokenById } from "#actions/operators/manage-tokens.ts";
import type { OperatorRole } from "#domain/operator.ts";
import { must } from "#lib/assert.ts";
import { runCommand } from "../cli/program.ts";
import { eventually } from "../eventually.ts";
import { openBrowser, sendPlain } from "./browser.ts";
import { openOperatorStage, type OperatorStage } from "./stage.ts";

let stage: OperatorStage;
before(async () => {
  stage = await openOperatorStage();
  await stage.installation.apply("account: acme");
});
after(async () => await stage?.[Symbol.asyncDispose]());

const DAY_MS = 86_400_000;
const shell = () => ({ db: stage.db, signing: stage.signing, actor: { kind: "cli" } as const });

const newToken = async (role: OperatorRole = "viewer") =>
  await createOperatorToken(shell(), { name: "ci", role, lifetimeMs: DAY_MS, accounts: null });

const statusOf = async (token: string): Promise<number> =>
  (await stage.withToken(token, "GET", "/runs")).status;

const latchkey = async (code: number, ...words: string[]) =>
  await runCommand(stage.installation, code, words);

/** The service raises alarms beside its answers. */
async function alarmOf(id: string): Promise<string> {
  const { fault } = await eventually(`an alarm about ${id}`, async () => {
    const rows = await stage.db.query<{ fault: string }>(
      "select fault from row_alarm where kind = 'operator_token' and id = $1",
      [id],
    );
    return rows[0];
  });
  return fault;
}

test("`tokens create` shows a token once; the database has a keyed hash of it, and no list shows it", async () => {
  const { stdout } = await latchkey(
    0,
    ...["tokens", "create", "--role", "operator", "--name", "ci", "--expires", "90d", "--json"],
  );
  const { id, token, expiresAt } = JSON.parse(stdout) as { id: string; token: string; expiresAt: string };
  assert.match(stdout, /^\{"id":"tok_[0-9A-Za-z]{28}","token":"lko_[0-9A-Za-z]{38}","expiresAt":/);
  assert.ok(Math.abs(Date.parse(expiresAt) - Date.now() - 90 * DAY_MS) < DAY_MS / 24);
  assert.equal(await statusOf(token), 200);
  const row = JSON.stringify(
    await stage.db.query("select *, encode(token_hash, 'escape') from operator_token where id = $1", [id]),
  );
  assert.equal(row.includes(token.slice(4, 20)), false);
  for (const options of [[], ["--json"]]) {
    const listed = await latchkey(0, "tokens", "list", ...options);
    assert.ok(listed.stdout.includes(id));
    assert.equal((listed.stdout + listed.stderr).includes(token.slice(4, 20)), false);
  }
});

test("without --json standard output is the token alone, so that a script can keep it", async () => {
  const words = ["tokens", "create", "--role", "viewer", "--name", "ci", "--expires", "12h"];
  const { stdout, stderr } = await latchkey(0, ...words);
  assert.match(stdout, /^lko_[0-9A-Za-z]{38}\n$/);
  assert.match(stderr, /Operator token tok_\w+ \(viewer\) works until .* It is shown only once/);
});

test("a token without a role, a name or an end is refused, and so is one that lasts longer than a year", async () => {
  const whole: Readonly<Record<string, string>> = { role: "viewer", name: "ci", expires: "90d" };
  const words = (options: Readonly<Record<string, string>>): string[] => [
    "tokens",
    "create",
    ...Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]),
  ];
  const count = async () =>
    (await stage.db.query<{ n: number }>("select count(*)::int as n from operator_token"))[0]?.n;
  const before = await count();
  for (const lacking of Object.keys(whole)) {
    const { [lacking]: _, ...rest } = whole;
    assert.match((await latchkey(2, ...words(rest))).stderr, new RegExp(`--${lacking}`));
  }
  for (const wrong of [
    { role: "root" },
    { name: " " },
    { expires: "366d" },
    { expires: "0" },
    { expires: "never" },
  ])
    await latchkey(2, ...words({ ...whole, ...wrong }));
  assert.equal(await count(), before);
});

test("a revoked token is refused by a second process with the next request, and stays revoked", async () => {
  const { id, token } = await newToken();
  await using second = await stage.serveHere("http://127.0.0.1");
  const there = async (): Promise<number> =>
    (await sendPlain(`${second.url}/operator/v1/runs`, "GET", { Authorization: `Bearer ${token}` })).status;
  assert.deepEqual([await statusOf(token), await there()], [200, 200]);
  assert.equal((await latchkey(0, "tokens", "revoke", id)).stdout, `Revoked ${id}.\n`);
  assert.deepEqual([await statusOf(token), await there()], [401, 401]);
  await latchkey(0, "tokens", "revoke", id);
  assert.deepEqual(await stage.actions(id), ["operator_token.create", "operator_token.revoke"]);
  assert.match((await latchkey(1, "tokens", "revoke", "tok_nothing")).stderr, /There is no operator token/);
});

test("an expired token is refused", async () => {
  const { token } = await createOperatorToken(shell(), {
    name: "short",
    role: "viewer",
    lifetimeMs: 60_000,
    accounts: null,
  });
  assert.equal(await statusOf(token), 200);
  await stage.moveClock("2 minutes");
  assert.equal(await statusOf(token), 401);
  await stage.moveClock("0 minutes");
});

test("the role counts: a viewer's token applies nothing, an operator's does, and both are recorded as tokens", async () => {
  const documents = [{ file: "acme.yaml", text: "account: acme\nname: By a token" }];
  const viewer = await newToken("viewer");
  const refused = await stage.withToken(viewer.token, "POST", "/config/apply", { documents });
  assert.deepEqual([refused.status, refused.body.error.type], [403, "authorization_error"]);
  const { id, token } = await newToken("operator");
  const applied = await stage.withToken(token, "POST", "/config/apply", { documents });
  assert.equal(applied.status, 200, applied.text);
  assert.deepEqual(
    applied.body.changes.map(({ change }: any) => change),
    ["update"],
  );
  const entries = await stage.db.query(
    "select action, actor_kind as kind from audit_entry where actor_id = $1",
    [id],
  );
  assert.deepEqual(entries, [{ action: "config.apply", kind: "operator_token" }]);
});

test("a token next to a cookie decides alone; other credentials in the header are a proxy's, and change nothing", async () => {
  const { browser } = await stage.signedIn("viewer");
  const { token } = await newToken();
  const asked = async (authorization: string) =>
    (await browser.send("GET", "/me", undefined, { Authorization: authorization })).status;
  assert.equal(await asked("Basic dXNlcjpwYXNz"), 200);
  assert.equal(await asked("Bearer ey.of-a-proxy"), 200);
  // Only a person has a session to read.
  assert.equal(await asked(`Bearer ${token}`), 403);
  assert.equal(await asked(`Bearer ${token.slice(0, -1)}`), 401);
  assert.equal(await statusOf("ey.of-a-proxy"), 401);
});

test("a token in a request from another site's page is refused if the request changes something", async () => {
  const { token } = await newToken("operator");
  const answer = await sendPlain(`${stage.service.url}/operator/v1/config/plan`, "POST", {
    Authorization: `Bearer ${token}`,
    Origin: "https://elsewhere.example",
  });
  assert.equal(answer.body.error.details[0].code, "csrf");
});

test("tokens that are tried out are slowed down by address", async () => {
  const browser = openBrowser(stage.service.url);
  const statuses = new Set<number>();
  const tryOne = async (): Promise<void> => {
    const headers = { Authorization: "Bearer lko_x" };
    statuses.add((await browser.send("GET", "/runs", undefined, headers)).status);
  };
  for (let at = 0; at < 40 && !statuses.has(429); at++) await Promise.all(Array.from({ length: 50 }, tryOne));
  assert.deepEqual([statuses.has(401), statuses.has(429)], [true, true]);
});

const FORGED: Readonly<Record<string, string>> = {
  "a role": "role = 'admin'",
  "a name": "name = 'somebody else'",
  "its end": "expires_at = app_now() + interval '10 years'",
};

for (const [what, assignment] of Object.entries(FORGED)) {
  test(`${what}, changed by SQL, ends a token, raises an alarm, and nobody signs it by revoking it`, async () => {
    const { id, token } = await newToken();
    assert.equal(await statusOf(token), 200);
    await stage.db.query(`update operator_token set ${assignment} where id = $1`, [id]);
    assert.equal(await statusOf(token), 401);
    assert.equal(await alarmOf(id), "forged");
    await assert.rejects(revokeTokenById(shell(), id), { message: /was changed.*nothing was changed/ });
  });
}

test("a token that was put into the database, or put back after its revocation, is none", async () => {
  const { id, token } = await newToken("admin");
  await stage.db.query(
    `insert into operator_token (id, name, role, token_hash, expires_at)
     values ('tok_forged', 'x', 'admin', $1, app_now() + interval '1 day')`,
    [stage.signing.operators.tokenHash("lko_" + "a".repeat(38))],
  );
  const [before] = await stage.db.query<{ serial: number; mac: Buffer }>(
    "select row_serial as serial, row_mac as mac from operator_token where id = $1",
    [id],
  );
  await revokeTokenById(shell(), id);
  const { serial, mac } = must(before, "the row");
  await stage.db.query(
    "update operator_token set revoked_at = null, row_serial = $2, row_mac = $3 where id = $1",
    [id, serial, mac],
  );
  assert.equal(await statusOf(token), 401);
  assert.equal(await alarmOf(id), "outdated");
  const doctor = await stage.installation.command("doctor");
  assert.match(doctor.stdout, /The row operator_token tok_forged of the database/);
});

test("the API creates, lists and revokes as the command line does; only an admin with a second factor may", async () => {
  const admin = await stage.operator("admin");
  await stage.giveSecondFactor(admin);
  const browser = await stage.holding(admin);
  const wrong = await browser.send("POST", "/tokens", { name: "", role: "root", lifetime_seconds: 1 });
  assert.equal(wrong.body.error.details.length, 3);
  const made = await browser.send("POST", "/tokens", { name: "ci", role: "viewer", lifetime_seconds: 3_600 });
  assert.equal(made.status, 201, made.text);
  assert.equal(await statusOf(made.body.token), 200);
  const { body } = await browser.send("GET", "/tokens");
  const listed = body.items.find(({ id }: any) => id === made.body.id);
  assert.deepEqual([listed.created_by, listed.revoked_at, listed.is_expired], [admin.email, null, false]);
  assert.notEqual(listed.last_used_at, null);
  assert.equal((await browser.send("POST", `/tokens/${made.body.id}/revoke`)).status, 204);
  assert.equal(await statusOf(made.body.token), 401);
  assert.equal((await browser.send("POST", "/tokens/tok_nothing/revoke")).status, 404);
});
