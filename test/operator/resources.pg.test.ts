// What operators see and do: each answer is what its schema says, each effect is on record, and no answer holds a secret.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { OPERATOR_OPERATIONS } from "../../scripts/generate/operator-operations.ts";
import { eventually, PATIENCE_MS, until } from "../eventually.ts";
import { connect, openCaller, type Caller } from "../caller.ts";
import { sendPlain, type Browser, type OperatorAnswer } from "./browser.ts";
import { goodAnswer } from "./good-answer.ts";
import { documents } from "./resources-documents.ts";
import { openOperatorStage, type OperatorStage, type Someone } from "./stage.ts";

const CANARY = "canary-5f1d9c-value";

let stage: OperatorStage;
let admin: Someone;
let browser: Browser;
let caller: Caller;
let key: string;
let credential: string;
let runs: readonly string[];

before(async () => {
  stage = await openOperatorStage();
  await stage.installation.apply(...documents);
  key = await stage.installation.createKey("acme");
  caller = openCaller(stage.service.url, key);
  credential = await connect(caller, "strat_acme", { token: CANARY });
  const made: string[] = [];
  for (const [index, name] of ["first", "second", "third"].entries()) {
    const { body } = await caller.post("/blueprints/list-it/trigger", {
      credential_id: credential,
      run_name: `${name} run`,
      po: `po-${index}`,
      purchase: "ignored",
      data: JSON.stringify([{ sku: `${CANARY}-in-data`, n: index }]),
    });
    made.push(body.run_id ?? body.id);
  }
  runs = made;
  await until(
    "all three wait for a review",
    async () => (await stage.db.query("select 1 from review where status = 'open'")).length === 3,
  );
  admin = await stage.operator("admin");
  await stage.giveSecondFactor(admin);
  browser = await stage.holding(admin);
});

after(async () => await stage?.[Symbol.asyncDispose]());

const good = async (id: string, path: string, body?: unknown): Promise<OperatorAnswer> =>
  await goodAnswer(browser, id, path, body);

const names = (answer: OperatorAnswer): readonly string[] =>
  answer.body.items.map(({ name }: any) => String(name).replace(" run", ""));

test("runs are listed newest first, page by page, and by every filter", async () => {
  assert.deepEqual(names(await good("listRuns", "/runs")), ["third", "second", "first"]);
  const first = await good("listRuns", "/runs?limit=2");
  assert.deepEqual(names(first), ["third", "second"]);
  const second = await good("listRuns", `/runs?limit=2&cursor=${first.body.next_cursor}`);
  assert.deepEqual([names(second), second.body.next_cursor], [["first"], null]);
  const { run_key: runKey, created_at: at } = second.body.items[0];
  const filters: readonly (readonly [query: string, found: readonly string[]])[] = [
    ["status=running", ["third", "second", "first"]],
    ["status=failed", []],
    ["progress_step=awaiting_review", ["third", "second", "first"]],
    ["progress_step=authenticating", []],
    ["status=running&progress_step=checked", []],
    ["account=acme&blueprint=list-it&run_name=sec", ["second"]],
    ["run_name=run", []],
    ["metadata=po%3Dpo-2", ["third"]],
    ["metadata=po%3Dpo", []],
    [`id=${runs[1]}`, ["second"]],
    [`id=${runKey}`, ["first"]],
    [`until=${at}`, []],
    [`since=${at}&limit=1`, ["third"]],
  ];
  for (const [query, found] of filters)
    assert.deepEqual(names(await good("listRuns", `/runs?${query}`)), found, query);
});

test("a query that can't be meant is refused by name", async () => {
  const wrong: Readonly<Record<string, string>> = {
    "status=done": "status",
    "limit=0": "limit",
    "limit=2000": "limit",
    "limit=1&limit=2": "limit",
    "cursor=abc": "cursor",
    "since=yesterday": "since",
    "metadata=po": "metadata",
    "id=1": "id",
    "account=nobody": "account",
    "blueprint=none": "blueprint",
    "sort=name": "sort",
  };
  for (const [query, field] of Object.entries(wrong)) {
    const { status, body, text } = await browser.send("GET", `/runs?${query}`);
    assert.deepEqual([status, body.error.details?.[0]?.field], [422, field], `${query}: ${text}`);
  }
});

