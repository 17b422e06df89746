// docs/api.md#cancelling: `POST /blueprint-runs/{runId}/cancel`, of runs that write: what the target has seen agrees with the
// terminal state and the journal. Nothing is sent after a cancel is committed but what was under way, and that is recorded.
//
// LATCHKEY_CANCEL_RACES=240 npm test -- cancel-writes     the full number of races
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "../eventually.ts";
import { openCaller, type Caller } from "../caller.ts";
import { blueprint } from "../documents/bench.ts";
import { openTarget, type Target } from "../documents/target.ts";
import { historyOf, recordHistory } from "../flow/run-history.ts";
import { assertInvariants } from "../invariants.ts";
import { install, type Installation } from "../service.ts";

const RACES = Number(process.env["LATCHKEY_CANCEL_RACES"] ?? 24);
const AT_ONCE = 6;
const RECORDS = 6;
const TIMEOUT_MS = 100_000 + RACES * 2_000;
/** A machine ten times slower than ours. */
const PATIENCE_MS = 60_000;

let target: Target;
let installation: Installation & AsyncDisposable;
let caller: Caller;

const SENDS = `- { id: rows, type: input, refKey: rows, accepts: json }
- { id: lines, type: parse, from: rows, format: json }
- id: sent
  type: http
  for_each: lines
  request: { method: POST, url: "{TARGET}/orders", json: { run: "{{ $run.id }}", place: "{{ $index }}" } }
- { id: out, type: output, refKey: out, from: sent }`;
const ROWS = JSON.stringify(Array.from({ length: RECORDS }, (_, n) => ({ n })));

before(async () => {
  target = await openTarget();
  installation = await install();
  const document = blueprint("sends", SENDS, "hosts: ['{TARGET}']").replaceAll("{TARGET}", target.url);
  await installation.apply("account: acme\nrate_limit: off", document);
  await recordHistory(installation.database.db);
  const key = await installation.createKey("acme");
  const [api] = await Promise.all([installation.serve({}, ["api"]), installation.serve({}, ["worker"])]);
  caller = openCaller(api.url, key);
});

after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await target?.[Symbol.asyncDispose]();
});

const trigger = async (): Promise<string> =>
  (await caller.post("/blueprints/sends/trigger", { rows: ROWS })).body.id;

/** The places of the records that the target has got of a run, in the order in which they came. */
const placesOf = (run: string): readonly number[] =>
  target.seen("POST /orders").flatMap(({ body }) => {
    const order = JSON.parse(body) as { run: string; place: number };
    return order.run === run ? [order.place] : [];
  });

interface WriteRow {
  readonly ordinal: number;
  readonly status: string;
}

const writesOf = async (run: string): Promise<readonly WriteRow[]> =>
  await installation.database.db.query<WriteRow>(
    `select ordinal, status from run_write where run_id = $1 order by ordinal`,
    [run],
  );

/** The journal's writes, once none of them is open: the answer to the one that was under way has come. */
async function settledWritesOf(run: string): Promise<readonly WriteRow[]> {
  return await eventually(
    `the writes of ${run} are settled`,
    async () => {
      const writes = await writesOf(run);
      return writes.some(({ status }) => status === "started" || status === "in_doubt") ? undefined : writes;
    },
    PATIENCE_MS,
  );
}

const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_, place) => place);

/** One end; what the target saw is what the journal has; gives how the run ended. */
async function assertAgreed(run: string): Promise<string> {
  const { status } = (await caller.get(`/blueprint-runs/${run}/status`)).body;
  const terminal = (await historyOf(installation.database.db, run)).filter((state) =>
    /^(completed|failed|cancelled)\//.test(state),
  );
  assert.deepEqual(terminal, [`${status}/${status}`]);
  const writes = await settledWritesOf(run);
  const done = writes.filter((write) => write.status === "done").map(({ ordinal }) => ordinal);
  // In order, from the first on, none twice, and none that the journal does not have.
  assert.deepEqual(placesOf(run), upTo(done.length));
  assert.deepEqual(done, upTo(done.length));
  // What was begun and not sent any more is known to be so.
  assert.ok(writes.length <= done.length + 1);
  for (const write of writes) assert.ok(["done", "ruled_out"].includes(write.status), write.status);
  if (status === "completed") assert.equal(done.length, RECORDS);
  return status;
}

