// `until`: a read that asks again until its answer will do. How long it waits, and what becomes of its run, is in test/runs/polls.
import assert from "node:assert/strict";
import { test } from "node:test";
import { check, dataOf, runNode, target } from "./node-context.ts";

const TIMES = { every: "1s", for: "10m" };
const job = (origin: string, until: object, more: object = {}) => ({
  type: "http",
  request: { url: `${origin}/job` },
  until: { ...TIMES, ...until },
  ...more,
});

test("it asks until the expression over the JSON body is true, and gives that answer's records", async (t) => {
  let left = 2;
  const { origin, send, urls } = await target(t, (_request, response) => {
    const body = left-- > 0 ? { state: "queued" } : { state: "done", items: [{ n: 1 }, { n: 2 }] };
    response.setHeader("content-type", "application/json").end(JSON.stringify(body));
  });
  const asked: unknown[] = [];
  const askAgain = async (times: object) => {
    asked.push(times);
    return true;
  };
  const { flow } = await runNode(job(origin, { when: "state = 'done'" }, { records: "items" }), {
    send,
    context: { askAgain },
  });
  assert.deepEqual(await dataOf(flow), [{ n: 1 }, { n: 2 }]);
  assert.equal(urls.length, 3);
  assert.deepEqual(asked, [
    { everyMs: 1_000, forMs: 600_000 },
    { everyMs: 1_000, forMs: 600_000 },
  ]);
});

const ENDS = [
  [{ status: [200] }, { status: 202, body: "" }, "expected status 200"],
  [{ text: "ready" }, { status: 200, body: "not yet" }, "expected text `ready` is not in the response"],
  [
    { css: "a.download" },
    { status: 200, body: "<p>working</p>" },
    "expected element `a.download` is not in the response",
  ],
  [{ when: "done" }, { status: 200, body: "" }, "expected a JSON response"],
] as const;
for (const [until, before, phrase] of ENDS) {
  test(`by ${Object.keys(until).join()}: it ends with such an answer, or fails with what the last one was`, async (t) => {
    let left = 1;
    const { origin, send } = await target(t, (_request, response) => {
      const isLast = left-- <= 0;
      response.statusCode = isLast ? 200 : before.status;
      const last = "when" in until ? `{"done":true}` : `<a class=download>ready</a>`;
      response.setHeader("content-type", "text/html").end(isLast ? last : before.body);
    });
    const document = job(origin, until, { save: "file" });
    const { flow } = await runNode(document, { send });
    assert.equal(flow?.kind === "value" && flow.value.form, "file");
    left = 1;
    await assert.rejects(runNode(document, { send, context: { askAgain: async () => false } }), {
      message: `GET ${origin}/job: \`until\` was not met for 10m; the last answer (${before.status}, text/html, ${before.body.length} bytes): ${phrase}.`,
    });
  });
}

test("an answer that `expect` does not take fails the node at once: the job itself failed", async (t) => {
  const { origin, send, urls } = await target(t, (_request, response) =>
    response.end(JSON.stringify({ state: "failed" })),
  );
  const document = job(origin, { when: "state = 'done'" }, { expect: { json: "state != 'failed'" } });
  await assert.rejects(runNode(document, { send }), /expected `state != 'failed'` to be true/);
  assert.equal(urls.length, 1);
});

test("of pages the first is asked again, and the others once", async (t) => {
  let left = 1;
  const { origin, send, urls } = await target(t, (_request, response, url) => {
    const page = Number(url.searchParams.get("page"));
    const isReady = page > 1 || left-- <= 0;
    response.end(
      JSON.stringify({ isReady: page === 1 && isReady, items: isReady && page < 3 ? [{ page }] : [] }),
    );
  });
  const document = job(
    origin,
    { when: "isReady" },
    { records: "items", paginate: { page: 1, param: "page" } },
  );
  const { flow } = await runNode(document, { send });
  assert.deepEqual(await dataOf(flow), [{ page: 1 }, { page: 2 }]);
  assert.deepEqual(urls, ["/job?page=1", "/job?page=1", "/job?page=2", "/job?page=3"]);
});

test("a condition that is none fails the node", async (t) => {
  const { origin, send } = await target(t, (_request, response) => response.end(`{"state":"done"}`));
  await assert.rejects(
    runNode(job(origin, { when: "state" }), { send }),
    /until: `when` evaluates to a string; write a comparison/,
  );
});

const at = (until: object, more: object = {}) =>
  check(job("http://127.0.0.1:1", until, more)).map(({ path, message }) => [path.join("."), message]);
const DONE = { when: "done" };

test("mistakes are refused where they stand", () => {
  assert.deepEqual(at(DONE), []);
  assert.match(String(at({})), /^until,`until` needs a condition for the last answer/);
  assert.match(
    String(at(DONE, { request: { method: "POST", url: "http://a.example/" } })),
    /^until,a write is sent once/,
  );
  assert.match(
    String(at(DONE, { for_each: "rows" })),
    /^until,a node with `for_each` sends one request for each record; use a `loop`/,
  );
  assert.match(String(at({ ...DONE, every: "10ms" })), /^until\.every,`every` is a duration of 1s or more/);
  assert.match(String(at({ ...DONE, every: 5 })), /^until\.every/);
  assert.match(String(at({ ...DONE, for: "8d" })), /^until\.for,`for` is a duration from 1s to 7d/);
  assert.match(String(at({ ...DONE, every: "20m" })), /^until\.every,`every` is longer than `for`/);
  assert.match(String(at({ css: "a[" })), /^until\.css,`a\[` is not a CSS selector/);
  assert.match(
    String(at(DONE, { parse: { format: "csv" } })),
    /^until\.when,`when` is an expression over a JSON body/,
  );
  assert.match(
    String(at(DONE, { max_bytes: 200_000_000, save: "file" })),
    /^max_bytes,only streamed responses/,
  );
  assert.deepEqual(at({ status: [200] }, { max_bytes: 200_000_000, save: "file" }), []);
});
