// The login of a credential is tested by a run that does nothing else: opened by a worker alone, counted as any login, no value shown.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { OPERATOR_OPERATIONS } from "#contract/operator/operations.ts";
import { matchesSchema } from "#domain/matches-schema.ts";
import { connect, openCaller, type Caller } from "../caller.ts";
import { LEDGER_LOGIN, ledger, ledgerDocuments, startTarget, type Target } from "../flow/target.ts";
import { assertInvariants } from "../invariants.ts";
import type { Browser, OperatorAnswer } from "./browser.ts";
import { openOperatorStage, type OperatorStage } from "./stage.ts";

let stage: OperatorStage;
let target: Target;
let browser: Browser;
let caller: Caller;

before(async () => {
  target = await startTarget(ledger);
  stage = await openOperatorStage();
  await stage.installation.apply(
    ...ledgerDocuments(target.url, { cache: "10m" }),
    // With a second step.
    (ledgerDocuments(target.url)[1] ?? "")
      .replace("strat_ledger", "strat_steps")
      .replace("  steps:\n", "  steps:\n    - request: { method: GET, url: /open }\n"),
    `strategy: strat_token
account: acme
hosts: [${target.url}]
fields: [{ key: token, type: password, required: true }]
login: { type: bearer, token: token }`,
  );
  caller = openCaller(stage.service.url, await stage.installation.createKey("acme"));
  const operator = await stage.operator("operator");
  await stage.giveSecondFactor(operator);
  browser = await stage.holding(operator);
});

after(async () => {
  await stage?.[Symbol.asyncDispose]();
  await target?.close();
});

async function good(id: string, method: string, path: string): Promise<OperatorAnswer> {
  const operation = OPERATOR_OPERATIONS.find((each) => each.id === id) ?? assert.fail(id);
  const answer = await browser.send(method, path);
  assert.equal(answer.status, operation.status, `${id}: ${answer.text}`);
  if (operation.answer) assert.ok(matchesSchema(operation.answer, answer.body), `${id}: ${answer.text}`);
  return answer;
}

/** Starts one, and gives its run when it has ended. */
async function tested(credential: string): Promise<any> {
  const { body } = await good("testLogin", "POST", `/credentials/${credential}/test-login`);
  return await over(body.id);
}

async function over(run: string): Promise<any> {
  const until = performance.now() + 100_000;
  for (;;) {
    const { body } = await good("readRun", "GET", `/runs/${run}`);
    if (body.ended_at !== null) return body;
    assert.ok(performance.now() < until, "it never ended");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

test("a login that works: each step, on record, for operators alone", async () => {
  const credential = await connect(caller, "strat_ledger", LEDGER_LOGIN);
  const run = await tested(credential);
  assert.deepEqual([run.status, run.blueprint, run.blueprint_version], ["completed", null, null]);
  assert.deepEqual(
    run.steps.map((step: any) => [step.node, step.status, step.log]),
    [["login step 1 (POST /login)", "done", [{ message: "asked", origin: target.url, status: 302 }]]],
  );
  assert.equal(run.credentials[0].credential_id, credential);
  assert.ok(!JSON.stringify(run).includes(LEDGER_LOGIN.password));
  const entries = await stage.actions(credential);
  assert.deepEqual(entries.slice(1), ["credential.test_login", "credential.open", "credential.send"]);
  // No customer's run: neither by its id nor by its key. Operators find it among the others.
  for (const reference of [run.id, run.run_key])
    assert.equal((await caller.get(`/blueprint-runs/${reference}/status`)).status, 404);
  assert.equal((await caller.post(`/blueprint-runs/${run.id}/cancel`)).status, 404);
  assert.equal((await good("listRuns", "GET", "/runs")).body.items[0].id, run.id);
  assert.deepEqual((await good("readRunGraph", "GET", `/runs/${run.id}/graph`)).body, {
    nodes: [],
    edges: [],
  });
  const plan = await good("readRunAgain", "GET", `/runs/${run.id}/run-again`);
  assert.match(plan.body.obstacle, /test login/);
  // A login that is kept is no test: it is done anew each time.
  const logins = target.requests.length;
  await tested(credential);
  assert.equal(target.requests.length, logins + 1);
});

test("the steps of a login stand in their order, each with what came of it", async () => {
  const run = await tested(await connect(caller, "strat_steps", { ...LEDGER_LOGIN, password: "wrong" }));
  assert.deepEqual(
    run.steps.map((step: any) => [step.node, step.status, step.log[0].status]),
    [
      ["login step 1 (GET /open)", "done", 200],
      ["login step 2 (POST /login)", "failed", 401],
    ],
  );
});

test("a login that the target rejects: its step, and it counts until the lock", async () => {
  const credential = await connect(caller, "strat_ledger", { username: "ada", password: "wrong-pass-4711" });
  const run = await tested(credential);
  assert.deepEqual([run.status, run.failure], ["failed", "login"]);
  const [step] = run.steps;
  assert.deepEqual([step.node, step.status], ["login step 1 (POST /login)", "failed"]);
  assert.match(step.error, /login step 1.*401/);
  assert.deepEqual(step.log, [{ message: "asked", origin: target.url, status: 401 }]);
  assert.ok(!JSON.stringify(run).includes("wrong-pass-4711"));
  const rejections = async (): Promise<any> =>
    (await good("listCredentials", "GET", "/credentials")).body.items.find(
      ({ id }: any) => id === credential,
    );
  assert.equal((await rejections()).login_rejections, 1);
  while ((await rejections()).locked_until === null) await tested(credential);
  const sent = target.requests.length;
  const locked = await tested(credential);
  assert.match(locked.failure_story, /not tried/);
  assert.equal(target.requests.length, sent, "a locked credential is not tried");
});

test("while one is under way it is that one, and it is cancelled like any run", async () => {
  const credential = await connect(caller, "strat_ledger", LEDGER_LOGIN);
  const hold = target.hold(({ path }) => path === "/login");
  const path = `/credentials/${credential}/test-login`;
  const first = await good("testLogin", "POST", path);
  await hold.reached;
  const others = await Promise.all([1, 2, 3].map(async () => await good("testLogin", "POST", path)));
  assert.deepEqual(new Set(others.map(({ body }) => body.id)), new Set([first.body.id]));
  await good("cancelRun", "POST", `/runs/${first.body.id}/cancel`);
  assert.equal((await browser.send("POST", `/runs/${first.body.id}/cancel`)).status, 409);
  hold.release();
  assert.equal((await over(first.body.id)).status, "cancelled");
  assert.equal((await tested(credential)).status, "completed");
});

test("what sends nothing by itself says so; the command line starts one as well", async () => {
  const credential = await connect(caller, "strat_token", { token: "value" });
  const tell = await stage.installation.command("credentials", "test-login", credential, "--json");
  assert.equal(tell.code, 0, tell.stderr);
  const run = await over(JSON.parse(tell.stdout).id);
  assert.equal(run.status, "completed");
  assert.match(run.steps[0].log[0].message, /Nothing was sent/);
  assert.equal(run.started_by, null);
  const shown = await stage.installation.command("runs", "show", run.id);
  assert.match(shown.stdout, /test login/);
  const none = await stage.installation.command("credentials", "test-login", "cred_nothing");
  assert.deepEqual([none.code, /There is no credential/.test(none.stderr)], [1, true]);
});

test("the data of the installation is as it must be", async () => {
  await assertInvariants(stage.installation);
});
