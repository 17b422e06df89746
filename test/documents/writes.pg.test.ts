import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { until } from "../eventually.ts";
import { blueprint, dataOf, openBench, type Bench, type EndedRun } from "./bench.ts";
import type { Seen } from "./target.ts";
import { expectHeldJson } from "../cli/held-surface.ts";

// docs/blueprints.md#writes: one request per record, an intent before it and its outcome after it.

let bench: Bench;

const GET_ITEMS = `- { id: items, type: http, request: { url: "{TARGET}/items" }, records: items }`;
const OUT = `- { id: out, type: output, refKey: out, from: sent }`;
const send = (more = ""): string => `${GET_ITEMS}
- id: sent
  type: http
  for_each: items
  request:
    method: POST
    url: "{TARGET}/orders"
    headers: { Idempotency-Key: "{{ $token }}" }
    json: { number: "{{ number }}", place: "{{ $index }}" }
${more.replaceAll(/^/gm, "  ")}
${OUT}`;

before(async () => {
  bench = await openBench([]);
});

after(async () => await bench?.[Symbol.asyncDispose]());

let made = 0;
async function define(nodes: string): Promise<string> {
  const key = `writes-${made++}`;
  await bench.apply(blueprint(key, nodes, "hosts: ['{TARGET}']"));
  return key;
}

function items(count: number): void {
  const list = Array.from({ length: count }, (_, index) => ({ number: `n${index}` }));
  bench.target.on("GET /items", { json: { items: list } });
}

/** What the target got since, by record number. */
function sentSince(from: number, route = "POST /orders"): readonly { body: any; seen: Seen }[] {
  return bench.target
    .seen(route)
    .slice(from)
    .map((seen) => ({ body: JSON.parse(seen.body), seen }));
}

const count = (route = "POST /orders"): number => bench.target.seen(route).length;

async function writesOf(
  run: EndedRun | string,
): Promise<readonly { ordinal: number; status: string; attempts: number }[]> {
  const id = typeof run === "string" ? run : run.id;
  return await bench.installation.database.db.query(
    `select ordinal, status, attempts from run_write where run_id = $1 order by ordinal`,
    [id],
  );
}

async function parked(runId: string): Promise<void> {
  await until("it waits for the operator", async () => {
    const { body } = await bench.caller.get(`/blueprint-runs/${runId}/status`);
    if (body.progress_step === "awaiting_review") return true;
    assert.ok(["queued", "running"].includes(body.status), JSON.stringify(body));
    return false;
  });
}

test("each record is sent once, in order, with a token of its own, and gives itself with the status", async () => {
  items(5);
  bench.target.on("POST /orders", { status: 201, json: { ok: true } });
  const from = count();
  const run = await bench.run(await define(send()));
  const sent = sentSince(from);
  assert.deepEqual(
    sent.map(({ body }) => body),
    [0, 1, 2, 3, 4].map((place) => ({ number: `n${place}`, place })),
  );
  const tokens = new Set(sent.map(({ seen }) => seen.headers["idempotency-key"]));
  assert.equal(tokens.size, 5);
  for (const token of tokens) assert.match(String(token), /^[0-9a-f]{32}$/);
  assert.deepEqual(
    dataOf(run),
    [0, 1, 2, 3, 4].map((place) => ({ number: `n${place}`, status: 201 })),
  );
  assert.deepEqual(
    (await writesOf(run)).map(({ status }) => status),
    ["done", "done", "done", "done", "done"],
  );
});

test("`records` over each answer is what the node gives", async () => {
  items(3);
  bench.target.on("POST /orders", (seen) => ({
    json: { order: { id: `o-${JSON.parse(seen.body).number}` } },
  }));
  const run = await bench.run(await define(send("records: order")));
  assert.deepEqual(dataOf(run), [{ id: "o-n0" }, { id: "o-n1" }, { id: "o-n2" }]);
});

test("`concurrency` sends some at once and keeps the order of what they give", async () => {
  items(12);
  bench.target.on("POST /orders", (seen) => ({
    delayMs: 30 + 20 * (JSON.parse(seen.body).place % 3),
    json: {},
  }));
  const from = count();
  const run = await bench.run(await define(send("concurrency: 4")));
  assert.deepEqual(
    dataOf(run).map(({ number }) => number),
    Array.from({ length: 12 }, (_, index) => `n${index}`),
  );
  const most = Math.max(...sentSince(from).map(({ seen }) => seen.underWay));
  assert.ok(most > 1 && most <= 4, `${most} at once`);
});

test("a for_each that reads sends one request per record and keeps no journal of writes", async () => {
  items(3);
  bench.target.on("GET /detail", (seen) => ({ json: { is: seen.query.get("of") } }));
  const key = await define(`${GET_ITEMS}
- { id: sent, type: http, for_each: items, request: { url: "{TARGET}/detail", query: { of: "{{ number }}" } }, records: $ }
${OUT}`);
  const run = await bench.run(key);
  assert.deepEqual(dataOf(run), [{ is: "n0" }, { is: "n1" }, { is: "n2" }]);
  assert.deepEqual(await writesOf(run), []);
});

