// L2: what leads to writes at other systems wants a second factor, which then counts for half an hour.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually, PATIENCE_MS } from "../eventually.ts";
import { openCaller, type Caller } from "../caller.ts";
import { startTarget, type Target } from "../flow/target.ts";
import type { Browser, OperatorAnswer } from "./browser.ts";
import { openOperatorStage, type OperatorStage, type Someone } from "./stage.ts";
import { signAgain } from "../sign-again.ts";

let stage: OperatorStage;
let target: Target;
let caller: Caller;
let operator: Someone;

const account = (setting?: string) => `account: acme${setting ? `\nreview_step_up: ${setting}` : ""}`;
const list = `  - { id: data, type: input, refKey: data }
  - { id: list, type: parse, from: data, format: json }`;
const look = (from: string) => `  - { id: look, type: review, from: ${from}, title: Look at it }`;
const send = (from: string) =>
  `  - { id: send, type: http, for_each: ${from}, effect: write, request: { method: POST, url: "${target.url}/pay" } }`;
const out = (from: string) => `  - { id: out, type: output, refKey: out, from: ${from} }`;
const blueprint = (key: string, nodes: readonly string[]) =>
  `blueprint: ${key}\naccount: acme\nhosts: ["${target.url}"]\nnodes:\n${nodes.join("\n")}`;

before(async () => {
  target = await startTarget(() => ({ body: {} }));
  stage = await openOperatorStage();
  await stage.installation.apply(
    account(),
    blueprint("reads", [list, look("list"), out("look")]),
    blueprint("writes", [list, look("list"), send("look"), out("look")]),
    blueprint("wrote", [list, send("list"), look("list"), out("look")]),
  );
  caller = openCaller(stage.service.url, await stage.installation.createKey("acme"));
  operator = await stage.operator("operator");
  await stage.giveSecondFactor(operator);
});

after(async () => {
  await stage?.[Symbol.asyncDispose]();
  await target?.close();
});

/** A browser whose second factor was given so many minutes ago; null: never. */
async function since(minutes: number | null, who: Someone = operator): Promise<Browser> {
  const browser = await stage.holding(who, minutes !== null);
  await stage.db.query(
    `update operator_session set stepped_up_at = app_now() - $2::int * interval '1 minute'
     where operator_id = $1 and stepped_up_at is not null and stepped_up_at > app_now() - interval '1 minute'`,
    [who.id, minutes ?? 0],
  );
  await signAgain(stage.db, "operator_session");
  return browser;
}

function wanted(answer: OperatorAnswer, code = "step_up_required"): void {
  assert.equal(answer.status, 403, answer.text);
  assert.equal(answer.body.error.details[0].code, code);
}

const given = (answer: OperatorAnswer): void => assert.ok(answer.status < 300, answer.text);
const inputs = { inputs: { data: '[{"n":1}]' } };
const start = async (browser: Browser, key: string): Promise<OperatorAnswer> =>
  await browser.send("POST", `/accounts/acme/blueprints/${key}/runs`, inputs);

const runsOf = async (): Promise<number> =>
  Number((await stage.db.query<{ count: string }>("select count(*) from run"))[0]?.count);

test("starting a Blueprint that writes wants a code of the last half an hour; one that reads wants none", async () => {
  const before_ = await runsOf();
  wanted(await start(await since(null), "writes"));
  wanted(await start(await since(31), "writes"));
  assert.equal(await runsOf(), before_, "nothing was started");
  given(await start(await since(29), "writes"));
  given(await start(await since(null), "reads"));
  // What is dangerous itself wants it within five minutes, as before.
  wanted(await (await since(29)).send("POST", "/config/apply", { files: [] }));
});

test("so does running one again", async () => {
  const { body } = await caller.post("/blueprints/writes/trigger", { data: "[]" });
  given(await (await since(1)).send("POST", `/runs/${body.id}/cancel`));
  await caller.waitForRun(body.id, 100_000);
  const again = async (browser: Browser): Promise<OperatorAnswer> =>
    await browser.send("POST", `/runs/${body.id}/run-again`, { may_write: true });
  wanted(await again(await since(null)));
  given(await again(await since(29)));
});

test("somebody without a second factor is told to set one up", async () => {
  const other = await stage.operator("operator");
  wanted(await start(await since(null, other), "writes"), "second_factor_missing");
  given(await start(await since(null, other), "reads"));
});

test("saying whether a write happened wants one", async () => {
  const path = "/runs/run_none/writes/send/0/decide";
  wanted(await (await since(31)).send("POST", path, { happened: true }));
  assert.equal((await (await since(29)).send("POST", path, { happened: true })).status, 404);
});

/** The open review of a new run. */
async function review(key: string): Promise<string> {
  const { body } = await caller.post(`/blueprints/${key}/trigger`, { data: '[{"n":1}]' });
  return await eventually(
    "a review was opened",
    async () => {
      const rows = await stage.db.query<{ id: string }>("select id from review where run_id = $1", [body.id]);
      return rows[0]?.id;
    },
    PATIENCE_MS,
  );
}

test("a review wants one where the Blueprint writes after it; the account may want it always, or never", async () => {
  const decide = async (key: string, minutes: number | null): Promise<OperatorAnswer> =>
    await (await since(minutes)).send("POST", `/reviews/${await review(key)}/approve`, {});
  wanted(await decide("writes", null));
  wanted(await decide("writes", 31));
  given(await decide("writes", 29));
  given(await decide("reads", null));
  // A write that the review does not read from may come after it.
  wanted(await decide("wrote", null));
  await stage.installation.apply(account("always"));
  wanted(await decide("reads", null));
  given(await decide("reads", 29));
  await stage.installation.apply(account("never"));
  given(await decide("writes", null));
  await stage.installation.apply(account("before_writes"));
  const id = await review("writes");
  wanted(await (await since(null)).send("POST", `/reviews/${id}/reject`, { reason: "no" }));
  assert.deepEqual(await stage.actions(id), [], "nothing was decided");
});
