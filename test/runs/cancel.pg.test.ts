import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { after, afterEach, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "../eventually.ts";
import { connect, openCaller, type ApiAnswer, type Caller } from "../caller.ts";
import { openEvents } from "../events.ts";
import { historyOf, recordHistory } from "../flow/run-history.ts";
import { ledger, LEDGER_LOGIN, ledgerDocuments, startTarget, type Target } from "../flow/target.ts";
import { install, type RunningService } from "../service.ts";

/** docs/api.md#cancelling: `POST /blueprint-runs/{runId}/cancel`. */

const RACES = 240;
const AT_ONCE = 12;

let target: Target;
let installation: Awaited<ReturnType<typeof install>>;
let api: RunningService;
let key: string;
let caller: Caller;
let credential: string;

const ROWS = `blueprint: rows
account: acme
nodes:
  - { id: rows, type: input, refKey: rows }
  - { id: parsed, type: parse, from: rows, format: json, milestone: parsing }
  - { id: out, type: output, refKey: rows, from: parsed }`;

before(async () => {
  target = await startTarget(ledger);
  installation = await install();
  const [account = "", ...others] = ledgerDocuments(target.url);
  await installation.apply(`${account}\nrate_limit: off`, ...others, ROWS, "account: other");
  await recordHistory(installation.database.db);
  key = await installation.createKey("acme");
  [api] = await Promise.all([installation.serve({}, ["api"]), installation.serveProcess({}, ["worker"])]);
  caller = openCaller(api.url, key);
  credential = await connect(caller, "strat_ledger", LEDGER_LOGIN);
});

afterEach(() => target.reset());

after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await target?.close();
});

const cancel = async (
  run: string,
  headers?: Record<string, string>,
  as: Caller = caller,
): Promise<ApiAnswer> => await as.post(`/blueprint-runs/${run}/cancel`, undefined, headers);

const status = async (run: string): Promise<any> => (await caller.get(`/blueprint-runs/${run}/status`)).body;

const triggerLedger = async (): Promise<any> =>
  (await caller.post("/blueprints/ledger/trigger", { credential_id: credential })).body;

/** Under this many runs at once nothing is admitted any more. */
const setConcurrency = async (count: number): Promise<void> =>
  void (await installation.database.db.query("update account set concurrency = $1 where slug = 'acme'", [
    count,
  ]));

/** Does it while the account has one place, which is taken by a run that the target holds. */
async function whileOneRuns(work: (blocking: any) => Promise<void>): Promise<void> {
  await setConcurrency(1);
  try {
    const hold = target.hold((request) => request.path === "/first");
    const blocking = await triggerLedger();
    await hold.reached;
    await work(blocking);
    hold.release();
  } finally {
    await setConcurrency(50);
  }
}

/** The worker has stopped it: a request that it was answered late can't be followed by another, which would meet the next test's hold. */
const letGo = async (run: string): Promise<void> => {
  const line = `"runId":"${run}","msg":"stopped a cancelled run"`;
  await eventually(
    "it is stopped",
    async () => (installation.logs().includes(line) ? true : undefined),
    20_000,
  );
};

function filesOf(run: string): readonly string[] {
  return readdirSync(installation.dataFolder, { recursive: true, encoding: "utf8" }).filter(
    (path) => path.includes(run) && !path.endsWith(run),
  );
}

test("a run at its target is cancelled at once, its request is hung up, and it stays cancelled", async () => {
  const hold = target.hold((request) => request.path === "/second");
  const run = await triggerLedger();
  await hold.reached;
  const stream = await openEvents(api.url, key, run.id);
  await stream.next(({ data }) => data.progress_step === "reading_second");
  const answer = await cancel(run.run_key);
  assert.equal(answer.status, 200, answer.text);
  assert.deepEqual(
    [answer.body.status, answer.body.progress_step, answer.body.error],
    ["cancelled", "cancelled", null],
  );
  assert.notEqual(answer.body.ended_at, null);
  assert.equal(answer.text, (await caller.get(`/blueprint-runs/${run.id}/status`)).text);
  await stream.next(({ data }) => data.status === "cancelled");
  await stream.ended;
  await letGo(run.id);
  hold.release();
  const results = await caller.get(`/blueprint-runs/${run.id}/results`);
  assert.deepEqual([results.status, results.body.error.type], [409, "conflict"]);
  const again = await cancel(run.id);
  assert.deepEqual([again.status, again.body.error.type], [409, "conflict"]);
  assert.match(again.body.error.message, /already cancelled/);
  // Neither results nor scratch are left; what the journal holds goes with the run's data.
  assert.deepEqual(
    filesOf(run.id).filter((path) => !path.includes("/steps/")),
    [],
  );
  const history = await historyOf(installation.database.db, run.id);
  assert.equal(history.at(-1), "cancelled/cancelled");
  // Once: the second cancel changed nothing.
  const audited = await installation.database.db.query<{ actor: string }>(
    `select actor_kind as actor from audit_entry where action = 'run.cancel' and run_id = $1`,
    [run.id],
  );
  assert.deepEqual(audited, [{ actor: "api_key" }]);
});

