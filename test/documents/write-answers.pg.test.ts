// What the answer to a write says of it: done, refused, or nobody knows. A write that was done is never recorded as refused.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually, PATIENCE_MS } from "../eventually.ts";
import { blueprint, dataOf, openBench, type Bench } from "./bench.ts";
import { to, type Answer } from "./target.ts";
import { expectHeldJson } from "../cli/held-surface.ts";

let bench: Bench;
before(async () => {
  bench = await openBench([]);
  bench.target.on("GET /ticket/7", { html: "<title>Ticket</title><p class=filed>Filed" });
  bench.target.on("GET /form", { html: "<form id=new><p class=error>No title" });
  bench.target.on("GET /away", { status: 503, headers: { "retry-after": "1" } });
  bench.target.on("GET /gone", { status: 404 });
});
after(async () => await bench?.[Symbol.asyncDispose]());

let made = 0;

/** What became of one write: the run's end, or where it waits, and the write as it is on record. */
async function write(answer: Answer, keys: string, more = "") {
  bench.target.on("POST /tickets", answer);
  const key = `answers-${made++}`;
  const node = `- { id: sent, type: http, request: { method: POST, url: "{TARGET}/tickets", form: { title: One } }${keys} }`;
  await bench.apply(
    blueprint(
      key,
      `${node}\n- { id: rows, type: parse, from: sent, format: csv }\n- { id: out, type: output, refKey: out, from: rows }`,
      `hosts: ['{TARGET}']\n${more}`,
    ),
  );
  const before = bench.target.seen("POST /tickets").length;
  const { body } = await bench.trigger(key);
  const run: string = body.id;
  const state = await settled(run);
  const [row] = await bench.installation.database.db.query<{ status: string; detail: string | null }>(
    "select status, detail from run_write where run_id = $1",
    [run],
  );
  const times = bench.target.seen("POST /tickets").length - before;
  return { run, state, status: row?.status, why: row?.detail ?? null, times };
}

/** `completed`, `failed: …`, or `waits`. */
async function settled(run: string): Promise<string> {
  return await eventually(
    "it has ended, or waits",
    async () => {
      const { body } = await bench.caller.get(`/blueprint-runs/${run}/status`);
      if (body.status === "completed") return "completed";
      if (body.status === "failed") return `failed: ${(await bench.ended(run)).detail}`;
      return body.progress_step === "awaiting_review" ? "waits" : undefined;
    },
    PATIENCE_MS,
  );
}

type Case = readonly [
  name: string,
  answer: Answer,
  keys: string,
  expected: { readonly status: string; readonly state: RegExp; readonly why?: RegExp },
];
const done = { status: "done", state: /^completed$/ };
const refused = (state: RegExp) => ({ status: "refused", state });
const doubt = (why: RegExp) => ({ status: "in_doubt", state: /^waits$/, why });
const FILED = "expect: { status: [302], url: /ticket/ }";

const CASES: readonly Case[] = [
  ["a redirect is what it says", to("/ticket/7"), `, follow: false, ${FILED}`, done],
  [
    "a redirect to the form is not",
    to("/form"),
    `, follow: false, ${FILED}`,
    doubt(/^expected an address with/),
  ],
  [
    "a redirect to the form is the no that the document names",
    to("/form"),
    `, follow: false, ${FILED}, refused: { url: /form }`,
    refused(/sent: POST \S+: the target refused it \(302\)\.$/),
  ],
  [
    "a redirect that was followed is no answer to the write",
    to("/ticket/7"),
    ", expect: { status: [302] }",
    doubt(/^the target returned 200; expected 302$/),
  ],
  ["nor is what the next page is", to("/gone"), "", doubt(/^the target returned 404; expected 200 to 299$/)],
  ["nor that it asks for patience", to("/away"), "", doubt(/^the target returned 503$/)],
  ["nor that it leads elsewhere", to("http://other.example/"), "", doubt(/redirected to other\.example/)],
  ["nor that it leads on and on", to("/tickets", 307), "", doubt(/redirected more than \d+ times/)],
  [
    "an answer that can't be read",
    { headers: { "content-encoding": "zstd" }, text: "x" },
    "",
    doubt(/other than gzip, deflate, br/),
  ],
  ["a page that is followed to", to("/ticket/7"), ", expect: { css: p.filed, url: /ticket/ }", done],
  [
    "a text that is not there",
    { text: "ok" },
    ", expect: { text: filed }",
    doubt(/^expected text `filed` is not/),
  ],
  ["a 4xx is the target's no", { status: 422 }, "", refused(/returned 422; expected 200 to 299\.$/)],
  ["but not a 408", { status: 408 }, "", doubt(/^the target returned 408/)],
  [
    "a 200 with errors, named by an expression",
    { json: { errors: [1] } },
    ', refused: { json: "$exists(errors)" }',
    refused(/refused it \(200\)/),
  ],
  [
    "one of several answers, by what stands in the page",
    { html: "<p class=error>No title" },
    ", refused: [{ status: [409] }, { status: [200], css: p.error, text: title }]",
    refused(/refused it \(200\)/),
  ],
  ["what `refused` names only in part", { text: "ok" }, ", refused: { status: [200], text: error }", done],
  [
    "an answer that can't be held against the document",
    { json: { a: 1 } },
    ', expect: { json: "a" }',
    doubt(/`json` evaluates to a number; write a comparison/),
  ],
  [
    "an answer that is not JSON",
    { text: "<html>" },
    ', expect: { json: "a = 1" }',
    doubt(/^expected a JSON response$/),
  ],
];
for (const [name, answer, keys, expected] of CASES) {
  test(`${name}: ${expected.status}`, async () => {
    const found = await write(answer, keys);
    assert.equal(found.status, expected.status, JSON.stringify(found));
    assert.match(found.state, expected.state);
    if (expected.why) assert.match(found.why ?? "", expected.why);
    // The one that sends itself on is sent on by the gate, which keeps its body.
    if (!name.includes("on and on")) assert.equal(found.times, 1, "it is sent once");
  });
}

