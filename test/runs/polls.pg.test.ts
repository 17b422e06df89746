// A read that asks until its answer will do (`until`) holds nothing between two asks that are far apart, asks for as long as it says and no
// longer, whichever worker carries it, and ends with its run.
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { moveClock } from "../clock.ts";
import { eventually } from "../eventually.ts";
import { untilDead } from "../processes.ts";
import { openCaller, type Caller } from "../caller.ts";
import { blueprint } from "../documents/bench.ts";
import { openTarget, type Target } from "../documents/target.ts";
import { assertInvariants } from "../invariants.ts";
import { install, type RunningService } from "../service.ts";
import { testInAll } from "../tiers.ts";

const PATIENCE_MS = 60_000;

let target: Target;
let installation: Awaited<ReturnType<typeof install>>;
let key: string;
let service: RunningService;
let caller: Caller;
/** How many answers of a run come before the one that will do. */
let pending = 0;
let movedS = 0;

const job = (id: string, until: string): string =>
  blueprint(
    id,
    `- { id: job, type: http, request: { url: "{TARGET}/${id}" }, until: ${until}, records: items }
- { id: out, type: output, refKey: out, from: job }`,
    "hosts: ['{TARGET}']\ntimeout: 20s",
  );

before(async () => {
  target = await openTarget();
  installation = await install();
  const documents = [
    "account: acme\nname: Acme\nconcurrency: 1",
    job("slow", `{ when: "state = 'done'", every: 40s, for: 2m }`),
    job("quick", `{ when: "state = 'done'", every: 1s, for: 20s }`),
    blueprint(
      "free",
      `- { id: given, type: input, refKey: given, default: "[]" }
- { id: rows, type: parse, from: given, format: json }
- { id: out, type: output, refKey: out, from: rows }`,
    ),
  ];
  await installation.apply(...documents.map((text) => text.replaceAll("{TARGET}", target.url)));
  key = await installation.createKey("acme");
  for (const id of ["slow", "quick"])
    target.on(`GET /${id}`, () =>
      pending-- > 0 ? { json: { state: "queued" } } : { json: { state: "done", items: [{ number: "n0" }] } },
    );
  await serve();
});
afterEach(async () => await assertInvariants(installation));
after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await target?.[Symbol.asyncDispose]();
});

async function serve(): Promise<void> {
  service = await installation.serve();
  caller = openCaller(service.url, key);
}

/** From now on it is so many seconds later than it was. */
async function later(seconds: number): Promise<void> {
  movedS += seconds;
  await moveClock(installation.database.db, `${movedS} seconds`);
}

async function trigger(id: string): Promise<string> {
  const { status, text, body } = await caller.post(`/blueprints/${id}/trigger`, {});
  assert.equal(status, 202, text);
  return body.id;
}

const completes = async (id: string): Promise<void> =>
  assert.equal((await caller.waitForRun(id, PATIENCE_MS)).body.status, "completed");

interface Row {
  readonly holdsNothing: boolean;
  readonly epoch: number;
  readonly lostLeases: number;
  readonly detail: string | null;
  readonly asks: number | null;
  readonly wakes: boolean | null;
}

async function rowOf(id: string): Promise<Row> {
  const [row] = await installation.database.db.query<Row>(
    `select parked_at is not null and admitted_at is null and lease_owner is null and ended_at is null as "holdsNothing",
       lease_epoch as epoch, lost_leases as "lostLeases", error_detail as detail, asks, wakes_at is not null as wakes
     from run left join run_poll on run_poll.run_id = run.id where run.id = $1`,
    [id],
  );
  assert.ok(row);
  return row;
}

async function setLostLeases(id: string, count: number): Promise<void> {
  await installation.database.db.query("update run set lost_leases = $2 where id = $1", [id, count]);
}

/** The target was asked so often by one run, which holds nothing now. */
async function waits(id: string, asks: number, seen: number): Promise<void> {
  await eventually(
    `it waits after ${asks} asks`,
    async () => {
      const row = await rowOf(id);
      return (row.holdsNothing && row.asks === asks) || undefined;
    },
    PATIENCE_MS,
  );
  assert.equal(target.seen("GET /slow").length, seen);
}

