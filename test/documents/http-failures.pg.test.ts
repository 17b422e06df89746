// docs/blueprints.md#http: `retry`, `timeout`, `max_bytes`, redirects; and what callers and operators are told of a failure.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import { blueprint, dataOf, openBench, type Bench } from "./bench.ts";
import { openTarget, to, type Target } from "./target.ts";

let bench: Bench;
let outside: Target;

const read = (path: string, rest = "", request = "") =>
  `- { id: read, type: http, request: { url: "{TARGET}${path}"${request} }, records: $${rest} }\n- { id: out, type: output, refKey: out, from: read }`;
const QUICK = "retry: { attempts: 3, initial: 10ms, max: 20ms }";

before(async () => {
  outside = await openTarget();
  const cases: Readonly<Record<string, string>> = {
    default: read("/x"),
    quick: read("/x", `, ${QUICK}`),
    once: read("/x", ", retry: { attempts: 1 }"),
    fixed: read("/x", ", retry: { attempts: 4, backoff: fixed, initial: 40ms, max: 1s }"),
    expected: read("/x", `, ${QUICK}, expect: { status: [503] }`),
    searches: read("/x", `, ${QUICK}, effect: read`, ", method: POST, json: { a: 1 }"),
    small: read("/x", `, ${QUICK}, max_bytes: 1000`),
    hurried: read("/x", `, timeout: 500ms, ${QUICK}`),
    paged_hurried: read("/x", `, timeout: 1s, ${QUICK}, paginate: { page: 1, param: page }`),
    two_hosts: read("/x"),
    two_lines: `- { id: first, type: http, milestone: fetching_it, request: { url: "{TARGET}/x" }, records: $, ${QUICK} }
- { id: second, type: http, request: { url: "{TARGET}/never" }, records: $ }
- { id: out, type: output, refKey: out, from: [first, second] }`,
  };
  bench = await openBench(
    Object.entries(cases).map(([key, nodes]) =>
      blueprint(
        key.replace("_", "-"),
        nodes,
        `hosts: ["{TARGET}"${key === "two_hosts" ? `, "${outside.url}"` : ""}]`,
      ),
    ),
  );
});
after(async () => {
  await bench?.[Symbol.asyncDispose]();
  await outside?.[Symbol.asyncDispose]();
});

const countX = (method = "GET") => bench.target.seen(`${method} /x`).length;

/** A run of one Blueprint, and how many requests its target saw meanwhile. */
async function runAgainst(key: string, method = "GET") {
  const before = countX(method);
  const startedMs = performance.now();
  const run = await bench.run(key);
  const seen = bench.target.seen(`${method} /x`).slice(before);
  return { run, requests: seen.length, seen, tookMs: performance.now() - startedMs };
}

/** The first `times` requests get a status, the rest `[]`. */
const failing = (
  status: number,
  times: number,
  headers: Readonly<Record<string, string>> = {},
  method = "GET",
) => {
  const before = countX(method);
  bench.target.on(`${method} /x`, (_seen, nth) =>
    nth < before + times ? { status, headers } : { json: [] },
  );
};

test("a read is tried three times on 429, 502, 503 and 504, and no other status is tried again", async () => {
  for (const status of [429, 502, 503, 504]) {
    failing(status, 2);
    const { run, requests } = await runAgainst("quick");
    assert.deepEqual([run.status.status, requests], ["completed", 3], String(status));
  }
  for (const status of [400, 401, 404, 408, 500, 501]) {
    failing(status, 1);
    const { run, requests } = await runAgainst("quick");
    assert.deepEqual([run.status.status, requests], ["failed", 1], String(status));
  }
  failing(503, 3);
  const { run, requests } = await runAgainst("quick");
  assert.deepEqual(
    [requests, run.detail],
    [3, `Node read: GET ${bench.target.url}/x returned 503; expected 200 to 299 (after 3 attempts).`],
  );
});

test("the retry key: one attempt means one, fixed waits the same each time, a POST that only reads is retried too", async () => {
  failing(503, 1);
  assert.equal((await runAgainst("once")).requests, 1);
  failing(503, 3);
  const { seen } = await runAgainst("fixed");
  const waits = seen.slice(1).map(({ atMs }, index) => atMs - (seen[index]?.atMs ?? 0));
  assert.equal(waits.length, 3);
  // Half of each wait is chance.
  assert.ok(
    waits.every((ms) => ms >= 18),
    waits.join(" "),
  );
  failing(503, 1, {}, "POST");
  assert.equal((await runAgainst("searches", "POST")).requests, 2);
  failing(503, 1);
  const expected = await runAgainst("expected");
  assert.equal(expected.requests, 1);
});

test("Retry-After is waited for", async () => {
  failing(429, 1, { "retry-after": "1" });
  const { run, seen } = await runAgainst("quick");
  assert.equal(run.status.status, "completed");
  assert.ok((seen[1]?.atMs ?? 0) - (seen[0]?.atMs ?? 0) >= 990);
});

