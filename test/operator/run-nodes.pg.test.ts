// What the page of a run asks about its nodes, and how runs are found: by part of a name, by their error, beside a good run.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { indexRuns } from "#actions/upkeep/index-runs.ts";
import { eventually, PATIENCE_MS } from "../eventually.ts";
import { openCaller, type Caller } from "../caller.ts";
import type { Browser, OperatorAnswer } from "./browser.ts";
import { goodAnswer } from "./good-answer.ts";
import { openOperatorStage, type OperatorStage } from "./stage.ts";

const BLUEPRINT = `blueprint: orders
account: acme
metadata: [{ name: customer }]
nodes:
  - { id: data, type: input, refKey: data }
  - { id: rows, type: parse, from: data, format: json }
  - { id: valid, type: validate, from: rows, rules: [{ assert: n % 3 > 0, field: n, message: Not by three }] }
  - { id: never, type: map, from: valid, when: "false", fields: { n: n } }
  - { id: out, type: output, refKey: out, from: valid }
  - { id: none, type: output, refKey: none, from: never }`;

let stage: OperatorStage;
let browser: Browser;
let viewer: Browser;
let caller: Caller;
const runs: Record<string, string> = {};

before(async () => {
  stage = await openOperatorStage();
  await stage.installation.apply("account: acme\nname: Acme Inc.", BLUEPRINT);
  caller = openCaller(stage.service.url, await stage.installation.createKey("acme"));
  browser = await stage.holding(await stage.operator("operator"), false);
  viewer = await stage.holding(await stage.operator("viewer"), false);
  const ten = JSON.stringify(Array.from({ length: 10 }, (_, n) => ({ n })));
  for (const [name, data] of [
    ["good", ten],
    ["bad", '[{"n":1}'],
    ["worse", '[{"n":1},{"n":2}'],
  ] as const) {
    const { status, text, body } = await caller.post("/blueprints/orders/trigger", {
      data,
      run_name: `Invoices of Hofbauer Logistik (${name})`,
      customer: "Müller & Söhne KG",
    });
    assert.equal(status, 202, text);
    runs[name] = body.id;
    await caller.waitForRun(body.id, 100_000);
  }
});

after(async () => await stage?.[Symbol.asyncDispose]());

const good = async (id: string, path: string): Promise<OperatorAnswer> => await goodAnswer(browser, id, path);

test("a node's first records are shown, or those with errors, as far as they are stored", async () => {
  const of = async (node: string, query = ""): Promise<any> =>
    (await good("readNodeSample", `/runs/${runs["good"]}/nodes/${node}/records${query}`)).body;
  const first = await of("out", "?limit=2");
  assert.deepEqual([first.is_stored, first.items.map((each: any) => each.ordinal)], [true, [0, 1]]);
  const wrong = await of("out", "?invalid=true&limit=3");
  assert.deepEqual(
    wrong.items.map(({ ordinal, data, errors }: any) => [ordinal, data.n, errors[0].message]),
    [0, 3, 6].map((n) => [n, n, "Not by three"]),
  );
  assert.deepEqual(await of("rows"), { is_stored: false, items: [] });
  assert.equal((await viewer.send("GET", `/runs/${runs["good"]}/nodes/out/records`)).status, 403);
});

test("a list says whose a run is, and how many records with errors a completed one has passed on", async () => {
  const { items } = (await good("listRuns", "/runs")).body;
  const of = (name: string): any => items.find(({ id }: any) => id === runs[name]);
  assert.deepEqual([of("good").customer, of("good").records_with_errors], ["Müller & Söhne KG", 4]);
  assert.equal(of("bad").records_with_errors, null);
  assert.equal((await good("readRun", `/runs/${runs["good"]}`)).body.records_with_errors, 4);
});

test("an input is shown to roles that may see records", async () => {
  const { body } = await good("readRunInput", `/runs/${runs["bad"]}/inputs/data`);
  assert.deepEqual([body.text, body.size_bytes, body.is_cut], ['[{"n":1}', 8, false]);
  assert.equal((await browser.send("GET", `/runs/${runs["bad"]}/inputs/other`)).status, 404);
  assert.equal((await viewer.send("GET", `/runs/${runs["bad"]}/inputs/data`)).status, 403);
});

test("a failed run is compared with the last good one, node by node; a skipped node has no counts", async () => {
  const { body } = await good("compareRun", `/runs/${runs["bad"]}/comparison`);
  assert.equal(body.with.id, runs["good"]);
  const valid = body.nodes.find(({ node }: any) => node === "valid");
  assert.deepEqual([valid.records, valid.records_before, valid.errors_before], [0, 10, 4]);
  assert.ok(!body.nodes.some(({ node }: any) => node === "never"));
  const first = await good("compareRun", `/runs/${runs["good"]}/comparison`);
  assert.deepEqual(first.body, { with: null, nodes: [] });
  const read = (await good("readRun", `/runs/${runs["good"]}`)).body;
  assert.equal(read.nodes.find(({ node }: any) => node === "never").status, "skipped");
});