test("a worker that no word reaches stops at its regular look", async () => {
  const { db } = installation.database;
  const hold = target.hold((request) => request.path === "/first");
  const run = await triggerLedger();
  await hold.reached;
  // As if a process had cancelled it and died before it told anybody.
  await db.query(
    `update run set status = 'cancelled', progress_step = 'cancelled', ended_at = app_now(), lease_owner = null where id = $1`,
    [run.id],
  );
  await letGo(run.id);
  hold.release();
});

test("a run that logs in is cancelled, and the credential is free for the next login", async () => {
  const hold = target.hold((request) => request.path === "/login");
  const run = await triggerLedger();
  await hold.reached;
  const answer = await cancel(run.id);
  assert.deepEqual([answer.status, answer.body.started_at], [200, null]);
  const next = await triggerLedger();
  assert.equal((await caller.waitForRun(next.id)).body.status, "completed");
  hold.release();
});

test("a waiting run is cancelled before anybody claims it, and the account's next one is admitted", async () => {
  await whileOneRuns(async (first) => {
    const second = await triggerLedger();
    const third = await triggerLedger();
    assert.equal((await cancel(second.id)).status, 200);
    assert.equal((await status(third.id)).status, "queued");
    assert.equal((await cancel(first.id)).status, 200);
    // While the target still holds the first.
    assert.equal((await caller.waitForRun(third.id)).body.status, "completed");
    assert.deepEqual(await historyOf(installation.database.db, second.id), [
      "queued/queued",
      "cancelled/cancelled",
    ]);
  });
});

test("latchkey runs cancel: cancels a run that a worker holds, once, and says what is wrong otherwise", async () => {
  const hold = target.hold((request) => request.path === "/first");
  const run = await triggerLedger();
  await hold.reached;
  const done = await installation.command("runs", "cancel", run.run_key);
  assert.deepEqual([done.code, done.stdout], [0, `Cancelled ${run.run_key}.\n`], done.stderr);
  assert.equal((await status(run.id)).status, "cancelled");
  await letGo(run.id);
  const again = await installation.command("runs", "cancel", run.id);
  assert.equal(again.code, 1);
  assert.match(again.stderr, /is already cancelled; nothing was changed/);
  const unknown = await installation.command("runs", "cancel", "run_x");
  assert.deepEqual([unknown.code, unknown.stderr.trim()], [1, "There is no run run_x."]);
  hold.release();
});

test("order of checks: 401, 404, 403, the Idempotency-Key, 409; a body is not looked at", async () => {
  await whileOneRuns(async (blocking) => {
    const run = await triggerLedger();
    const bad = { "idempotency-key": "" };
    assert.equal((await cancel(run.id, bad, openCaller(api.url, "lk_none"))).status, 401);
    const stranger = openCaller(api.url, await installation.createKey("other"));
    assert.equal((await cancel(run.id, bad, stranger)).status, 404);
    assert.equal((await cancel("run_x", bad)).status, 404);
    const limited = openCaller(api.url, await installation.createKey("acme", { blueprints: ["rows"] }));
    assert.equal((await cancel(run.id, bad, limited)).status, 403);
    assert.equal((await cancel(run.id, bad)).status, 422);
    assert.equal((await status(run.id)).status, "queued", "nothing was changed");
    const answer = await caller.post(`/blueprint-runs/${run.id}/cancel`, "{ no JSON", {
      "content-type": "text/x",
    });
    assert.equal(answer.status, 200);
    assert.equal((await cancel(blocking.id)).status, 200);
    await letGo(blocking.id);
  });
});

