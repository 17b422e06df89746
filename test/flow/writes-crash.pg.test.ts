import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { untilDead } from "../processes.ts";
import { eventually } from "../eventually.ts";
import { openCaller } from "../caller.ts";
import { blueprint } from "../documents/bench.ts";
import { openTarget, type Target } from "../documents/target.ts";
import { assertInvariants } from "../invariants.ts";
import { install, type ServiceProcess } from "../service.ts";
import { inTier, testInAll } from "../tiers.ts";

// A write is sent at most once, wherever the worker dies: what the target has seen decides. The second of three records is
// where it happens, on one and on two further restarts.

const RECORDS = 3;
const AT = 1;

let target: Target;
let installation: Awaited<ReturnType<typeof install>>;
let key: string;
let stored: string[] = [];
/** When the first write of a test came. */
let firstMs = Infinity;

function store(seen: { readonly body: string }): void {
  firstMs = Math.min(firstMs, Date.now());
  stored.push(seen.body);
}

const nodes = (
  more: string,
) => `- { id: items, type: http, request: { url: "{TARGET}/items" }, records: items }
- { id: made, type: map, from: items, fields: { number: number, at: $millis() } }
- id: sent
  type: http
  for_each: made
  request: { method: POST, url: "{TARGET}/orders", json: { number: "{{ number }}", token: "{{ $token }}", at: "{{ at }}" } }
  ${more}
- { id: out, type: output, refKey: out, from: sent }`;

before(async () => {
  target = await openTarget();
  installation = await install();
  const hosts = `hosts: ['${target.url}']`;
  const documents = [
    blueprint("asks", nodes("on_unknown: review"), hosts),
    blueprint(
      "verifies",
      nodes(
        `verify: { request: { url: "{TARGET}/orders", query: { token: "{{ $token }}" } }, when: "$count(found) > 0" }`,
      ),
      hosts,
    ),
  ].map((text) => text.replaceAll("{TARGET}", target.url));
  await installation.apply("account: acme\nname: Acme", ...documents);
  key = await installation.createKey("acme");
  target.on("GET /items", {
    json: { items: Array.from({ length: RECORDS }, (_, index) => ({ number: `n${index}` })) },
  });
  target.on("POST /orders", (seen) => {
    store(seen);
    return { json: {} };
  });
  target.on("GET /orders", (seen) => ({
    json: { found: stored.filter((body) => JSON.parse(body).token === seen.query.get("token")) },
  }));
});

beforeEach(() => {
  stored = [];
  firstMs = Infinity;
});

afterEach(async () => await assertInvariants(installation));

after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await target?.[Symbol.asyncDispose]();
});

/** Each record once, under one token; the records that were fixed before the first write are those that were sent. */
function assertOnce(): void {
  const numbers = stored.map((body) => JSON.parse(body).number);
  assert.deepEqual(
    numbers.toSorted((a, b) => a.localeCompare(b)),
    ["n0", "n1", "n2"],
  );
  // Recomputed after the crash, the later records would bear the time of the restart.
  const times = stored.map((body) => Number(JSON.parse(body).at));
  assert.ok(Math.max(...times) <= firstMs, `${times.join(", ")}, and the first was sent at ${firstMs}`);
}

const POINTS = [
  "write.before_intent",
  "write.after_intent",
  "write.after_effect",
  "write.after_outcome",
] as const;

const CASES = POINTS.flatMap((point) => (["verifies", "asks"] as const).map((way) => [point, way] as const));
/** A request that was not sent, and one that was; a look at the target, and a question to the operator. */
const isRepresentative = ([point, way]: (typeof CASES)[number]): boolean =>
  (point === "write.after_intent" && way === "verifies") ||
  (point === "write.after_effect" && way === "asks");

for (const [point, way] of inTier(CASES, isRepresentative)) {
  test(`killed at ${point}, a Blueprint that ${way} sends every record exactly once`, async () => {
    const dying = await installation.serveProcess({ LATCHKEY_FAILPOINTS: `${point}=kill:${AT + 1}` });
    const { body } = await openCaller(dying.url, key).post(`/blueprints/${way}/trigger`, {});
    await untilDead(dying);
    const service = await installation.serveProcess();
    const caller = openCaller(service.url, key);
    const isAsked = way === "asks" && (point === "write.after_intent" || point === "write.after_effect");
    if (isAsked) {
      await eventually("it waits for the operator", async () => {
        const status = await caller.get(`/blueprint-runs/${body.id}/status`);
        return status.body.progress_step === "awaiting_review" ? true : undefined;
      });
      const word = point === "write.after_effect" ? "--happened" : "--not-happened";
      const { code, stderr } = await installation.command(
        "reviews",
        "write",
        body.id,
        "sent",
        String(AT),
        word,
      );
      assert.equal(code, 0, stderr);
    }
    const { body: ended } = await caller.waitForRun(body.id);
    assert.equal(ended.status, "completed");
    assertOnce();
    const writes = await installation.database.db.query<{ status: string }>(
      "select status from run_write where run_id = $1 order by ordinal",
      [body.id],
    );
    assert.deepEqual(
      writes.map(({ status }) => status),
      ["done", "done", "done"],
    );
    await service.end("SIGKILL");
  });
}

