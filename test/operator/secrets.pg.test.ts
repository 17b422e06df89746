// SECURITY.md: account secrets go in by the operator API and never come out; each change is on record, and one that is used stays.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { OPERATOR_OPERATIONS } from "../../scripts/generate/operator-operations.ts";
import { matchesSchema } from "#domain/matches-schema.ts";
import { openTarget, type Target } from "../documents/target.ts";
import { connect, openCaller } from "../caller.ts";
import { itemsBlueprint } from "../oauth/oauth-setup.ts";
import type { Browser, OperatorAnswer } from "./browser.ts";
import { openOperatorStage, type OperatorStage, type Someone } from "./stage.ts";

const VALUE = "operator-api-canary-4Tz9wB";

let stage: OperatorStage;
let target: Target;
let admin: Someone;
let browser: Browser;

const strategy = (secret: string, more = ""): string => `
strategy: strat_machine
account: acme
hosts: ["${target.url}"]
login: { type: oauth2, grant: client_credentials, client_id: x, client_secret: { secret: ${secret} }, token_url: "${target.url}/token" }
${more}`;

before(async () => {
  [stage, target] = await Promise.all([openOperatorStage(), openTarget()]);
  target.on("POST /token", { json: { access_token: "access-token-1", token_type: "Bearer" } });
  target.on("GET /api/items", { json: [{ n: 1 }] });
  const items = itemsBlueprint("items", "strat_machine").replaceAll("{TARGET}", target.url);
  await stage.installation.apply("account: acme", "account: globex", strategy("NORTHWIND"), items);
  admin = await stage.operator("admin");
  await stage.giveSecondFactor(admin);
  browser = await stage.holding(admin);
});
after(async () => {
  await stage?.[Symbol.asyncDispose]();
  await target?.[Symbol.asyncDispose]();
});

/** An answer of an operation, compared with its schema when it is good. None holds a value. */
async function ask(id: string, method: string, path: string, body?: unknown): Promise<OperatorAnswer> {
  const operation = OPERATOR_OPERATIONS.find((each) => each.id === id) ?? assert.fail(id);
  const answer = await browser.send(method, path, body);
  if (answer.status === operation.status && operation.answer)
    assert.ok(matchesSchema(operation.answer, answer.body), answer.text);
  assert.ok(!answer.text.includes(VALUE), answer.text);
  return answer;
}

const list = async (query = "") => (await ask("listSecrets", "GET", `/secrets${query}`)).body;
const set = async (change: object = {}) =>
  await ask("setSecret", "POST", "/secrets", {
    account: "acme",
    name: "NORTHWIND",
    origins: [target.url],
    value: VALUE,
    ...change,
  });
const remove = async (path: string) => await ask("deleteSecret", "DELETE", `/secrets/${path}`);

test("a secret that a strategy lacks is a warning; set, it is listed with who set it and who names it, and runs use it", async () => {
  const lacking = await list();
  assert.deepEqual(lacking.items, []);
  assert.match(lacking.warnings.join(), /^The strategy acme\/strat_machine uses the secret NORTHWIND, which/);
  assert.deepEqual((await list("?account=globex")).warnings, []);
  assert.deepEqual(lacking.problems, [
    {
      account: "acme",
      strategy: "strat_machine",
      name: "NORTHWIND",
      kind: "missing_secret",
      origin: target.url,
      message: "The strategy acme/strat_machine uses the secret NORTHWIND, which the account does not have.",
    },
  ]);
  assert.deepEqual((await list("?account=globex")).problems, []);

  const made = await set();
  assert.deepEqual([made.status, made.body], [200, { change: "created", warnings: [] }]);
  const { items, warnings } = await list();
  assert.deepEqual(warnings, []);
  const [{ set_at: setAt, created_at: createdAt, ...rest }] = items;
  assert.equal(setAt, createdAt);
  assert.deepEqual(rest, {
    account: "acme",
    name: "NORTHWIND",
    origins: [target.url],
    strategies: ["strat_machine"],
    set_by: admin.email,
    is_overridden: false,
  });
  assert.deepEqual((await list("?account=globex")).items, []);

  const caller = openCaller(stage.service.url, await stage.installation.createKey("acme"));
  const credential = await connect(caller, "strat_machine", {});
  const { body: run } = await caller.post("/blueprints/items/trigger", { credential_id: credential });
  assert.equal((await caller.waitForRun(run.id)).body.status, "completed");
  const [sent] = target.seen("POST /token");
  const basic = Buffer.from(String(sent?.headers.authorization).slice("Basic ".length), "base64").toString();
  assert.equal(decodeURIComponent(basic), `x:${VALUE}`);
});