test("a run shows its steps, and names and sizes of what it got", async () => {
  const { body } = await good("readRun", `/runs/${runs[0]}`);
  assert.deepEqual(body.metadata, { po: "po-0" });
  assert.deepEqual(body.ignored_keys, [{ name: "purchase", did_you_mean: null }]);
  assert.deepEqual([body.inputs[0].ref_key, body.inputs[0].kind], ["data", "text"]);
  assert.equal(body.credentials[0].credential_id, credential);
  assert.deepEqual([body.progress_step, body.reviews.length], ["awaiting_review", 1]);
  assert.equal((await browser.send("GET", "/runs/run_nothing")).status, 404);
  const graph = await good("readRunGraph", `/runs/${runs[0]}/graph`);
  assert.deepEqual(
    graph.body.edges.map(({ from, to }: any) => `${from} ${to}`),
    ["data list", "list look", "look out"],
  );
  assert.equal((await browser.send("GET", "/runs/run_nothing/graph")).status, 404);
});

test("a review is decided once, with what is changed, by whom", async () => {
  const inbox = await good("listReviews", "/reviews?account=acme");
  assert.equal(inbox.body.items.length, 3);
  // Which of them began first is chance.
  const { id, run_id: runId, ...whose } = inbox.body.items.find(({ run_id: each }: any) => each === runs[0]);
  assert.deepEqual([whose.run_name, whose.metadata], ["first run", { po: "po-0" }]);
  const records = await good("listReviewRecords", `/reviews/${id}/records?limit=1`);
  assert.deepEqual([records.body.items[0].ordinal, records.body.next_cursor], [0, null]);
  const unfit = await browser.send("POST", `/reviews/${id}/approve`, { exclude: [7] });
  assert.deepEqual([unfit.status, unfit.body.error.details[0].field], [422, "exclude.0"]);
  const changes = { edits: [{ ordinal: 0, data: { sku: "edited" } }], reason: "seen" };
  const approved = await good("approveReview", `/reviews/${id}/approve`, changes);
  assert.deepEqual(
    [approved.body.status, approved.body.decided_by, approved.body.edited],
    ["approved", admin.email, 1],
  );
  assert.equal((await browser.send("POST", `/reviews/${id}/reject`, { reason: "late" })).status, 409);
  assert.equal((await caller.waitForRun(runId, 100_000)).body.status, "completed");
  // Two lines of a step's log, and none: both are lists.
  await stage.db.query(
    `update run_step set log = convert_to(E'{"message":"one"}\\n{"message":"two"}', 'UTF8') where run_id = $1`,
    [runId],
  );
  const read = await good("readRun", `/runs/${runId}`);
  const step = read.body.steps.at(-1);
  assert.deepEqual([step.status, step.log], ["done", [{ message: "one" }, { message: "two" }]]);
  await stage.db.query("update run_step set log = '' where run_id = $1", [runId]);
  assert.deepEqual((await good("readRun", `/runs/${runId}`)).body.steps.at(-1).log, []);
  const result = await caller.get(`/blueprint-runs/${runId}/results?deliveryMethod=direct`);
  assert.ok(result.text.includes("edited"));
  assert.deepEqual(await stage.actions(id), ["review.decide"]);
});

/** Ten records, of which four have errors: the run's id, and its review. */
async function reviewed(): Promise<{ readonly run: string; readonly review: any }> {
  const records = Array.from({ length: 10 }, (_, n) => ({ n }));
  const { body } = await caller.post("/blueprints/checked/trigger", { data: JSON.stringify(records) });
  const review = await eventually(
    "it waits",
    async () => {
      const { items } = (await good("listReviews", "/reviews")).body;
      return items.find(({ run_id: run }: any) => run === body.id);
    },
    PATIENCE_MS,
  );
  return { run: body.id, review };
}

