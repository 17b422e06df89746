// The login of a credential is tested by a run that does nothing else: opened by a worker alone, counted as any login, no value shown.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually, PATIENCE_MS } from "../eventually.ts";
import { connect, openCaller, submitHostedForm, type Caller } from "../caller.ts";
import { LEDGER_LOGIN, ledger, ledgerDocuments, startTarget, type Target } from "../flow/target.ts";
import { putStrategyInForce } from "../in-force.ts";
import { assertInvariants } from "../invariants.ts";
import type { Browser, OperatorAnswer } from "./browser.ts";
import { goodAnswer } from "./good-answer.ts";
import { openOperatorStage, type OperatorStage } from "./stage.ts";
import { expectHeldJson } from "../cli/held-surface.ts";

let stage: OperatorStage;
let target: Target;
let browser: Browser;
let caller: Caller;
let email: string;

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
    `strategy: strat_checked
account: acme
hosts: [${target.url}]
fields: [{ key: token, type: password, required: true }]
login: { type: bearer, token: token, check: { request: { url: /invoices } } }`,
  );
  caller = openCaller(stage.service.url, await stage.installation.createKey("acme"));
  const operator = await stage.operator("operator");
  ({ email } = operator);
  await stage.giveSecondFactor(operator);
  browser = await stage.holding(operator);
});

after(async () => {
  await stage?.[Symbol.asyncDispose]();
  await target?.close();
});

const good = async (id: string, path: string, body?: unknown): Promise<OperatorAnswer> =>
  await goodAnswer(browser, id, path, body);

/** Starts one, and gives its run when it has ended. */
async function tested(credential: string): Promise<any> {
  const { body } = await good("testLogin", `/credentials/${credential}/test-login`);
  return await over(body.id);
}

async function over(run: string): Promise<any> {
  return await eventually(
    "the test login has ended",
    async () => {
      const { body } = await good("readRun", `/runs/${run}`);
      return body.ended_at === null ? undefined : body;
    },
    PATIENCE_MS,
  );
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
  assert.equal((await good("listRuns", "/runs")).body.items[0].id, run.id);
  assert.deepEqual((await good("readRunGraph", `/runs/${run.id}/graph`)).body, {
    nodes: [],
    edges: [],
  });
  const plan = await good("readRunAgain", `/runs/${run.id}/run-again`);
  assert.match(plan.body.obstacle, /test login/);
  // A login that is kept is no test: it is done anew each time.
  const logins = target.requests.length;
  await tested(credential);
  assert.equal(target.requests.length, logins + 1);
  // It has begun before the login, of which it consists.
  const at = (time: string): number => Date.parse(time);
  const [created, claimed, started] = [at(run.created_at), at(run.claimed_at), at(run.started_at)];
  assert.ok(created <= claimed && claimed <= Date.parse(run.steps[0].started_at) + 1, JSON.stringify(run));
  assert.ok(Date.parse(run.steps[0].ended_at) <= started + 1, JSON.stringify(run));
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
  assert.deepEqual([step.answer.status, step.answer.address], [401, `${target.url}/login`]);
  assert.ok(!JSON.stringify(run).includes("wrong-pass-4711"));
  // What a target answers is end users' data, as results are: not for those who may not see these.
  const { browser: viewer } = await stage.signedIn("viewer");
  const seen = (await viewer.send("GET", `/runs/${run.id}`)).body;
  assert.deepEqual([seen.steps[0].error, seen.steps[0].answer], [step.error, null]);
  const rejections = async (): Promise<any> =>
    (await good("listCredentials", "/credentials")).body.items.find(({ id }: any) => id === credential);
  assert.equal((await rejections()).login_rejections, 1);
  while ((await rejections()).locked_until === null) await tested(credential);
  const one = (await good("readCredential", `/credentials/${credential}`)).body;
  const [uses, ...others] = one.uses;
  assert.deepEqual(others, []);
  assert.deepEqual([uses.blueprint, uses.completed], [null, 0]);
  assert.deepEqual([uses.runs, uses.failed, uses.login_failed], Array(3).fill(one.login_rejections));
  const runs = (await good("listRuns", `/runs?credential=${credential}`)).body.items;
  assert.deepEqual([runs.length, runs[0].id], [uses.runs, uses.last_run_id]);
  assert.equal(
    (await good("listRuns", `/runs?credential=${credential}&status=completed`)).body.items.length,
    0,
  );
  assert.deepEqual(one.origins, [target.url]);
  const sent = target.requests.length;
  const locked = await tested(credential);
  assert.match(locked.failure_detail, /not tried/);
  assert.equal(target.requests.length, sent, "a locked credential is not tried");
});

