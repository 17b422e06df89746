// docs/decisions/0032: Blueprints, credentials and sessions on the command line: tables for people, `--json` as the operator API has it.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { connect, openCaller } from "../caller.ts";
import { install } from "../service.ts";
import { expectHeldJson } from "./held-surface.ts";

let installation: Awaited<ReturnType<typeof install>>;
let credential: string;
const ESCAPE = "\u001b";

const blueprint = (name: string): string => `blueprint: copy
account: acme
name: ${JSON.stringify(name)}
nodes:
  - { id: data, type: input, refKey: data }
  - { id: list, type: parse, from: data, format: json }
  - { id: out, type: output, refKey: out, from: list }`;

before(async () => {
  installation = await install();
});

after(async () => await installation?.[Symbol.asyncDispose]());

async function run(...arguments_: string[]): Promise<string> {
  const { code, stdout, stderr } = await installation.command(...arguments_);
  assert.equal(code, 0, stderr);
  return stdout;
}

const json = async (...arguments_: string[]): Promise<any> => JSON.parse(await run(...arguments_, "--json"));

test("an empty list says how the first one comes", async () => {
  for (const [command, says] of [
    ["runs", /POST \/api\/v1\/blueprints/],
    ["sessions", /POST \/api\/v1\/credential-sessions/],
    ["blueprints", /latchkey new blueprint/],
    ["credentials", /hosted forms/],
  ] as const) {
    const { code, stdout, stderr } = await installation.command(command, "list");
    assert.equal(code, 0);
    assert.match(stdout, /^There are no /);
    assert.match(stdout + stderr, says);
  }
});

test("sessions and credentials are listed without a value, a credential is deleted forever", async () => {
  const login =
    "strategy: strat_acme\naccount: acme\nfields: [{ key: token, type: password }]\nlogin: { type: none }";
  await installation.apply("account: acme", login, blueprint("One"));
  const caller = openCaller((await installation.serve()).url, await installation.createKey("acme"));
  credential = await connect(caller, "strat_acme", { token: "canary-value" });
  const { body: waiting } = await caller.post("/credential-sessions", {
    strategy_id: "strat_acme",
    name: `${ESCAPE}[31mred`,
  });
  const sessions = await json("sessions", "list", "--account", "acme");
  assert.deepEqual(
    sessions.items.map((each: any) => [each.id === waiting.id, each.status, each.credential_id]),
    [
      [true, "pending", null],
      [false, "completed", credential],
    ],
  );
  const table = await run("sessions", "list", "--limit", "1");
  assert.match(table, /^ID +ACCOUNT +STRATEGY.*\nsess_\w+ +acme +strat_acme .*Pending until \d{4}-/);
  assert.ok(!table.includes(ESCAPE), "a terminal is told nothing by a name");
  const next = /--cursor (\S+)/.exec(table)?.[1] ?? assert.fail(table);
  assert.match(await run("sessions", "list", "--cursor", next), new RegExp(credential));
  assert.ok(!(await run("credentials", "list", "--json")).includes("canary-value"));
  assert.equal(await run("credentials", "delete", credential), `Deleted ${credential}.\n`);
  assert.equal((await caller.delete(`/credentials/${credential}`)).status, 404);
  const again = await installation.command("credentials", "delete", credential);
  assert.deepEqual([again.code, /There is no credential/.test(again.stderr)], [1, true]);
  const entries = await installation.database.db.query<{ actor: string }>(
    "select actor_kind as actor from audit_entry where action = 'credential.delete' and subject_id = $1",
    [credential],
  );
  assert.deepEqual(entries, [{ actor: "cli" }]);
});