test(
  `${RACES} runs that write are cancelled around their end: the target saw what the terminal state and the journal say`,
  { timeout: TIMEOUT_MS },
  async (context) => {
    target.on("POST /orders", () => ({ json: {}, delayMs: Math.random() * 8 }));
    const seen = { cancelled: 0, completed: 0, inTheMiddle: 0, underWay: 0 };
    /** How long it takes at the moment from the last write to the end. */
    let lastMs = 10;
    const race = async (index: number): Promise<void> => {
      const run = await trigger();
      // In the middle of its writes, or around its end.
      const isLate = index % 2 === 0;
      const awaited = isLate ? RECORDS : index % RECORDS;
      const has = async () => (placesOf(run).length >= awaited ? true : undefined);
      await eventually(`${awaited} records are at the target`, has, PATIENCE_MS);
      if (isLate) await sleep(lastMs * Math.random() * 2);
      const answer = await caller.post(`/blueprint-runs/${run}/cancel`, undefined);
      const sentBefore = placesOf(run).length;
      assert.ok(answer.status === 200 || answer.status === 409, answer.text);
      if (isLate) lastMs *= answer.status === 200 ? 2 : 0.5;
      const status = await assertAgreed(run);
      // Too late means that the run had ended; else it is cancelled from this very answer on.
      assert.equal(status, answer.status === 200 ? "cancelled" : "completed");
      // The cancel was committed before its answer left: no intent was after it, and of one before it the request may come.
      const sentAfter = placesOf(run).length - sentBefore;
      assert.ok(sentAfter <= (answer.status === 200 ? 1 : 0), `${sentAfter} after the cancel`);
      if (status === "completed") seen.completed++;
      else seen.cancelled++;
      if (status === "cancelled" && placesOf(run).length % RECORDS > 0) seen.inTheMiddle++;
      seen.underWay += sentAfter;
    };
    for (let done = 0; done < RACES; done += AT_ONCE)
      await Promise.all(Array.from({ length: AT_ONCE }, async (_, index) => await race(done + index)));
    context.diagnostic(JSON.stringify(seen));
    assert.ok(seen.cancelled > 0 && seen.completed > 0 && seen.inTheMiddle > 0, JSON.stringify(seen));
    // Also a request that came late would be here by now.
    const { db } = installation.database;
    const [journal] = await db.query(
      `select count(*)::int as done from run_write where status = 'done' and node_id = 'sent'`,
    );
    assert.equal(target.seen("POST /orders").length, journal?.["done"]);
    await assertInvariants(installation);
  },
);

const CANCELS: Readonly<Record<string, (run: string) => Promise<unknown>>> = {
  "a cancel": async (run) =>
    assert.equal((await caller.post(`/blueprint-runs/${run}/cancel`, undefined)).status, 200),
  // Then nothing but the lease keeps the worker from sending more, until it looks by itself.
  "a cancel that nobody told the worker of": async (run) =>
    await installation.database.db.query(
      `update run set status = 'cancelled', progress_step = 'cancelled', ended_at = app_now(), lease_owner = null
       where id = $1`,
      [run],
    ),
};

for (const [what, cancel] of Object.entries(CANCELS)) {
  test(`the write under way at ${what} is in doubt until its answer comes, and no other is sent`, async () => {
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
    const from = target.seen("POST /orders").length;
    target.on("POST /orders", async (_seen, before) => {
      if (before > from) await answered;
      return { json: {} };
    });
    const run = await trigger();
    await eventually("the second is there", async () => placesOf(run)[1], PATIENCE_MS);
    await cancel(run);
    assert.deepEqual(await writesOf(run), [
      { ordinal: 0, status: "done" },
      { ordinal: 1, status: "in_doubt" },
    ]);
    answer();
    await eventually(
      "the worker has let go of it",
      async () =>
        installation.logs().includes(`"runId":"${run}","msg":"stopped a cancelled run"`) ? true : undefined,
      PATIENCE_MS,
    );
    assert.equal(await assertAgreed(run), "cancelled");
    assert.deepEqual(placesOf(run), [0, 1]);
  });
}
