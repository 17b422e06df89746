import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { eventually } from "../eventually.ts";
import { connect, openCaller, type Caller } from "../caller.ts";
import { assertInvariants } from "../invariants.ts";
import { install, type RunningService, type ServiceProcess } from "../service.ts";
import { inTier, testInAll } from "../tiers.ts";
import { historyOf, recordHistory } from "./run-history.ts";
import {
  idsOf,
  ledger,
  LEDGER_LOGIN,
  ledgerDocuments,
  PAGE_ITEMS,
  startTarget,
  type Target,
  type TargetRequest,
} from "./target.ts";

const TERMINAL = ["completed/completed", "failed/failed", "cancelled/cancelled"];

let target: Target;
let installation: Awaited<ReturnType<typeof install>>;
let key: string;
let credential: string;
/** Served with all roles; what one test has restarted is what the next one kills. */
let current: ServiceProcess | null = null;

before(async () => {
  target = await startTarget(ledger);
  installation = await install();
  await installation.apply(...ledgerDocuments(target.url));
  await recordHistory(installation.database.db);
  key = await installation.createKey("acme");
});

afterEach(async () => {
  target.reset();
  await assertInvariants(installation);
});

after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await target?.close();
});

async function running(): Promise<ServiceProcess> {
  current ??= await installation.serveProcess();
  return current;
}

async function end(signal: "SIGKILL" | "SIGTERM"): Promise<number | null> {
  const ending = current;
  current = null;
  return (await ending?.end(signal)) ?? null;
}

async function startRun(service: RunningService): Promise<{ caller: Caller; id: string; runKey: string }> {
  const caller = openCaller(service.url, key);
  credential ??= await connect(caller, "strat_ledger", LEDGER_LOGIN);
  const { status, body } = await caller.post("/blueprints/ledger/trigger", { credential_id: credential });
  assert.equal(status, 202);
  return { caller, id: body.id, runKey: body.run_key };
}

/** The run is completed under its old ids, once, with every record once. */
async function assertWhole(service: RunningService, run: { id: string; runKey: string }): Promise<void> {
  const caller = openCaller(service.url, key);
  const { body } = await caller.waitForRun(run.id, 30_000);
  assert.equal(body.status, "completed");
  assert.equal(body.id, run.id);
  assert.equal(body.run_key, run.runKey);
  const results = await caller.get(`/blueprint-runs/${run.id}/results?deliveryMethod=direct`);
  for (const list of ["first", "second"]) {
    const { totalRecords, records } = results.body.results[list];
    assert.deepEqual(
      records.map((record: any) => record.data.id),
      idsOf(list),
    );
    assert.equal(totalRecords, idsOf(list).length);
  }
  await assertHistory(run.id);
}

/** Spec, Blueprint run `status`: never back, and one end. */
async function assertHistory(runId: string): Promise<void> {
  const history = await historyOf(installation.database.db, runId);
  assert.equal(history.filter((state) => TERMINAL.includes(state)).length, 1, history.join(", "));
  assert.ok(TERMINAL.includes(history.at(-1) ?? ""), history.join(", "));
  const order = ["queued", "running", "completed"];
  const ranks = history.map((state) => order.indexOf(state.split("/", 1)[0] ?? ""));
  assert.deepEqual(
    ranks,
    ranks.toSorted((a, b) => a - b),
    history.join(", "),
  );
}

const page =
  (list: string, cursor: string | null) =>
  (request: TargetRequest): boolean =>
    request.path === `/${list}` && request.query.get("cursor") === cursor;

const killPoints: Record<
  string,
  { at: (request: TargetRequest) => boolean; shows: string; firstAgain: boolean }
> = {
  "while it logs in": {
    at: (request) => request.path === "/login",
    shows: "queued/authenticating",
    firstAgain: true,
  },
  "at its first page": { at: page("first", null), shows: "running/reading_first", firstAgain: true },
  "between two pages": { at: page("first", "2"), shows: "running/reading_first", firstAgain: true },
  "between two nodes": { at: page("second", null), shows: "running/reading_second", firstAgain: false },
  "at the last page of its last request": {
    at: page("second", "3"),
    shows: "running/reading_second",
    firstAgain: false,
  },
};