test("the time for which a run waits for a reviewer is that of its step, and stops its timeout", async () => {
  const { run, review } = await reviewed();
  // It shows no time that will pass without anything happening.
  const waiting = (await good("readRun", `/runs/${run}`)).body;
  assert.deepEqual([waiting.deadline_at, typeof waiting.parked_at], [null, "string"]);
  await stage.moveClock("13 minutes");
  browser = await stage.holding(admin);
  await good("approveReview", `/reviews/${review.id}/approve`, {});
  await caller.waitForRun(run, 100_000);
  const { steps, reviews, ...over } = (await good("readRun", `/runs/${run}`)).body;
  const gate = steps.find(({ node }: any) => node === "gate");
  assert.equal(gate.started_at, reviews[0].created_at);
  assert.ok(gate.duration_ms >= 13 * 60_000, String(gate.duration_ms));
  assert.ok(Date.parse(reviews[0].decided_at) - Date.parse(reviews[0].created_at) >= 13 * 60_000);
  // Neither the queue nor the login has it.
  assert.equal(over.claimed_at, over.started_at);
  // The nodes that send nothing have their counts and times too, those before the wait from before it.
  const of = (id: string): any => over.nodes.find(({ node }: any) => node === id);
  assert.deepEqual(
    ["data", "list", "valid", "out"].map((id) => [of(id).status, of(id).records_total, of(id).records_valid]),
    [
      ["done", null, null],
      ["done", 10, 10],
      ["done", 10, 6],
      ["done", 10, null],
    ],
  );
  const asked = Date.parse(gate.started_at);
  assert.ok(Date.parse(of("data").started_at) >= Date.parse(over.claimed_at) - 1_000, JSON.stringify(over));
  assert.ok(Date.parse(of("valid").ended_at) <= asked + 1_000, JSON.stringify(over));
  assert.ok(Date.parse(of("out").started_at) >= asked + 13 * 60_000, JSON.stringify(over));
  // As after other pauses, which only the deadline shows.
  await stage.db.query("update run set deadline_at = deadline_at + interval '1 hour' where id = $1", [run]);
  assert.equal((await good("readRun", `/runs/${run}`)).body.claimed_at, over.claimed_at);
});

test("a run that fails in a node without requests names the node", async () => {
  const { body } = await caller.post("/blueprints/plain/trigger", { data: "no JSON" });
  await caller.waitForRun(body.id, 100_000);
  const run = (await good("readRun", `/runs/${body.id}`)).body;
  assert.deepEqual([run.status, run.steps, run.failed_node], ["failed", [], "list"]);
  assert.deepEqual(run.nodes.map(({ node, status }: any) => `${node} ${status}`).toSorted(), [
    "data done",
    "list stopped",
    "out stopped",
  ]);
});

test("a Blueprint's health counts its runs, their durations and records, in total and by day", async () => {
  const path = "/accounts/acme/blueprints/plain/health";
  const before = (await good("readBlueprintHealth", path)).body;
  for (const data of ['[{ "n": 1 }, { "n": 2 }]', '[{ "n": 3 }]', "no JSON"])
    await caller.waitForRun((await caller.post("/blueprints/plain/trigger", { data })).body.id, 100_000);
  const { by_day: days, ...total } = (await good("readBlueprintHealth", path)).body;
  const more = ["runs", "completed", "failed", "records"].map((each) => total[each] - before[each]);
  assert.deepEqual(more, [3, 2, 1, 3]);
  assert.ok(total.p50_ms > 0 && total.p50_ms <= total.p95_ms && total.since === null, JSON.stringify(total));
  const counted = days.reduce((sum: number, { runs }: any) => sum + runs, 0);
  assert.equal(counted, total.runs);
  assert.equal((await browser.send("GET", path.replace("plain", "none"))).status, 404);
});

test("a review's records with errors are listed from any place on, and left out all at once", async () => {
  const { run, review } = await reviewed();
  const ordinals = async (query: string) => {
    const { items } = (await good("listReviewRecords", `/reviews/${review.id}/records?${query}`)).body;
    return items.map(({ ordinal }: any) => ordinal);
  };
  assert.deepEqual(await ordinals("valid=false"), [0, 3, 6, 9]);
  assert.deepEqual(await ordinals("valid=false&from=1&limit=2"), [3, 6]);
  assert.deepEqual(await ordinals("valid=true&from=5"), [8]);
  assert.deepEqual(await ordinals("from=8"), [8, 9]);
  assert.deepEqual(await ordinals("valid=false&after=3"), [6, 9]);
  assert.deepEqual(await ordinals("after=6&from=1&limit=1"), [8]);
  const first = (await good("listReviewRecords", `/reviews/${review.id}/records?valid=false&limit=3`)).body;
  assert.deepEqual(await ordinals(`valid=false&cursor=${first.next_cursor}`), [9]);
  const both = await browser.send("GET", `/reviews/${review.id}/records?from=1&cursor=${first.next_cursor}`);
  assert.deepEqual([both.status, both.body.error.details[0].field], [422, "from"]);
  const changes = { edits: [{ ordinal: 3, data: { n: 4 } }], exclude: [1], exclude_invalid: true };
  const approved = (await good("approveReview", `/reviews/${review.id}/approve`, changes)).body;
  assert.deepEqual([approved.edited, approved.excluded], [1, 4]);
  await caller.waitForRun(run, 100_000);
  const result = await good("listResultRecords", `/runs/${run}/results/out/records`);
  assert.deepEqual(
    result.body.items.map(({ data }: any) => data.n),
    [2, 4, 4, 5, 7, 8],
  );
});