test("Blueprints are listed and shown with their versions, and an earlier one is published again", async () => {
  await installation.apply(blueprint("Two"));
  const list = await json("blueprints", "list");
  assert.deepEqual(
    list.items.map((each: any) => [each.account, each.key, each.name, each.version, each.applied_by]),
    [["acme", "copy", "Two", 2, null]],
  );
  assert.match(await run("blueprints", "list"), /^ACCOUNT +KEY.*\nacme +copy +Two +2 +.*command line +none/);
  const shown = await run("blueprints", "show", "acme", "copy");
  assert.match(shown, /inputs +data\n[^]*2 .*Current\n1 [^]*blueprint: copy/);
  assert.match(await run("blueprints", "show", "acme", "copy", "2"), /name: "One" → "Two"/);
  assert.match(await run("blueprints", "publish", "acme", "copy", "1"), /Published version 1/);
  assert.deepEqual(
    (await json("blueprints", "list")).items.map((each: any) => [each.name, each.version]),
    [["One", 3]],
  );
  assert.match(await run("blueprints", "publish", "acme", "copy", "3"), /Nothing changed/);
  for (const [arguments_, says] of [
    [["show", "nobody", "copy"], /There is no account "nobody"/],
    [["publish", "acme", "copy", "9"], /not found/],
    [["publish", "acme", "copy", "none"], /must be a version's number/],
  ] as const) {
    const refused = await installation.command("blueprints", ...arguments_);
    assert.notEqual(refused.code, 0);
    assert.match(refused.stderr, says);
  }
});

test("every list has one form as JSON: `{items, next_cursor}`, with names as the operator API has them", async () => {
  await run("keys", "create", "--account", "acme", "--name", "listed");
  for (const command of [
    ["keys", "list"],
    ["credentials", "list"],
    ["operators", "list"],
    ["secrets", "list"],
    ["reviews", "list"],
    ["reviews", "writes"],
    ["master-key", "status"],
    ["runs", "list"],
    ["sessions", "list"],
    ["blueprints", "list"],
  ]) {
    const listed = await json(...command);
    assert.deepEqual(Object.keys(listed), ["items", "next_cursor"], command.join(" "));
    const keys = listed.items.flatMap((item: object) => Object.keys(item));
    assert.deepEqual(
      keys.filter((key: string) => /[A-Z]/.test(key)),
      [],
      command.join(" "),
    );
  }
  const { items } = await json("keys", "list");
  assert.equal(items[0].account, "acme");
  assert.match(items[0].created_at, /^\d{4}-.*Z$/);
});

test("what `--json` prints has the fields of the held surface", async () => {
  const file = `${installation.dataFolder}/held.yaml`;
  writeFileSync(file, blueprint("Held"));
  const { code, stdout } = await installation.command("plan", "-f", file, "--json");
  assert.equal(code, 3);
  expectHeldJson("plan", JSON.parse(stdout));
  expectHeldJson("apply", await json("apply", "-f", file));
  expectHeldJson("blueprints publish", await json("blueprints", "publish", "acme", "copy", "1"));
  const made = await json("keys", "create", "--account", "acme");
  expectHeldJson("keys create", made);
  expectHeldJson("keys rotate", await json("keys", "rotate", made.id));
  expectHeldJson("operators create", await json("operators", "create", "a@b.example", "--role", "viewer"));
  const value = `${installation.dataFolder}/value`;
  writeFileSync(value, "the-value");
  await run("secrets", "set", "--account", "acme", "HELD", "--for", "https://held.example", "--file", value);
  const caller = openCaller((await installation.serve()).url, await installation.createKey("acme"));
  await connect(caller, "strat_acme", { token: "another-value" });
  for (const command of [
    "keys list",
    "operators list",
    "secrets list",
    "credentials list",
    "master-key status",
  ])
    expectHeldJson(command, await json(...command.split(" ")));
  expectHeldJson("audit verify", await json("audit", "verify"));
  const [, entry = ""] = (await run("audit", "export", "--json")).split("\n");
  expectHeldJson("audit export", JSON.parse(entry));
  const tombstones = `${installation.dataFolder}/none.ndjson`;
  writeFileSync(tombstones, "");
  expectHeldJson("restore-reconcile", await json("restore-reconcile", "--tombstones", tombstones));
});
