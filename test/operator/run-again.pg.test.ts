// docs/dashboard.md: a run is run again by hand, once for each decision, and both runs say so.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { connect, openCaller, type Caller } from "../caller.ts";
import { startTarget, type Target } from "../flow/target.ts";
import { assertInvariants } from "../invariants.ts";
import type { Browser, OperatorAnswer } from "./browser.ts";
import { goodAnswer } from "./good-answer.ts";
import { openOperatorStage, type OperatorStage, type Someone } from "./stage.ts";
import { expectHeldJson } from "../cli/held-surface.ts";

const strategy =
  "strategy: strat_acme\naccount: acme\nfields: [{ key: token, type: password }]\nlogin: { type: none }";
const copy = (more = ""): string => `blueprint: copy
account: acme
credentials: { it: { strategy: strat_acme } }
metadata: [{ name: po }, { name: left_out }]
nodes:
  - { id: data, type: input, refKey: data }
  - { id: file, type: input, refKey: file }
  - { id: list, type: parse, from: data, format: json }
  - { id: lines, type: parse, from: file, format: csv }
  - { id: out, type: output, refKey: out, from: list }
  - { id: out2, type: output, refKey: lines, from: lines }${more}`;

let stage: OperatorStage;
let target: Target;
let operator: Someone;
let browser: Browser;
let caller: Caller;

before(async () => {
  target = await startTarget(() => ({ body: {} }));
  stage = await openOperatorStage();
  await stage.installation.apply("account: acme", strategy, copy());
  caller = openCaller(stage.service.url, await stage.installation.createKey("acme"));
  operator = await stage.operator("operator");
  await stage.giveSecondFactor(operator);
  browser = await stage.holding(operator);
});

after(async () => {
  await stage?.[Symbol.asyncDispose]();
  await target?.close();
});

const good = async (id: string, path: string, body?: unknown): Promise<OperatorAnswer> =>
  await goodAnswer(browser, id, path, body);

/** A run of `copy` that has ended. */
async function ended(credential: string): Promise<string> {
  const form = new FormData();
  form.set("credential_id", credential);
  form.set("run_name", "Büro <b>");
  form.set("po", "PO-1");
  form.set("data", '[{"n":1.5}]');
  form.set("file", new File(["sku,n\nä,1\n"], "liste.csv", { type: "text/csv" }));
  const { status, text, body } = await caller.post("/blueprints/copy/trigger", form);
  assert.equal(status, 202, text);
  assert.equal((await caller.waitForRun(body.id, 100_000)).body.status, "completed");
  return body.id;
}

/** As text: numbers have the digits that were given. */
const results = async (run: string): Promise<string> =>
  (await caller.get(`/blueprint-runs/${run}/results?deliveryMethod=direct`)).text.split(
    '"executionMetadata"',
  )[0] ?? "";
const refused = (answer: OperatorAnswer): string => {
  assert.equal(answer.status, 409, answer.text);
  return String(answer.body.error.message);
};

test("the same inputs, files, credential, name and metadata; both runs name each other; on record", async () => {
  const first = await ended(await connect(caller, "strat_acme", { token: "value" }));
  const plan = await good("readRunAgain", `/runs/${first}/run-again`);
  assert.deepEqual(plan.body, {
    blueprint_version: 1,
    previous_version: 1,
    writes: [],
    ignored_keys: [],
    obstacle: null,
  });
  const again = await good("runAgain", `/runs/${first}/run-again`, { blueprint_version: 1 });
  assert.equal((await caller.waitForRun(again.body.id, 100_000)).body.status, "completed");
  assert.deepEqual(await results(again.body.id), await results(first));
  assert.match(await results(first), /"n":1\.5.*"ä"/);
  const [before_, after_] = [
    (await good("readRun", `/runs/${first}`)).body,
    (await good("readRun", `/runs/${again.body.id}`)).body,
  ];
  for (const key of ["name", "metadata", "inputs", "credentials", "blueprint_version"])
    assert.deepEqual(after_[key], before_[key], key);
  assert.deepEqual([before_.reruns, before_.again_of], [[again.body.id], null]);
  assert.deepEqual([after_.again_of, after_.started_by], [first, operator.email]);
  assert.deepEqual(await stage.actions(again.body.id), ["run.again"]);
  // Each has files of its own: those of the second stay when the first is purged.
  await good("purgeRun", `/runs/${first}/purge`);
  const third = await good("runAgain", `/runs/${again.body.id}/run-again`, {});
  await caller.waitForRun(third.body.id, 100_000);
  assert.deepEqual(await results(third.body.id), await results(again.body.id));
  assert.match(refused(await browser.send("POST", `/runs/${first}/run-again`, {})), /purged/);
  const [objects] = await stage.db.query<{ count: number }>(
    "select count(*)::int from blob where purpose = 'input'",
  );
  assert.equal(objects?.count, 2, "what was purged is gone, the others have one file each");
});