test("what a run gave is read from any place on, and downloaded as a file", async () => {
  const { body } = await caller.post("/blueprints/plain/trigger", {
    data: JSON.stringify(Array.from({ length: 300 }, (_, n) => ({ n, note: "=1+1" }))),
  });
  assert.equal(
    (await browser.send("GET", `/runs/${runs[2]}/results/out/records`)).status,
    409,
    "not completed",
  );
  await caller.waitForRun(body.id, 100_000);
  const path = `/runs/${body.id}/results/out`;
  const middle = await good("listResultRecords", `${path}/records?from=297&limit=2`);
  assert.deepEqual(middle.body, {
    total_records: 300,
    invalid_records: null,
    items: [297, 298].map((n) => ({ ordinal: n, data: { n, note: "=1+1" }, errors: [], is_valid: true })),
  });
  const end = await good("listResultRecords", `${path}/records?from=299`);
  assert.deepEqual([end.body.items.length, end.body.items[0].ordinal], [1, 299]);
  assert.deepEqual((await good("listResultRecords", `${path}/records?from=300`)).body.items, []);
  assert.equal((await browser.send("GET", `/runs/${body.id}/results/other/records`)).status, 404);
  const csv = await browser.send("GET", `${path}/download?format=csv`);
  assert.equal(csv.headers["content-type"], "text/csv; charset=utf-8");
  assert.match(String(csv.headers["content-disposition"]), /^attachment; filename="run_\w+-out\.csv"/);
  assert.equal(csv.headers["x-content-type-options"], "nosniff");
  const lines = csv.text.split("\r\n");
  assert.deepEqual(
    [lines[0], lines[300], lines.length],
    [`"n","note","is_valid","errors"`, `299,"'=1+1",true,`, 302],
  );
  assert.equal((await browser.send("GET", `${path}/download?format=ndjson`)).text.split("\n").length, 301);
  assert.equal((await browser.send("GET", `${path}/download?format=xlsx`)).text.slice(0, 2), "PK");
  assert.equal((await browser.send("GET", `${path}/download?format=html`)).status, 422);
});

test("runs are cancelled and purged, once, on record", async () => {
  const id = runs[2] ?? "";
  assert.equal((await browser.send("POST", `/runs/${id}/purge`)).status, 409, "it has not ended");
  await good("cancelRun", `/runs/${id}/cancel`);
  assert.equal((await browser.send("POST", `/runs/${id}/cancel`)).status, 409);
  await good("purgeRun", `/runs/${id}/purge`);
  assert.equal((await browser.send("POST", `/runs/${id}/purge`)).status, 409);
  const { body } = await good("readRun", `/runs/${id}`);
  assert.deepEqual([body.status, body.name, body.steps], ["cancelled", null, []]);
  assert.deepEqual(await stage.actions(id), ["run.cancel", "run.purge"]);
});

/** What an operation can't be asked without. */
const QUERIES: Readonly<Record<string, string>> = { downloadResult: "?format=ndjson", search: "?q=acme" };
/** The answers with the records that runs work with. */
const WITH_RECORDS = ["listReviewRecords", "readNodeSample", "readRunInput"];

