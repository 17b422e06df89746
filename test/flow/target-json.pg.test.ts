// JSON of a target that is small on the wire and large in memory: a run fails and names the limit, and the process lives.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openCaller, type Caller } from "../caller.ts";
import { listen } from "../hosted/hosted-setup.ts";
import { install, type Installation, type ServiceProcess } from "../service.ts";

const RUNS = 24;
const HEAP_MIB = 512;

/** 140 MB in memory; and what is just within the limit, 60 MB, twice where it goes through an expression. */
const BODIES: Readonly<Record<string, Buffer>> = {
  "/over": Buffer.from(`[${"[],".repeat(3_250_000)}[]]`),
  "/within": Buffer.from(`[${"{},".repeat(499_990)}{}]`),
};
const FAILURE = /has more than 1000000 values/;

/** Each way to read a target's JSON whole, by the name of its Blueprint. */
const WAYS: Readonly<Record<string, string>> = {
  records: `{ id: rows, type: http, request: { url: TARGET/over }, records: "$[[0..1]]" }`,
  each: `{ id: list, type: http, request: { url: TARGET/one }, records: $ }
  - { id: rows, type: http, for_each: list, request: { url: TARGET/over }, records: "$[0]" }`,
  file: `{ id: file, type: http, request: { url: TARGET/over }, save: file }
  - { id: rows, type: parse, from: file, format: json, records: "$[0]" }`,
  text: `{ id: text, type: http, request: { url: TARGET/over } }
  - { id: rows, type: parse, from: text, format: json }`,
  within: `{ id: rows, type: http, request: { url: TARGET/within }, records: "{ 'n': $count($) }" }`,
};

let target: Awaited<ReturnType<typeof listen>>;
let installation: Installation & AsyncDisposable;
let service: ServiceProcess;
let caller: Caller;

before(async () => {
  target = await listen((request, response) => {
    response.setHeader("content-type", "application/json");
    response.end(BODIES[request.url ?? ""] ?? '[{"n":1}]');
  });
  installation = await install({ LATCHKEY_LOG_LEVEL: "warn" });
  await installation.apply(
    "account: acme\nrate_limit: off",
    ...Object.entries(WAYS).map(
      ([name, nodes]) =>
        `blueprint: ${name}\naccount: acme\nhosts: [${target.origin}]\nnodes:\n  - ${nodes.replaceAll("TARGET", target.origin)}\n  - { id: out, type: output, refKey: out, from: rows }`,
    ),
  );
  service = await installation.serveProcess({ NODE_OPTIONS: `--max-old-space-size=${HEAP_MIB}` });
  caller = openCaller(service.url, await installation.createKey("acme"));
});
after(async () => {
  await installation?.[Symbol.asyncDispose]();
  target?.close();
});

async function runOf(blueprint: string): Promise<{ readonly status: string; readonly text: string }> {
  const { status, body, text } = await caller.post(`/blueprints/${blueprint}/trigger`, {});
  assert.equal(status, 202, text);
  const ended = await caller.waitForRun(body.id, 120_000);
  // Callers see a fixed sentence; operators, the node and the reason.
  const [row] = await installation.database.db.query<{ detail: string | null }>(
    "select error_detail as detail from run where id = $1",
    [body.id],
  );
  return { status: ended.body.status, text: row?.detail ?? "" };
}

test(`${RUNS} runs at once of a target that answers 9.75 MB of brackets leave the process alive`, async () => {
  const ended = await Promise.all(Array.from({ length: RUNS }, async () => await runOf("records")));
  for (const { status, text } of ended) {
    assert.equal(status, "failed");
    assert.match(text, FAILURE);
  }
  assert.equal(service.child.exitCode, null);
});

test("as do runs of as many values as there may be, which complete", async () => {
  const ended = await Promise.all(Array.from({ length: RUNS / 3 }, async () => await runOf("within")));
  assert.deepEqual([...new Set(ended.map(({ status }) => status))], ["completed"]);
  assert.equal(service.child.exitCode, null);
});

for (const way of ["each", "file", "text"])
  test(`however it is read: ${way}`, async () => {
    const { status, text } = await runOf(way);
    assert.equal(status, "failed", text);
    assert.match(text, FAILURE);
  });