test("429, and 503 with Retry-After, say that nothing happened: the write is sent again with the same token", async () => {
  items(1);
  bench.target.on("POST /orders", (_seen, before) =>
    before === start
      ? { status: 429, headers: { "retry-after": "0" } }
      : before === start + 1
        ? { status: 503, headers: { "retry-after": "0" } }
        : { json: {} },
  );
  const start = count();
  const run = await bench.run(await define(send("retry: { attempts: 3, initial: 10ms }")));
  assert.equal(run.status.status, "completed");
  const sent = sentSince(start);
  assert.equal(sent.length, 3);
  assert.equal(new Set(sent.map(({ seen }) => seen.headers["idempotency-key"])).size, 1);
  assert.deepEqual(await writesOf(run), [{ ordinal: 0, status: "done", attempts: 3 }]);
});

test("a refusal ends the node: what was sent before stays, nothing after it is sent", async () => {
  items(5);
  bench.target.on("POST /orders", (seen) => ({
    status: JSON.parse(seen.body).place === 2 ? 422 : 200,
    json: {},
  }));
  const from = count();
  const run = await bench.run(await define(send()));
  assert.equal(run.status.status, "failed");
  assert.match(run.detail ?? "", /Node sent: POST .*\/orders, record 2 returned 422; expected 200 to 299/);
  assert.equal(count() - from, 3);
  assert.deepEqual(
    (await writesOf(run)).map(({ status }) => status),
    ["done", "done", "refused"],
  );
});

const unclear = {
  "a 500": { status: 500 },
  "a connection that breaks": { drop: true },
};
for (const [what, answer] of Object.entries(unclear)) {
  test(`after ${what} the write is looked up and, being there, not sent again`, async () => {
    items(3);
    const stored = new Map<string, number>();
    bench.target.on("POST /orders", (seen) => {
      const { number, place } = JSON.parse(seen.body);
      stored.set(number, (stored.get(number) ?? 0) + 1);
      return place === 1 ? answer : { json: {} };
    });
    bench.target.on("GET /orders", (seen) => ({
      json: { found: stored.has(seen.query.get("number") ?? "") ? [{}] : [] },
    }));
    const verify = `verify: { request: { url: "{TARGET}/orders", query: { number: "{{ number }}", token: "{{ $token }}" } }, when: $count(found) > 0 }`;
    const run = await bench.run(await define(send(verify)));
    assert.equal(run.status.status, "completed", run.detail ?? "");
    assert.deepEqual([...stored.values()], [1, 1, 1]);
    assert.deepEqual(dataOf(run)[1], { number: "n1", status: "found" });
  });
}

test("a write that was looked up and is not there is sent again", async () => {
  items(1);
  bench.target.on("POST /orders", (_seen, before) => (before === start ? { drop: true } : { json: {} }));
  bench.target.on("GET /orders", { status: 404 });
  const start = count();
  const verify = `verify: { request: { url: "{TARGET}/orders" }, when: "true" }`;
  const run = await bench.run(await define(send(verify)));
  assert.equal(run.status.status, "completed", run.detail ?? "");
  assert.equal(count() - start, 2);
});

test("`on_unknown: fail` fails the run and says what may have happened", async () => {
  items(2);
  bench.target.on("POST /orders", { drop: true });
  const from = count();
  const run = await bench.run(await define(send("on_unknown: fail")));
  assert.equal(run.status.status, "failed");
  assert.match(run.detail ?? "", /record 0 may have happened: the connection to .* failed/);
  assert.equal(count() - from, 1);
});

for (const happened of [true, false]) {
  test(`by default the run waits for the operator, who says that the write ${happened ? "happened" : "did not happen"}`, async () => {
    items(3);
    let broken = true;
    bench.target.on("POST /orders", (seen) =>
      broken && JSON.parse(seen.body).place === 1 ? { drop: true } : { json: {} },
    );
    const from = count();
    const { body } = await bench.trigger(await define(send()));
    await parked(body.id);
    broken = false;
    // It holds nothing: no lease, no place among the active runs.
    const [row] = await bench.installation.database.db.query(
      `select status, lease_owner, admitted_at from run where id = $1`,
      [body.id],
    );
    assert.deepEqual(row, { status: "running", lease_owner: null, admitted_at: null });
    const listed = await bench.installation.command("reviews", "list", "--run", body.id, "--json");
    expectHeldJson("reviews list", JSON.parse(listed.stdout));
    assert.deepEqual(
      JSON.parse(listed.stdout).items.map(({ node_id, ordinal }: any) => [node_id, ordinal]),
      [["sent", 1]],
    );
    const word = happened ? "--happened" : "--not-happened";
    const decided = await bench.installation.command("reviews", "write", body.id, "sent", "1", word);
    assert.equal(decided.code, 0, decided.stderr);
    // Once, even if several race.
    assert.equal((await bench.installation.command("reviews", "write", body.id, "sent", "1", word)).code, 1);
    const audited = await bench.installation.database.db.query<{ detail: string }>(
      `select detail from audit_entry where action = 'write.decide' and run_id = $1`,
      [body.id],
    );
    assert.deepEqual(
      audited.map(({ detail }) => JSON.parse(detail)),
      [{ node: "sent", record: 1, happened }],
    );
    const run = await bench.ended(body.id);
    assert.equal(run.status.status, "completed", run.detail ?? "");
    assert.deepEqual(
      sentSince(from).map(({ body: sent }) => sent.place),
      happened ? [0, 1, 2] : [0, 1, 1, 2],
    );
    assert.deepEqual(
      dataOf(run).map(({ status }) => status),
      [200, happened ? "found" : 200, 200],
    );
  });
}