test("`verify` decides before a 4xx does", async () => {
  const keys = ', verify: { request: { url: "{TARGET}/found" }, when: there }';
  bench.target.on("GET /found", { json: { there: true } });
  const there = await write({ status: 409 }, keys);
  assert.deepEqual([there.state, there.status, there.times], ["completed", "done", 1]);
  bench.target.on("GET /found", { json: { there: false } });
  const absent = await write({ status: 409 }, keys);
  assert.match(absent.state, /returned 409/);
  assert.deepEqual([absent.status, absent.times], ["ruled_out", 1]);
  // Named as the target's no: nothing is left to look up.
  const asked = bench.target.seen("GET /found").length;
  const named = await write({ status: 409 }, `${keys}, refused: { status: [409] }`);
  assert.deepEqual([named.status, bench.target.seen("GET /found").length], ["refused", asked]);
});

test("a version from before keeps its meaning: what `expect` does not take is refused", async () => {
  const before = await write(to("/ticket/7"), ", expect: { status: [302] }", "edition: 1\n");
  assert.match(before.state, /^failed: .*returned 200; expected 302\.$/);
  assert.equal(before.status, "refused");
});

test("doubts of one node in many runs are listed as one, and decided together", async () => {
  const keys = ", expect: { text: filed }";
  bench.target.on("POST /tickets", { text: "ok" });
  await bench.apply(
    blueprint(
      "many",
      `- { id: sent, type: http, request: { method: POST, url: "{TARGET}/tickets" }${keys} }
- { id: rows, type: parse, from: sent, format: csv }
- { id: out, type: output, refKey: out, from: rows }`,
      "hosts: ['{TARGET}']",
    ),
  );
  const runs: string[] = [];
  for (let index = 0; index < 3; index++) {
    const { body } = await bench.trigger("many");
    runs.push(body.id);
    assert.equal(await settled(body.id), "waits");
  }
  const command = async (...words: string[]) => await bench.installation.command(...words);
  const grouped = await command("reviews", "writes", "--account", "acme", "--blueprint", "many");
  assert.match(
    grouped.stdout,
    /acme +many +sent +3 +3 +[-\d]+ [:\d]+ UTC +expected text `filed` is not in the response +POST http\S+\/tickets$/m,
  );
  expectHeldJson("reviews writes", JSON.parse((await command("reviews", "writes", "--json")).stdout));
  const asked = ["reviews", "decide", "acme", "many", "sent"];
  const unsure = await command(...asked);
  assert.match(unsure.stderr, /Give either --happened or --not-happened/);
  const wrong = await command("reviews", "decide", "acme", "many", "snt", "--happened");
  assert.deepEqual([wrong.code, /No write of node snt/.test(wrong.stderr)], [1, true]);
  const decided = await command(...asked, "--happened");
  assert.equal(decided.code, 0, decided.stderr);
  assert.match(decided.stdout, /^3 writes of 3 runs count as done; they are not sent again\.$/m);
  const sent = bench.target.seen("POST /tickets").length;
  for (const run of runs) assert.equal(await settled(run), "completed");
  assert.equal(bench.target.seen("POST /tickets").length, sent);
  const entries = await bench.installation.database.db.query(
    "select 1 from audit_entry where action = 'write.decide' and subject_id = any ($1)",
    [runs],
  );
  assert.equal(entries.length, 3);
  assert.deepEqual(dataOf(await bench.ended(runs[0] ?? "")), []);
});

test("mistakes in what an answer is held against are refused by their place, and a write that leaves it open is warned of", async () => {
  const of = async (keys: string): Promise<readonly string[]> =>
    (
      await bench.refusals(
        blueprint(
          "wrong",
          `- { id: sent, type: http, request: { url: "{TARGET}/x" }${keys} }\n- { id: out, type: output, refKey: out, from: sent }`,
          "hosts: ['{TARGET}']",
        ),
      )
    ).map((line) => line.replace(/^\d+:\d+ /, ""));
  const post = ", effect: write";
  assert.match(
    (await of(", records: $, refused: { status: [409] }")).join(),
    /nodes\[0\]\.refused `refused` is only for writes/,
  );
  assert.match(
    (await of(`${post}, records: $, refused: { css: "[" }`)).join(),
    /refused\.css `\[` is not a CSS selector/,
  );
  assert.match((await of(`${post}, records: $, refused: {}`)).join(), /nodes\[0\]\.refused/);
  assert.match(
    (await of(', records: $, expect: { css: "[" }')).join(),
    /expect\.css `\[` is not a CSS selector/,
  );
  assert.match((await of(', records: $, expect: { json: "a = " }')).join(), /expect\.json/);
});