/** What it has read it does not read again. */
const REPRESENTATIVES = ["between two nodes"];

for (const [when, { at, shows, firstAgain }] of inTier(Object.entries(killPoints), ([name]) =>
  REPRESENTATIVES.includes(name),
)) {
  test(`a run whose service is killed ${when} completes after the restart, no record missing or doubled`, async () => {
    const hold = target.hold(at);
    const run = await startRun(await running());
    await hold.reached;
    const { body } = await run.caller.get(`/blueprint-runs/${run.id}/status`);
    assert.equal(`${body.status}/${body.progress_step}`, shows);
    await end("SIGKILL");
    const before = target.requests.length;
    hold.release();
    await assertWhole(await running(), run);
    // What the journal has is not fetched again.
    assert.equal(
      target.requests.slice(before).some((request) => request.path === "/first"),
      firstAgain,
    );
  });
}

const COMPLETION_TEST =
  "a run whose service is killed in the transaction that completes it completes once, after the restart";
testInAll("flow/failpoints kills it at run.before_complete", COMPLETION_TEST, {}, async () => {
  const { db } = installation.database;
  const run = await db.transaction(async (tx) => {
    // The results can't be written while this is held: the completing transaction stands still in the middle.
    await tx.query("lock table run_result in share mode");
    const started = await startRun(await running());
    await eventually("the run is being completed", async () => {
      const waiting = await db.query(
        "select 1 from pg_locks where relation = 'run_result'::regclass and not granted",
      );
      return waiting.length > 0 ? true : undefined;
    });
    await end("SIGKILL");
    return started;
  });
  await assertWhole(await running(), run);
});

test("a run whose worker is killed goes on when another worker is up, and nobody waits for the dead one's heartbeat", async () => {
  const { db } = installation.database;
  await end("SIGKILL");
  const serveWorker = async (): Promise<ServiceProcess> => await installation.serveProcess({}, ["worker"]);
  const [api, ...workers] = await Promise.all([
    installation.serve({}, ["api"]),
    serveWorker(),
    serveWorker(),
  ]);
  const hold = target.hold(page("first", "1"));
  const run = await startRun(api);
  await hold.reached;
  const [holder] = await db.query<{ pid: number }>(
    "select pid from worker join run on lease_owner = worker.id where run.id = $1",
    [run.id],
  );
  const victim = workers.find((worker) => worker.child.pid === holder?.pid);
  assert.ok(victim, "one of the two workers has the run");
  const before = target.requests.length;
  await victim.end("SIGKILL");
  // That its lock is free is enough. Within 5 s: `promised-times.pg.test.ts`.
  await db.query("update worker set heartbeat_at = app_now() + interval '1 day' where pid = $1", [
    holder?.pid,
  ]);
  await eventually(
    "the other worker's request",
    async () => (target.requests.length > before ? true : undefined),
    60_000,
  );
  hold.release();
  await assertWhole(api, run);
  await Promise.all(workers.map(async (service) => await service.end("SIGKILL")));
  await api.end();
});

test("SIGTERM hands a run back and exits 0 while the target holds its request; a restart completes it", async () => {
  const { db } = installation.database;
  const hold = target.hold(page("second", "1"));
  const run = await startRun(await running());
  await hold.reached;
  const said = installation.logs().length;
  assert.equal(await end("SIGTERM"), 0);
  // By itself: the last resort, the end of the process whatever a part hangs on, says nothing.
  assert.match(installation.logs().slice(said), /"msg":"stopped"/);
  const [row] = await db.query("select status, lease_owner, lost_leases from run where id = $1", [run.id]);
  // Given back, not lost: nothing counts against the run.
  assert.deepEqual(row, { status: "running", lease_owner: null, lost_leases: 0 });
  assert.equal((await db.query("select 1 from worker")).length, 0);
  hold.release();
  await assertWhole(await running(), run);
});