test("what is wrong is told at its field, without the value, and nothing is kept", async () => {
  const before = await stage.db.query("select * from account_secret");
  for (const [change, status, field] of [
    [{ name: "a-b" }, 422, "name"],
    [{ name: "LATCHKEY_MASTER_KEY" }, 422, "name"],
    [{ origins: ["http://login.example.com"] }, 422, "origins"],
    [{ origins: ["https://login.example.com/token"] }, 422, "origins"],
    [{ origins: [] }, 422, "origins"],
    [{ value: `${VALUE}\n${VALUE}` }, 422, "value"],
    [{ value: VALUE.repeat(1_000) }, 422, "value"],
    [{ account: "nobody" }, 404, undefined],
  ] as const) {
    const answer = await set(change);
    assert.equal(answer.status, status, answer.text);
    assert.equal(answer.body.error.details?.[0]?.field, field, answer.text);
  }
  assert.deepEqual(await stage.db.query("select * from account_secret"), before);
});

test("one that a strategy in force names is deleted by force alone; what is not there is 404", async () => {
  const replaced = await set({ origins: ["https://login.example.com"] });
  assert.equal(replaced.body.change, "replaced");
  assert.match(replaced.body.warnings.join(), /would send the secret NORTHWIND to http.*may not be sent/);
  const refused = await remove("acme/NORTHWIND");
  assert.equal(refused.status, 409);
  assert.match(refused.body.error.message, /^The secret NORTHWIND of acme is used by strat_machine, /);
  const byCommand = await stage.installation.command("secrets", "delete", "--account", "acme", "NORTHWIND");
  assert.match(byCommand.stderr, /is used by strat_machine/);
  assert.equal((await list()).items.length, 1);
  assert.equal((await remove("acme/NORTHWIND?force=true")).status, 204);
  assert.equal((await remove("acme/NORTHWIND?force=true")).status, 404);
  assert.equal((await remove("nobody/NORTHWIND")).status, 404);

  // A retired strategy needs none.
  await set();
  await stage.installation.apply(strategy("NORTHWIND", "retired: true"));
  assert.deepEqual((await list()).items[0].strategies, []);
  assert.equal((await remove("acme/NORTHWIND")).status, 204);
  const detail = await stage.db.query<{ text: string }>(
    `select concat_ws(' ', action, actor_kind, actor_id, detail) as text from audit_entry
     where subject_id = 'NORTHWIND' order by occurred_at, id`,
  );
  const by = `operator ${admin.id}`;
  assert.deepEqual(
    // Each names the row that it is about, with its serial.
    detail.map(({ text }) =>
      text.replace(/"row":"account_secret\/[^"]*\/NORTHWIND","serial":\d+,?/, "").replace(",}", "}"),
    ),
    [
      `secret.set ${by} {"change":"created","origins":"${target.url}"}`,
      `secret.set ${by} {"change":"replaced","origins":"https://login.example.com"}`,
      `secret.delete ${by} {"strategies":"strat_machine"}`,
      `secret.set ${by} {"change":"created","origins":"${target.url}"}`,
      `secret.delete ${by} {}`,
    ],
  );
  assert.ok(!stage.installation.logs().includes(VALUE));
});

test("API keys are made, rotated and revoked; each is shown once", async () => {
  const made = await ask("createKey", "POST", "/keys", {
    account: "acme",
    name: "by the dashboard",
    scopes: ["sessions", "runs"],
  });
  assert.equal((await openCaller(stage.service.url, made.body.key).get("/nothing")).status, 404, "it works");
  const rotated = await ask("rotateKey", "POST", `/keys/${made.body.id}/rotate`, { overlap_seconds: 0 });
  assert.equal((await ask("revokeKey", "POST", `/keys/${rotated.body.id}/revoke`, {})).status, 204);
  const list = await ask("listKeys", "GET", "/keys?account=acme");
  assert.ok(!list.text.includes(made.body.key) && !list.text.includes(rotated.body.key));
  const createdBy = (id: string): string => list.body.items.find((each: any) => each.id === id).created_by;
  assert.match(createdBy(made.body.id), /@example\.com$/);
  assert.equal(createdBy(rotated.body.id), createdBy(made.body.id), "by the rotation");
  assert.deepEqual(await stage.actions(rotated.body.id), ["key.revoke"]);
  assert.equal((await browser.send("POST", "/keys", { account: "nobody" })).status, 404);
});