test("a worker that dies after each write ends no run as poison: a write that is done is progress", async () => {
  const { db } = installation.database;
  let run = "";
  for (let life = 0; life < RECORDS; life++) {
    const dying = await installation.serveProcess({ LATCHKEY_FAILPOINTS: "write.after_outcome=kill" });
    if (run === "") run = (await openCaller(dying.url, key).post("/blueprints/asks/trigger", {})).body.id;
    await untilDead(dying);
    const [row] = await db.query(`select lost_leases as lost from run where id = $1`, [run]);
    assert.deepEqual([stored.length, row], [life + 1, { lost: 0 }]);
  }
  const service = await installation.serveProcess();
  const { body: ended } = await openCaller(service.url, key).waitForRun(run);
  assert.equal(ended.status, "completed");
  assert.equal(new Set(stored.map((body) => JSON.parse(body).number)).size, RECORDS);
  assert.equal(stored.length, RECORDS);
  await service.end("SIGKILL");
});

test("a write that each worker dies of is poison, and the operator sees that it may have happened", async () => {
  const { db } = installation.database;
  const serve = async (): Promise<ServiceProcess> =>
    await installation.serveProcess({ LATCHKEY_FAILPOINTS: "write.after_intent=kill" });
  const dying = await serve();
  const { id: run } = (await openCaller(dying.url, key).post("/blueprints/verifies/trigger", {})).body;
  await untilDead(dying);
  // As if a second worker had died of it. The third is a process of its own: there the write is looked up, is not there, and is
  // begun again, which is no progress.
  await db.query("update run set lost_leases = lost_leases + 1 where id = $1", [run]);
  const service = await serve();
  const { body: ended } = await openCaller(service.url, key).waitForRun(run);
  assert.equal(ended.status, "failed");
  const [row] = await db.query(`select error_kind as kind from run where id = $1`, [run]);
  assert.deepEqual([row, stored.length], [{ kind: "interrupted" }, 0]);
  const listed = async (): Promise<readonly unknown[]> => {
    const { stdout } = await installation.command("reviews", "list", "--run", run, "--json");
    return JSON.parse(stdout).items.map(({ kind, node_id, ordinal, run_ended }: any) => [
      kind,
      node_id,
      ordinal,
      run_ended,
    ]);
  };
  // An answer that is still under way would settle it.
  assert.deepEqual(await listed(), []);
  for (const [table, id] of [
    ["run", "id"],
    ["run_step", "run_id"],
    ["run_write", "run_id"],
  ]) {
    await db.query(
      `update ${table} set started_at = started_at - interval '1 minute', ended_at = ended_at - interval '1 minute'
       where ${id} = $1`,
      [run],
    );
  }
  assert.deepEqual(await listed(), [["write", "sent", 0, "failed"]]);
  const decide = async () =>
    await installation.command("reviews", "write", run, "sent", "0", "--not-happened");
  const { code, stdout, stderr } = await decide();
  assert.equal(code, 0, stderr);
  assert.match(stdout, /Recorded that it did not happen; its run has already ended \(failed\)\./);
  assert.equal((await decide()).code, 1, "once");
  assert.deepEqual(await listed(), []);
  const audited = await db.query<{ detail: string }>(
    `select detail from audit_entry where action = 'write.decide' and run_id = $1`,
    [run],
  );
  assert.deepEqual(
    audited.map(({ detail }) => JSON.parse(detail)),
    [{ node: "sent", record: 0, happened: false }],
  );
  const [after] = await db.query(`select status, lease_owner as owner from run where id = $1`, [run]);
  assert.deepEqual(after, { status: "failed", owner: null });
  await service.end("SIGKILL");
});

for (const point of ["run.before_park", "run.after_park"] as const) {
  const name = `killed at ${point}, the run waits for the operator all the same`;
  testInAll("killed when it parks for a review (flow/review-crash)", name, {}, async () => {
    let isBroken = true;
    target.on("POST /orders", (seen) => {
      store(seen);
      return isBroken ? { drop: true } : { json: {} };
    });
    const dying = await installation.serveProcess({ LATCHKEY_FAILPOINTS: `${point}=kill` });
    const { body } = await openCaller(dying.url, key).post("/blueprints/asks/trigger", {});
    await untilDead(dying);
    isBroken = false;
    const service = await installation.serveProcess();
    const caller = openCaller(service.url, key);
    await eventually("it waits for the operator", async () => {
      const status = await caller.get(`/blueprint-runs/${body.id}/status`);
      return status.body.progress_step === "awaiting_review" ? true : undefined;
    });
    await eventually("no worker holds it", async () => {
      const [row] = await installation.database.db.query("select lease_owner from run where id = $1", [
        body.id,
      ]);
      return row?.["lease_owner"] === null ? true : undefined;
    });
    await installation.command("reviews", "write", body.id, "sent", "0", "--happened");
    assert.equal((await caller.waitForRun(body.id)).body.status, "completed");
    assertOnce();
    await service.end("SIGKILL");
  });
}

test("a drain lets a write that was sent finish, and its outcome is kept", async () => {
  let underWay: () => void = () => {};
  const reached = new Promise<void>((resolve) => (underWay = resolve));
  target.on("POST /orders", (seen) => {
    store(seen);
    underWay();
    return { json: {}, delayMs: stored.length === 1 ? 1_500 : 0 };
  });
  const first = await installation.serveProcess();
  const { body } = await openCaller(first.url, key).post("/blueprints/asks/trigger", {});
  await reached;
  assert.equal(await first.end("SIGTERM"), 0);
  const second = await installation.serveProcess();
  assert.equal((await openCaller(second.url, key).waitForRun(body.id)).body.status, "completed");
  assertOnce();
  await second.end("SIGKILL");
});