const WAITING_TEST = "SIGTERM hands a run back that waits for the login of another; a restart completes both";
testInAll("SIGTERM while a request is held, above", WAITING_TEST, {}, async () => {
  const { db } = installation.database;
  const hold = target.hold((request) => request.path === "/login");
  const first = await startRun(await running());
  await hold.reached;
  const second = await startRun(await running());
  const hasLease = async (): Promise<true | undefined> =>
    (await db.query("select 1 from run where id = $1 and lease_owner is not null", [second.id])).length > 0
      ? true
      : undefined;
  await eventually("the second run waits for its turn", hasLease);
  assert.equal(await end("SIGTERM"), 0);
  const rows = await db.query("select status, lost_leases from run where id = any($1)", [
    [first.id, second.id],
  ]);
  assert.deepEqual(rows, Array(2).fill({ status: "queued", lost_leases: 0 }));
  hold.release();
  const restarted = await running();
  await assertWhole(restarted, first);
  await assertWhole(restarted, second);
});

test("a run goes on when the database cuts every connection of the service", async () => {
  const { db } = installation.database;
  const service = await running();
  const hold = target.hold(page("first", "2"));
  const run = await startRun(service);
  await hold.reached;
  const cut = await db.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid() and application_name in ('latchkey', 'latchkey liveness')`,
  );
  assert.ok(cut.length >= 2);
  hold.release();
  // A connection that was cut shows it at its next use: that request may get a 503, which says that it may be repeated.
  await eventually("the API answers again", async () => {
    const { status, headers } = await run.caller.get(`/blueprint-runs/${run.id}/status`);
    if (status !== 200) assert.deepEqual([status, headers.get("retry-after")], [503, "1"]);
    return status === 200 ? true : undefined;
  });
  await eventually("the run ends", async () => {
    const ended = await db.query("select 1 from run where id = $1 and ended_at is not null", [run.id]);
    return ended.length > 0 ? true : undefined;
  });
  await assertWhole(service, run);
  assert.equal(service.child.exitCode, null, "the service is still the same process");
});

test("a run that is held by a worker that is not there goes on: a frozen one claimed it after it had been taken over", async () => {
  const hold = target.hold(page("first", "1"));
  const service = await running();
  const run = await startRun(service);
  await hold.reached;
  // As the claim after a takeover leaves it: the lease is that of a worker whose row is gone.
  await installation.database.db.query(
    "update run set lease_owner = 'wrk_gone', lease_epoch = lease_epoch + 1 where id = $1",
    [run.id],
  );
  hold.release();
  await assertWhole(service, run);
});

const ACKNOWLEDGED =
  "every run acknowledged with a 202 reaches its end though the service is killed right after";
testInAll("150 requests while the service is killed (idempotency/crash)", ACKNOWLEDGED, {}, async () => {
  const caller = openCaller((await running()).url, key);
  const answers = await Promise.all(
    Array.from({ length: 30 }, async () => await caller.post("/blueprints/open-list/trigger", {})),
  );
  await end("SIGKILL");
  const ids = answers.map(({ status, body }) => {
    assert.equal(status, 202);
    return body.id as string;
  });
  const [open] = await installation.database.db.query<{ count: number }>(
    "select count(*)::int as count from run where id = any($1) and ended_at is null",
    [ids],
  );
  assert.ok((open?.count ?? 0) > 0, "killed too late: every run had ended");
  const restarted = openCaller((await running()).url, key);
  for (const id of ids) {
    const { body } = await restarted.waitForRun(id, 30_000);
    assert.equal(body.status, "completed");
    const results = await restarted.get(`/blueprint-runs/${id}/results?deliveryMethod=direct`);
    assert.deepEqual(
      results.body.results.list.records.map((record: any) => record.data.id),
      idsOf("open").slice(0, PAGE_ITEMS),
    );
    await assertHistory(id);
  }
});

test("a run that was left completes though nobody was told of it: its row says so", async () => {
  const { db } = installation.database;
  await end("SIGKILL");
  const api = await installation.serve({}, ["api"]);
  const { body } = await openCaller(api.url, key).post("/blueprints/open-list/trigger", {});
  // As a worker leaves it that has handed it back and could not tell anybody.
  await db.query("update run set admitted_at = app_now(), lease_epoch = 1 where id = $1", [body.id]);
  await running();
  assert.equal((await openCaller(api.url, key).waitForRun(body.id)).body.status, "completed");
  await api.end();
});