test("one decision is one run, however often it is sent", async () => {
  const first = await ended(await connect(caller, "strat_acme", { token: "value" }));
  const body = { idempotency_key: "a click" };
  const answers = await Promise.all(
    Array.from({ length: 4 }, async () => await browser.send("POST", `/runs/${first}/run-again`, body)),
  );
  assert.deepEqual(
    answers.map(({ status }) => status),
    [201, 201, 201, 201],
  );
  assert.equal(new Set(answers.map(({ body: run }) => run.id)).size, 1);
  assert.deepEqual((await good("readRun", `/runs/${first}`)).body.reruns, [answers[0]?.body.id]);
  const other = { ...body, blueprint_version: 1 };
  assert.equal(
    (await browser.send("POST", `/runs/${first}/run-again`, other)).status,
    409,
    "another decision",
  );
  const [left] = await stage.db.query<{ count: number }>(
    `select count(*)::int from blob where purpose = 'input' and run_id is null`,
  );
  assert.equal(left?.count, 0);
});

test("what is in the way is said, and nothing is started", async () => {
  const credential = await connect(caller, "strat_acme", { token: "value" });
  const first = await ended(credential);
  await caller.delete(`/credentials/${credential}`);
  const plan = await good("readRunAgain", `/runs/${first}/run-again`);
  assert.match(plan.body.obstacle, new RegExp(`${credential} was deleted`));
  assert.match(refused(await browser.send("POST", `/runs/${first}/run-again`, {})), /was deleted/);
  // Its file is not in the store any more.
  const second = await ended(await connect(caller, "strat_acme", { token: "value" }));
  const [blob] = await stage.db.query<{ key: string }>(
    "select key from blob where run_id = $1 and purpose = 'input'",
    [second],
  );
  rmSync(join(stage.installation.dataFolder, "objects", blob?.key ?? "?"));
  assert.match(
    refused(await browser.send("POST", `/runs/${second}/run-again`, {})),
    /file of the input "file" is no longer in the object store/,
  );
  assert.deepEqual((await good("readRun", `/runs/${second}`)).body.reruns, []);
  assert.equal((await browser.send("POST", "/runs/run_nothing/run-again", {})).status, 404);
});

test("the version in force is executed, and said; what it writes must be meant, also on the command line", async () => {
  const first = await ended(await connect(caller, "strat_acme", { token: "value" }));
  await stage.installation.apply(
    copy(`
  - { id: send, type: http, for_each: list, request: { method: POST, url: "${target.url}/book" }, effect: write }`)
      .replace("{ name: po }, ", "")
      .replace("account: acme", `account: acme\nhosts: [${target.url}]`),
  );
  const plan = await good("readRunAgain", `/runs/${first}/run-again`);
  assert.deepEqual(plan.body, {
    blueprint_version: 2,
    previous_version: 1,
    writes: ["send"],
    ignored_keys: ["po"],
    obstacle: null,
  });
  assert.match(
    refused(
      await browser.send("POST", `/runs/${first}/run-again`, { blueprint_version: 1, may_write: true }),
    ),
    /The current version is now 2/,
  );
  assert.match(refused(await browser.send("POST", `/runs/${first}/run-again`, {})), /write.*\(send\)/);
  const unmeant = await stage.installation.command("runs", "again", first);
  assert.deepEqual([unmeant.code, /--may-write/.test(unmeant.stderr)], [1, true]);
  assert.equal(target.requests.length, 0);
  const meant = await stage.installation.command("runs", "again", first, "--may-write", "--json");
  assert.equal(meant.code, 0, meant.stderr);
  const made = JSON.parse(meant.stdout);
  expectHeldJson("runs again", made);
  assert.equal(made.blueprint_version, 2);
  assert.equal((await caller.waitForRun(made.id, 100_000)).body.status, "completed");
  assert.equal(target.requests.length, 1);
  const run = (await good("readRun", `/runs/${made.id}`)).body;
  assert.deepEqual([run.api_key_id, run.started_by, run.again_of], [null, null, first]);
  assert.deepEqual(run.ignored_keys, [{ name: "po", did_you_mean: null }]);
  const entries = await stage.db.query("select actor_kind from audit_entry where subject_id = $1", [made.id]);
  assert.deepEqual(entries, [{ actor_kind: "cli" }]);
  assert.match((await stage.installation.command("runs", "again", "run_nothing")).stderr, /There is no run/);
});

test("the data of the installation is as it must be", async () => {
  await assertInvariants(stage.installation, { object: "a file was removed, to see what is said of it" });
});