test("with an Idempotency-Key: one answer, byte for byte, also at once, also later; another run under the key is 409", async () => {
  await whileOneRuns(async (blocking) => {
    const run = await triggerLedger();
    const headers = { "idempotency-key": `cancel-${run.id}` };
    const answers = await Promise.all(Array.from({ length: 8 }, async () => await cancel(run.id, headers)));
    assert.equal(new Set(answers.map((answer) => `${answer.status} ${answer.text}`)).size, 1);
    assert.equal(answers[0]?.status, 200);
    assert.equal(answers.filter((answer) => answer.headers.get("idempotent-replay") === null).length, 1);
    // The run moves on: its data is purged.
    await installation.database.db.query(
      "update run set purged_at = app_now(), metadata = convert_to('{}', 'UTF8') where id = $1",
      [run.id],
    );
    const later = await cancel(run.id, headers);
    assert.deepEqual(
      [later.status, later.text, later.headers.get("idempotent-replay")],
      [200, answers[0]?.text, "true"],
    );
    const reused = await cancel(blocking.id, headers);
    assert.deepEqual([reused.status, reused.body.error.details[0].code], [409, "idempotency_key_reuse"]);
    // A refusal is not recorded: the key is free for the run that can still be cancelled.
    const fresh = { "idempotency-key": `fresh-${run.id}` };
    assert.equal((await cancel(run.id, fresh)).status, 409);
    const last = await cancel(blocking.id, fresh);
    assert.equal(last.status, 200, last.text);
    await letGo(blocking.id);
  });
});

test(
  `of a cancel and the end of a run exactly one wins, ${RACES} times, and both sides know who`,
  { timeout: 110_000 },
  async () => {
    const { db } = installation.database;
    const seen = { cancelled: 0, completed: 0 };
    /** How long a run takes at the moment; cancels come around its end. */
    let usualMs = 60;
    const race = async (index: number): Promise<void> => {
      const { body: run } = await caller.post("/blueprints/rows/trigger", { rows: '[{"a":1}]' });
      const startedAt = performance.now();
      const stream = index % 4 === 0 ? await openEvents(api.url, key, run.id) : null;
      await sleep(Math.max(0, usualMs * (0.6 + 0.8 * Math.random()) - (performance.now() - startedAt)));
      const answer = await cancel(run.id);
      assert.ok(answer.status === 200 || answer.status === 409, answer.text);
      const ended = await status(run.id);
      // Too late means that the run had ended; else it is cancelled from this very answer on.
      assert.equal(ended.status, answer.status === 200 ? "cancelled" : "completed");
      if (answer.status === 200) seen.cancelled++;
      else seen.completed++;
      usualMs = answer.status === 200 ? usualMs * 1.03 : usualMs / 1.03;
      const results = await caller.get(`/blueprint-runs/${run.id}/results?deliveryMethod=direct`);
      assert.equal(results.status, answer.status === 200 ? 409 : 200);
      await stream?.ended;
      if (stream) assert.equal(stream.events.at(-1)?.data.status, ended.status);
      const history = await historyOf(db, run.id);
      const terminal = history.filter((state) => /^(completed|failed|cancelled)\//.test(state));
      assert.deepEqual(terminal, [`${ended.status}/${ended.status}`], history.join(", "));
      assert.equal(history.at(-1), terminal[0], "nothing after the end");
    };
    for (let done = 0; done < RACES; done += AT_ONCE)
      await Promise.all(Array.from({ length: AT_ONCE }, async (_, index) => await race(done + index)));
    assert.ok(seen.cancelled >= RACES / 10 && seen.completed >= RACES / 10, JSON.stringify(seen));
    // Rows and files of results belong to completed runs alone.
    const orphans = await db.query(
      `select 1 from run_result join run on run.id = run_result.run_id where run.status <> 'completed'`,
    );
    assert.equal(orphans.length, 0);
    const cancelled = await db.query<{ id: string }>("select id from run where status = 'cancelled'");
    await eventually("no results and no scratch of a cancelled run are left", async () => {
      const left = cancelled.flatMap(({ id }) => filesOf(id)).filter((path) => !path.includes("/steps/"));
      return left.length === 0 ? true : undefined;
    });
  },
);