test("between two asks a run holds no place, loses no time, and goes on under another worker when its time has come", async () => {
  const before = target.seen("GET /slow").length;
  pending = 2;
  const run = await trigger("slow");
  await waits(run, 1, before + 1);
  // The account has one place, and it is free.
  await completes(await trigger("free"));
  const { body: shown } = await caller.get(`/blueprint-runs/${run}/status`);
  assert.deepEqual([shown.status, shown.progress_step], ["running", "running"]);
  await service.end();
  await serve();
  await later(39);
  await completes(await trigger("free"));
  assert.equal(target.seen("GET /slow").length, before + 1, "it is not time yet");
  await setLostLeases(run, 1);
  await later(2);
  await waits(run, 2, before + 2);
  assert.equal((await rowOf(run)).lostLeases, 0, "an answer is progress");
  await later(41);
  // Longer than its timeout.
  await completes(run);
  assert.equal(target.seen("GET /slow").length, before + 3);
  const results = await caller.get(`/blueprint-runs/${run}/results?deliveryMethod=direct`);
  assert.deepEqual(results.body.results.out.records[0].data, { number: "n0" });
});

test("`for` counts from the first answer, whichever worker got it, and the last answer is told", async () => {
  const before = target.seen("GET /slow").length;
  pending = 100;
  const run = await trigger("slow");
  await waits(run, 1, before + 1);
  await service.end();
  await serve();
  await later(41);
  await waits(run, 2, before + 2);
  await later(85);
  const { body } = await caller.waitForRun(run, PATIENCE_MS);
  assert.equal(body.status, "failed");
  assert.equal(target.seen("GET /slow").length, before + 3, "once more when its time was over");
  assert.match(
    (await rowOf(run)).detail ?? "",
    /^Node job: GET .*\/slow: `until` was not met for 2m; the last answer \(200, application\/json, \d+ bytes\): expected `state = 'done'` to be true\.$/,
  );
});

test("a run that is cancelled between two asks ends at once, and asks no more", async () => {
  const before = target.seen("GET /slow").length;
  pending = 100;
  const run = await trigger("slow");
  await waits(run, 1, before + 1);
  const { body } = await caller.post(`/blueprint-runs/${run}/cancel`, {});
  assert.equal(body.status, "cancelled");
  await later(41);
  await eventually("its time is taken away", async () => !(await rowOf(run)).wakes || undefined, PATIENCE_MS);
  await completes(await trigger("free"));
  assert.equal(target.seen("GET /slow").length, before + 1);
});

test("a short wait is waited in place", async () => {
  pending = 2;
  const run = await trigger("quick");
  await completes(run);
  const { epoch, asks } = await rowOf(run);
  assert.deepEqual([target.seen("GET /quick").length, epoch, asks], [3, 1, 2]);
});

for (const [point, asked] of [
  ["run.before_park", 4],
  ["run.after_park", 3],
] as const) {
  testInAll(
    "a restart between two asks",
    `killed at ${point}, a run asks again when its time has come, and for no longer in all`,
    {},
    async () => {
      const before = target.seen("GET /slow").length;
      await service.end();
      pending = asked - 1;
      const dying = await installation.serveProcess({ LATCHKEY_FAILPOINTS: `${point}=kill` });
      caller = openCaller(dying.url, key);
      const run = await trigger("slow");
      await untilDead(dying);
      await serve();
      const left = asked - 2;
      await waits(run, left, before + left);
      await later(41);
      await waits(run, left + 1, before + left + 1);
      await later(41);
      await completes(run);
      assert.equal(target.seen("GET /slow").length, before + asked);
    },
  );
}

testInAll(
  "what a suspect is (flow/poison)",
  "a run in quarantine waits in its place, and comes back beside no other",
  {},
  async () => {
    const before = target.seen("GET /slow").length;
    pending = 100;
    const run = await trigger("slow");
    await waits(run, 1, before + 1);
    await setLostLeases(run, 2);
    await later(41);
    await eventually("it asks", async () => (await rowOf(run)).asks === 2 || undefined, PATIENCE_MS);
    const { holdsNothing, lostLeases } = await rowOf(run);
    assert.deepEqual([holdsNothing, lostLeases], [false, 2]);
    assert.equal((await caller.post(`/blueprint-runs/${run}/cancel`, {})).body.status, "cancelled");
  },
);