/** The ids that a search finds, once it finds this many. */
async function found(text: string, count: number): Promise<readonly string[]> {
  return await eventually(
    `${text} is found`,
    async () => {
      const { body } = await good("search", `/search?q=${encodeURIComponent(text)}`);
      const ids = body.runs.map(({ id }: any) => id);
      return ids.length >= count ? ids : undefined;
    },
    PATIENCE_MS,
  );
}

test("a run is found by part of its name, of a metadata value, in any case, and by its id", async () => {
  const all = [runs["worse"], runs["bad"], runs["good"]];
  assert.deepEqual(await found("HOFBAUER", 3), all, "the newest first");
  assert.deepEqual(await found("öhne k", 3), all);
  assert.deepEqual(await found("(good)", 1), [runs["good"]]);
  assert.deepEqual(await found(runs["bad"] ?? "", 1), [runs["bad"]]);
  const { body } = await good("listRuns", "/runs?q=hofbauer&status=failed");
  assert.deepEqual(
    body.items.map(({ id }: any) => id),
    [runs["worse"], runs["bad"]],
  );
  assert.deepEqual(body.items[0].metadata, { customer: "Müller & Söhne KG" });
  assert.match(body.items[0].failure_detail, /rows/);
  assert.deepEqual((await good("listRuns", "/runs?q=nobody")).body.items, []);
});

test("documents and accounts are found by roles that may see them", async () => {
  const { body } = await good("search", "/search?q=ORD");
  assert.deepEqual(
    body.others.map(({ kind, id, account }: any) => [kind, id, account]),
    [["blueprint", "orders", "acme"]],
  );
  assert.deepEqual((await good("search", "/search?q=acme%20inc")).body.others[0].id, "acme");
});

test("failures that differ only in numbers are one group, which leads to its runs", async () => {
  for (const [name, line] of Object.entries({ bad: 7, worse: 1_234 }))
    await stage.db.query("update run set error_detail = $2 where id = $1", [
      runs[name],
      `Node rows: line ${line} is not JSON.`,
    ]);
  const { items } = (await good("listFailures", "/failures?account=acme")).body;
  assert.deepEqual([items.length, items[0].runs, items[0].last_run_id], [1, 2, runs["worse"]]);
  assert.deepEqual(
    [items[0].error, items[0].last_detail],
    ["Node rows: line # is not JSON.", "Node rows: line 1234 is not JSON."],
  );
  assert.deepEqual(items[0].customers, ["Müller & Söhne KG"]);
  const ofBlueprint = async (name: string): Promise<number> =>
    (await good("listFailures", `/failures?blueprint=${name}`)).body.items.length;
  assert.deepEqual([await ofBlueprint("orders"), await ofBlueprint("none")], [1, 0]);
  const query = new URLSearchParams({
    error: items[0].error,
    failure: items[0].failure,
    blueprint: "orders",
  });
  const { body } = await good("listRuns", `/runs?${query.toString()}`);
  assert.deepEqual(
    body.items.map(({ id }: any) => id),
    [runs["worse"], runs["bad"]],
  );
});

test("a run whose text could not be stored fails that look, and the next one finds it", async () => {
  const { db } = stage;
  await db.query("alter table run_search add constraint refused check (false) not valid");
  await db.query("delete from run_search where run_id = $1", [runs["bad"]]);
  await assert.rejects(indexRuns({ db }, 0), /refused/);
  await db.query("alter table run_search drop constraint refused");
  await indexRuns({ db }, 0);
  const { body } = await good("search", "/search?q=(bad)");
  assert.deepEqual(
    body.runs.map(({ id }: any) => id),
    [runs["bad"]],
  );
});

test("a purged run is found no more", async () => {
  const admin = await stage.operator("admin");
  await stage.giveSecondFactor(admin);
  const purging = await stage.holding(admin);
  assert.equal((await purging.send("POST", `/runs/${runs["good"]}/purge`)).status, 204);
  const rows = await stage.db.query("select 1 from run_search where run_id = $1", [runs["good"]]);
  assert.deepEqual(rows, []);
  assert.deepEqual((await good("search", "/search?q=(good)")).body.runs, []);
  assert.deepEqual((await good("readRun", `/runs/${runs["good"]}`)).body.nodes, []);
});