test("while one is under way it is that one, and it is cancelled like any run", async () => {
  const credential = await connect(caller, "strat_ledger", LEDGER_LOGIN);
  const hold = target.hold(({ path }) => path === "/login");
  const path = `/credentials/${credential}/test-login`;
  const first = await good("testLogin", path);
  await hold.reached;
  const others = await Promise.all([1, 2, 3].map(async () => await good("testLogin", path)));
  assert.deepEqual(new Set(others.map(({ body }) => body.id)), new Set([first.body.id]));
  await good("cancelRun", `/runs/${first.body.id}/cancel`);
  assert.equal((await browser.send("POST", `/runs/${first.body.id}/cancel`)).status, 409);
  hold.release();
  assert.equal((await over(first.body.id)).status, "cancelled");
  assert.equal((await tested(credential)).status, "completed");
});

/** M2 of the review: a step for each bit of the secret's first characters, done or left out, all at the declared host. */
const oracle = (url: string, steps: readonly string[]): string => `strategy: strat_oracle
account: acme
hosts: [${url}]
fields:
  - { key: method, label: Method, type: select, options: [sms, app] }
  - { key: key, label: Key, type: password }
login:
  type: http
  lockout: off
  steps:
    - when: $credential.method = 'sms'
      request: { url: /open }
    - when: $credential.method = 'app'
      request: { url: /never }
${steps.join("\n")}`;

const CHARACTER = "$substring($credential.key, 0, 1)";
const BITS = [0, 1, 2, 3, 4, 5].map(
  (bit) =>
    `    - { when: "$floor($length($substringBefore('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ', ${CHARACTER})) / ${2 ** bit}) % 2 = 1", request: { url: /open } }`,
);

test("a test login is no oracle: its author's conditions tell nothing of a secret field", async () => {
  const { installation } = stage;
  const { db } = installation.database;
  const problems = await installation.refusals(oracle(target.url, BITS));
  assert.equal(problems.length, BITS.length, problems.join("\n"));
  for (const [index, problem] of problems.entries())
    assert.match(
      problem,
      new RegExp(
        `^\\d+:\\d+ login\\.steps\\[${index + 2}\\]\\.when the outcome would disclose something about the secret field .key.; a condition may compare`,
      ),
    );
  // A condition on what is not secret goes on working, and is shown.
  await installation.apply(oracle(target.url, []));
  const open = await tested(await connect(caller, "strat_oracle", { method: "sms", key: "SECRET" }));
  assert.deepEqual(
    open.steps.map((step: any) => [step.node, step.status, step.log.map((line: any) => line.message)]),
    [
      ["login step 1 (GET /open)", "done", ["asked"]],
      ["login step 2 (GET /never)", "skipped", ["left out: its `when` is not true"]],
    ],
  );
  // Steps that end within the same millisecond stay in their order, however long each took.
  await db.query(
    `update run_step set ended_at = '2026-01-01', started_at = '2026-01-01'::timestamptz
       - case when node_id like 'login step 1%' then interval '0' else interval '31 ms' end where run_id = $1`,
    [open.id],
  );
  assert.deepEqual(
    (await good("readRun", `/runs/${open.id}`)).body.steps.map((step: any) => step.node),
    open.steps.map((step: any) => step.node),
  );
  // One that was in force before goes on, does what it says, and shows the same for every secret.
  await putStrategyInForce(db, oracle(target.url, BITS));
  const traces: unknown[] = [];
  const requests: number[] = [];
  for (const key of ["SECRET", "0"]) {
    const credential = await connect(caller, "strat_oracle", { method: "sms", key });
    const before = target.requests.length;
    const { status, steps } = await tested(credential);
    requests.push(target.requests.length - before);
    traces.push([
      status,
      steps.map((step: any) => ({ node: step.node, status: step.status, log: step.log, error: step.error })),
    ]);
    const [times] = await db.query<{ took: number }>(
      "select max(extract(epoch from ended_at - started_at))::float8 as took from run_step where node_id = 'what is not shown'",
    );
    assert.equal(times?.took, 0);
  }
  assert.deepEqual(requests, [1 + 3, 1], "28 has three bits set, and 0 has none");
  assert.deepEqual(traces[0], traces[1]);
  assert.match(
    JSON.stringify(traces[0]),
    /login step 2.*what is not shown.*conditions of the login use secret/,
  );
  assert.doesNotMatch(JSON.stringify(traces[0]), /login step 3/);
});