test("no answer to a GET holds a secret, for any role", async () => {
  const reviews = await stage.db.query<{ id: string }>("select id from review limit 1");
  await stage.installation.apply("account: initech\ntwo_person: true");
  const typed = { documents: [{ file: "typed.yaml", text: "account: initech" }] };
  const proposed = await good("applyConfig", "/config/apply", typed);
  const waiting = await sendPlain(
    `${stage.service.url}/operator/v1/session/device`,
    "POST",
    { "Content-Type": "application/json", "X-CSRF-Token": "none" },
    JSON.stringify({ name: "ana@laptop" }),
  );
  const terms = { blueprint_key: "list-it", cron: "0 0 1 1 *", time_zone: "UTC" };
  await caller.put("/schedules/yearly", { ...terms, trigger: { credential_id: credential, data: CANARY } });
  const ids: Readonly<Record<string, string>> = {
    userCode: waiting.body.user_code,
    scheduleId: (await good("listSchedules", "/schedules")).body.items[0].id,
    // The one that was approved.
    runId: runs[0] ?? "",
    reviewId: reviews[0]?.id ?? "",
    proposalId: proposed.body.proposal.id,
    resultKey: "out",
    node: "look",
    refKey: "data",
    account: "acme",
    blueprintKey: "list-it",
    strategyId: "strat_acme",
    version: "1",
    chain: "installation",
    credentialId: credential,
    sessionId: (await good("listCredentialSessions", "/credential-sessions")).body.items[0].id,
  };
  const hashes = await stage.db.query<{ hash: string }>("select password_hash as hash from operator");
  const secrets = [
    ...hashes.map(({ hash }) => hash),
    key,
    waiting.body.device_code,
    browser.cookie.split("=")[1] ?? "",
    stage.signing.operators.totpKey(admin.id, Buffer.alloc(16)).toString("hex"),
  ];
  // test/documents/browser-evidence.pg.test.ts looks at the pixels of pictures, webhooks.pg.test.ts at what endpoints show.
  const isElsewhere = (id: string): boolean => /Picture|Webhook/.test(id);
  const asked = OPERATOR_OPERATIONS.filter(({ method, id }) => method === "get" && !isElsewhere(id));
  for (const operation of asked) {
    const path = operation.path.replace(/\{(\w+)\}/g, (_all, name: string) => ids[name] ?? "");
    const answer = await good(operation.id, `${path}${QUERIES[operation.id] ?? ""}`);
    for (const secret of secrets) assert.ok(!answer.text.includes(secret), operation.id);
    // Nothing else shows what runs work with.
    const own = WITH_RECORDS.includes(operation.id) ? `${CANARY}-in-data` : "\0";
    assert.ok(!answer.text.replaceAll(own, "").includes(CANARY), operation.id);
  }
});

test("operators at one review see each other until they leave or say nothing, and it keeps no purge up", async () => {
  const { run, review } = await reviewed();
  const other = await stage.holding(await stage.operator("reviewer"));
  const say = async (by: Browser, state: string) =>
    (await by.send("POST", `/reviews/${review.id}/presence`, { state })).body.others.map(
      (each: any) => each.is_editing,
    );
  assert.deepEqual([await say(browser, "viewing"), await say(other, "editing")], [[], [false]]);
  assert.deepEqual([await say(browser, "editing"), await say(other, "left")], [[true], []]);
  assert.deepEqual([await say(browser, "editing"), await say(other, "viewing")], [[], [true]]);
  await stage.db.query("update review_presence set since = since - interval '1 h', expires_at = app_now()");
  assert.deepEqual(await say(other, "viewing"), []);
  await good("cancelRun", `/runs/${run}/cancel`);
  await good("purgeRun", `/runs/${run}/purge`);
  assert.deepEqual(await stage.db.query("select 1 from review_presence"), []);
});

test("a credential is listed without its value, unlocked, and deleted forever", async () => {
  const part = credential.slice(5, 12).toUpperCase();
  const list = await good("listCredentials", `/credentials?account=acme&q=${part}`);
  assert.equal(list.body.items[0].id, credential);
  assert.equal((await good("listCredentials", "/credentials?q=%25")).body.items.length, 0);
  const sessions = await good("listCredentialSessions", "/credential-sessions");
  assert.equal(sessions.body.items[0].credential_id, credential);
  await good("unlockCredential", `/credentials/${credential}/unlock`);
  await good("deleteCredential", `/credentials/${credential}`);
  assert.equal((await browser.send("DELETE", `/credentials/${credential}`)).status, 404);
  const entries = (await stage.actions(credential)).filter((each) => !/submit|open|send/.test(each));
  assert.deepEqual(entries, ["credential.unlock", "credential.delete"]);
});