test("a dropped connection is tried again", async () => {
  const before = countX();
  bench.target.on("GET /x", (_seen, nth) => (nth === before ? { drop: true } : { json: [] }));
  const { run, requests } = await runAgainst("quick");
  assert.deepEqual([run.status.status, requests], ["completed", 2], String(run.detail));
});

test("max_bytes counts the body, also a compressed one, and fails the node at once", async () => {
  bench.target.on("GET /x", { json: ["x".repeat(2_000)] });
  const { run, requests } = await runAgainst("small");
  assert.deepEqual([run.status.status, requests], ["failed", 1]);
  assert.match(String(run.detail), /^Node read: GET .*\/x: .*1,?000 bytes/);
  bench.target.on("GET /x", {
    bytes: gzipSync(JSON.stringify(["x".repeat(100_000)])),
    headers: { "content-encoding": "gzip" },
  });
  assert.equal((await runAgainst("small")).run.status.status, "failed");
  bench.target.on("GET /x", {
    bytes: gzipSync('[{"a":1}]'),
    headers: { "content-encoding": "gzip", "content-type": "application/json" },
  });
  assert.deepEqual(dataOf((await runAgainst("small")).run), [{ a: 1 }]);
});

test("the timeout is that of one request: a slow answer is tried again, and many quick ones may take longer", async () => {
  const before = countX();
  bench.target.on("GET /x", (_seen, nth) => ({ json: [], delayMs: nth === before ? 5_000 : 0 }));
  const once = await runAgainst("hurried");
  assert.deepEqual([once.run.status.status, once.requests], ["completed", 2], String(once.run.detail));
  bench.target.on("GET /x", { json: [], delayMs: 5_000 });
  const slow = await runAgainst("hurried");
  assert.match(
    String(slow.run.detail),
    /^Node read: GET .*sent no complete response within 500 ms \(after 3 attempts\)\.?$/,
  );
  assert.equal(slow.requests, 3);
  assert.equal(
    slow.run.status.error.message,
    "The run did not complete. The operator's dashboard shows why.",
  );
  bench.target.on("GET /x", ({ query }) => ({
    json: Number(query.get("page")) <= 12 ? [{ a: query.get("page") }] : [],
    delayMs: 120,
  }));
  const paged = await runAgainst("paged-hurried");
  assert.equal(paged.run.status.status, "completed", String(paged.run.detail));
  assert.equal(dataOf(paged.run).length, 12);
});

test("redirects are followed within the hosts, at most five, and nowhere else", async () => {
  bench.target.on("GET /x", to("/y?z=1"));
  bench.target.on("GET /y", to(`${bench.target.url}/z`, 307));
  bench.target.on("GET /z", { json: [{ at: "z" }] });
  assert.deepEqual(dataOf(await bench.run("default")), [{ at: "z" }]);
  bench.target.on("GET /z", to("/x"));
  const loop = await runAgainst("default");
  assert.equal(loop.run.status.status, "failed");
  assert.match(String(loop.run.detail), /^Node read: GET .*redirect/);
  assert.ok(loop.requests <= 3);

  outside.on("GET /y", { json: [{ at: "outside" }] });
  bench.target.on("GET /x", to(`${outside.url}/y`));
  const { run, requests } = await runAgainst("quick");
  assert.deepEqual([run.status.status, requests, outside.all.length], ["failed", 1, 0]);
  assert.match(String(run.detail), /^Node read: GET /);
  assert.deepEqual(dataOf(await bench.run("two-hosts")), [{ at: "outside" }]);
});

test("a failing node: the run fails with a fixed sentence; node and reason stand in the run's row, the data nowhere", async () => {
  bench.target.on("GET /x", { status: 500, text: "stack trace of s3cr3t-data" });
  const { run } = await runAgainst("two-lines");
  assert.deepEqual(run.status, {
    ...run.status,
    status: "failed",
    progress_step: "failed",
    error: {
      code: "execution_failed",
      message: "The run did not complete. The operator's dashboard shows why.",
    },
  });
  assert.equal(run.detail, `Node first: GET ${bench.target.url}/x returned 500; expected 200 to 299.`);
  assert.equal(bench.target.seen("GET /never").length, 0);
  const { db } = bench.installation.database;
  const steps = await db.query<{ node: string; status: string; detail: string }>(
    "select node_id as node, status, error_detail as detail from run_step where run_id = $1",
    [run.id],
  );
  assert.deepEqual(steps, [{ node: "first", status: "failed", detail: String(run.detail) }]);
  const results = await bench.caller.get(`/blueprint-runs/${run.id}/results`);
  assert.deepEqual([results.status, Object.keys(results.body)], [409, ["error"]]);
  bench.target.on("GET /x", { text: '[{"token": s3cr3t-data' });
  const broken = await runAgainst("default");
  assert.match(
    String(broken.run.detail),
    /^Node read: GET .*\/x: the response \(text\/plain\) is not JSON\.$/,
  );
  assert.ok(!bench.installation.logs().includes("s3cr3t-data"));
});