test("parked time does not count towards the run's timeout", async () => {
  items(1);
  let broken = true;
  bench.target.on("POST /orders", () => (broken ? { drop: true } : { json: {} }));
  const key = await define(`${send()}`);
  await bench.apply(blueprint(key, send(), "hosts: ['{TARGET}']\ntimeout: 3s"));
  const { body } = await bench.trigger(key);
  await parked(body.id);
  broken = false;
  await new Promise((resolve) => setTimeout(resolve, 3_500));
  await bench.installation.command("reviews", "write", body.id, "sent", "--not-happened");
  assert.equal((await bench.ended(body.id)).status.status, "completed");
});

test("a single write without for_each is sent once and gives its answer", async () => {
  bench.target.on("POST /single", { json: { id: 7 } });
  const key = await define(`- id: sent
  type: http
  request: { method: POST, url: "{TARGET}/single", json: { token: "{{ $token }}" } }
  records: $
${OUT}`);
  const run = await bench.run(key);
  assert.deepEqual(dataOf(run), [{ id: 7 }]);
  assert.equal(count("POST /single"), 1);
});

test("nothing that could be sent counts as sent: an unreachable target is tried again, then the run fails", async () => {
  await bench.apply(
    blueprint(
      "gone",
      `- id: sent
  type: http
  request: { method: POST, url: "http://127.0.0.1:9/x", json: {} }
  records: $
  retry: { attempts: 2, initial: 10ms }
${OUT}`,
      "hosts: ['http://127.0.0.1:9']",
    ),
  );
  const run = await bench.run("gone");
  assert.equal(run.status.status, "failed");
  assert.match(run.detail ?? "", /after 2 attempts/);
  assert.deepEqual(await writesOf(run), [{ ordinal: 0, status: "refused", attempts: 2 }]);
});

test("`throttle` spaces the requests of all runs of the Blueprint together", async () => {
  items(5);
  bench.target.on("POST /orders", { json: {} });
  const key = await define(send("throttle: { requests: 10, per: 1s }\nconcurrency: 5"));
  const from = count();
  const startedAt = performance.now();
  const [first, second] = await Promise.all([bench.run(key), bench.run(key)]);
  assert.equal(first?.status.status, "completed");
  assert.equal(second?.status.status, "completed");
  const times = sentSince(from).map(({ seen }) => seen.atMs);
  assert.equal(times.length, 10);
  // Ten at 10 a second: nine gaps of 100 ms, so the last comes no sooner than that after the trigger, on any machine.
  assert.ok(Math.max(...times) - startedAt >= 9 * 100, "the last came too soon");
  // From one to the other it may be less: on a busy machine the first comes late.
  const tookMs = Math.max(...times) - Math.min(...times);
  assert.ok(tookMs >= (9 * 100) / 2, `${Math.round(tookMs)} ms`);
});

test("what does not fit together is refused by name and place", async () => {
  const refused = async (nodes: string): Promise<string> =>
    (await bench.refusals(blueprint("wrong", nodes, "hosts: ['{TARGET}']"))).join("\n");
  assert.match(await refused(send("paginate: { page: 1, param: p }\nrecords: $")), /be paginated/);
  assert.match(
    await refused(
      `${GET_ITEMS.replace("records: items", "records: items, verify: { request: { url: '{TARGET}/x' }, when: 'true' }")}\n- { id: out, type: output, refKey: out, from: items }`,
    ),
    /`verify` is only for writes/,
  );
  assert.match(
    await refused(
      `- { id: sent, type: http, request: { url: "{TARGET}/x?t={{ $token }}" }, records: $ }\n${OUT}`,
    ),
    /`\$token` exists only in writes/,
  );
  assert.match(
    await refused(
      `- { id: sent, type: http, request: { url: "{TARGET}/x" }, concurrency: 2, records: $ }\n${OUT}`,
    ),
    /`concurrency` belongs to `for_each`/,
  );
  assert.match(
    await refused(
      `- { id: text, type: http, request: { url: "{TARGET}/x" } }\n- { id: sent, type: http, for_each: text, request: { url: "{TARGET}/x" }, records: $ }\n${OUT}`,
    ),
    /for_each/,
  );
  assert.match(await refused(send("throttle: { requests: 1, per: soon }")), /`per` is a duration/);
  assert.match(await refused(send().replace("{TARGET}/orders", "http://127.0.0.1:9/x")), /127\.0\.0\.1:9/);
});