test("which step of such a login failed, and by what, is not shown either", async () => {
  const { db } = stage.installation.database;
  const fails = (index: number) =>
    `    - { request: { url: /open }, expect: { json: "$substring($credential.key, ${index}, 1) = 'S'" } }`;
  await putStrategyInForce(db, oracle(target.url, [fails(0), fails(1)]));
  const seen = new Set<string>();
  for (const key of ["Sx", "xS"]) {
    const run = await tested(await connect(caller, "strat_oracle", { method: "sms", key }));
    assert.equal(run.failure, "login");
    assert.match(run.failure_detail, /not shown/);
    const steps = run.steps.map((step: any) => [step.node, step.status, step.log, step.error]);
    seen.add(JSON.stringify([run.failure_detail, steps]));
  }
  assert.equal(seen.size, 1, [...seen].join("\n"));
  const doctor = await stage.installation.command("doctor");
  assert.match(
    doctor.stdout,
    /look +the login of the strategy acme\/strat_oracle .*login\.steps\[2\]\.expect\.json, login\.steps\[3\]/,
  );
});

test("what sends nothing by itself says so; the command line starts one as well", async () => {
  const credential = await connect(caller, "strat_token", { token: "value" });
  const tell = await stage.installation.command("credentials", "test-login", credential, "--json");
  assert.equal(tell.code, 0, tell.stderr);
  expectHeldJson("credentials test-login", JSON.parse(tell.stdout));
  const run = await over(JSON.parse(tell.stdout).id);
  assert.equal(run.status, "completed");
  assert.match(run.steps[0].log[0].message, /^Nothing was sent, .* no `check`/);
  assert.equal(run.started_by, null);
  const shown = await stage.installation.command("runs", "show", run.id);
  assert.match(shown.stdout, /test login/);
  const none = await stage.installation.command("credentials", "test-login", "cred_nothing");
  assert.deepEqual([none.code, /There is no credential/.test(none.stderr)], [1, true]);
});

test("a wrong value of what sends nothing by itself fails the test login of a strategy with a `check`", async () => {
  const run = await tested(await connect(caller, "strat_checked", { token: "wrong" }));
  assert.deepEqual([run.status, run.failure], ["failed", "login"]);
  assert.match(run.failure_detail, /login check \(GET \/invoices\): expected status 200 to 299, got 401/);
});

test("the data of the installation is as it must be", async () => {
  await assertInvariants(stage.installation);
});

test("credentials and sessions are listed by state", async () => {
  const credential = await connect(caller, "strat_token", { token: "right" });
  const countOf = async (operation: string, path: string): Promise<number> =>
    (await good(operation, path)).body.items.filter((each: any) =>
      [each.id, each.credential_id].includes(credential),
    ).length;
  const sessions = ["completed", "pending", "expired"].map(
    async (state) => await countOf("listCredentialSessions", `/credential-sessions?state=${state}`),
  );
  assert.deepEqual(await Promise.all(sessions), [1, 0, 0]);
  const states = async (): Promise<readonly number[]> => [
    await countOf("listCredentials", "/credentials?state=rejected"),
    await countOf("listCredentials", "/credentials?state=locked"),
  ];
  assert.deepEqual(await states(), [0, 0]);
  await stage.db.query("update credential set login_rejections = 2 where id = $1", [credential]);
  assert.deepEqual(await states(), [1, 0]);
  await stage.db.query(
    "update credential set login_locked_until = app_now() + interval '1 h' where id = $1",
    [credential],
  );
  assert.deepEqual(await states(), [1, 1]);
  await good("unlockCredential", `/credentials/${credential}/unlock`);
  assert.deepEqual(await states(), [0, 0]);
});

test("a credential's user is asked for the login again, by a session like the one that collected it", async () => {
  const metadata = { customer: "Ada" };
  const request = { strategy_id: "strat_ledger", name: "Ada's ledger", metadata };
  const first = (await caller.post("/credential-sessions", request)).body;
  await submitHostedForm(first.hosted_url, LEDGER_LOGIN);
  const credential = (await caller.get(`/credential-sessions/${first.id}`)).body.credential_id;
  const { session_id: id } = (await good("requestCredential", `/credentials/${credential}/request`)).body;
  assert.notEqual(id, first.id);
  const path = `/credential-sessions/${id}`;
  const session = (await good("readCredentialSession", path)).body;
  assert.deepEqual(
    [session.status, session.strategy, session.name, session.metadata],
    ["pending", "strat_ledger", "Ada's ledger", metadata],
  );
  assert.deepEqual([session.customer, session.created_by], ["Ada", email]);
  // Whose the login is, is said wherever it is listed.
  const kept = (await good("listCredentials", "/credentials?q=ada's")).body.items;
  assert.deepEqual(
    kept.map((each: any) => each.customer),
    ["Ada"],
  );
  const { id: run, customer, tested: label, is_sign_in: isSignIn } = await tested(credential);
  assert.deepEqual([customer, label, isSignIn], ["Ada", "Ada's ledger", false]);
  await stage.db.query(
    `update run set status = 'failed', progress_step = 'failed', error_kind = 'login', error_detail = 'Whose it was',
       response_bytes = null where id = $1`,
    [run],
  );
  const failures = (await good("listFailures", "/failures")).body.items;
  const own = failures.find((each: any) => each.last_run_id === run);
  assert.deepEqual([own?.blueprint, own?.customers], [null, ["Ada"]]);
  // The link is not in the answer: anyone who takes it is on record.
  const { hosted_url: link } = (await good("linkCredentialSession", `${path}/link`)).body;
  await submitHostedForm(link, LEDGER_LOGIN);
  const { body } = await caller.get(path);
  assert.equal(body.status, "completed");
  assert.notEqual(body.credential_id, credential, "a credential of its own");
  assert.equal((await browser.send("GET", `/credentials/${credential}`)).status, 200, "the first one stays");
  assert.deepEqual((await stage.actions(id)).slice(0, 2), ["session.create", "session.link"]);
  assert.equal((await browser.send("POST", "/credentials/cred_none/request")).status, 404);
});

test("a pending session's link is given out again, on record, and revoked: the form accepts nothing more", async () => {
  const created = (await caller.post("/credential-sessions", { strategy_id: "strat_ledger", name: "Ada" }))
    .body;
  const path = `/credential-sessions/${created.id}`;
  const session = (await good("readCredentialSession", path)).body;
  assert.deepEqual([session.status, session.opened_at, session.slot], ["pending", null, null]);
  assert.ok(!JSON.stringify(session).includes(created.hosted_url.split("/").at(-1)));
  const link = (await good("linkCredentialSession", `${path}/link`)).body;
  assert.equal(link.hosted_url, created.hosted_url);
  await good("revokeCredentialSession", `${path}/revoke`);
  assert.equal((await caller.get(path)).body.status, "expired");
  assert.equal((await fetch(link.hosted_url)).status, 410);
  for (const action of ["link", "revoke"])
    assert.equal((await browser.send("POST", `${path}/${action}`)).status, 409, action);
  assert.equal((await browser.send("GET", "/credential-sessions/sess_none")).status, 404);
  // Its end is on record once: housekeeping adds nothing.
  await stage.moveClock("1 hour");
  assert.deepEqual(await stage.actions(created.id), ["session.create", "session.link", "session.revoke"]);
});
