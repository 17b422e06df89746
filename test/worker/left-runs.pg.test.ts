// Runs that were begun and left: the row alone says that they go on, and they count among the worker's places like all others.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { RunPace } from "#worker/run-pace.ts";
import { eventually } from "../eventually.ts";
import { openCaller, type Caller } from "../caller.ts";
import { install, type Installation } from "../service.ts";

const PLACES = 3;
/** The reconciler has looked at least once by then. */
const LOOKED_MS = 3_000;
const PATIENCE_MS = 60_000;

let installation: Installation & AsyncDisposable;
let caller: Caller;
const asked: string[] = [];
let [open, most] = [0, 0];
let gate = Promise.withResolvers<void>();
const target = createServer((request, response) => {
  asked.push(new URL(request.url ?? "", "http://target").searchParams.get("name") ?? "");
  most = Math.max(most, ++open);
  void gate.promise.then(() => {
    open--;
    response.writeHead(200, { "content-type": "application/json" }).end('{"items":[]}');
  });
});

before(async () => {
  await new Promise<void>((resolve) => target.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(target.address() as AddressInfo).port}`;
  installation = await install({ LATCHKEY_WORKER_CONCURRENCY: String(PLACES) });
  await installation.apply(
    "account: acme\nconcurrency: 1000",
    `blueprint: asks
account: acme
hosts: ["${origin}"]
nodes:
  - { id: read, type: http, request: { url: "${origin}/", query: { name: "{{ $run.name }}" } }, records: items }
  - { id: out, type: output, refKey: out, from: read }`,
  );
  // As a drain has left them, with and without a message of a program of before.
  await installation.database.db.query(
    `create function leave() returns trigger language plpgsql as $$
     begin
       new.admitted_at := app_now();
       new.not_before := case when new.name like 'late%' then app_now() + interval '1 hour' end;
       return new;
     end $$;
     create trigger leave before insert on run for each row when (new.name not like 'new%') execute function leave()`,
  );
  const service = await installation.serve();
  caller = openCaller(service.url, await installation.createKey("acme"));
});
after(async () => {
  gate.resolve();
  await installation?.[Symbol.asyncDispose]();
  target.close();
});

async function trigger(name: string): Promise<string> {
  const { status, text, body } = await caller.post("/blueprints/asks/trigger", { run_name: name });
  assert.equal(status, 202, text);
  return body.id;
}

test("runs that go on count among the worker's places, and come before those that wait", async () => {
  const runs = await Promise.all(["new-1", "new-2", "new-3"].map(trigger));
  await eventually("all places are taken", async () => (open === PLACES ? true : undefined), PATIENCE_MS);
  runs.push(await trigger("new-4"), ...(await Promise.all(["left-1", "left-2", "left-3"].map(trigger))));
  const late = await trigger("late-1");
  await sleep(LOOKED_MS);
  assert.equal(most, PLACES, "at once");
  gate.resolve();
  for (const run of runs) assert.equal((await caller.waitForRun(run, PATIENCE_MS)).body.status, "completed");
  assert.equal(most, PLACES, "at once");
  assert.equal(asked.at(-1), "new-4", asked.join());
  const [row] = await installation.database.db.query("select lease_epoch from run where id = $1", [late]);
  assert.deepEqual(row, { lease_epoch: 0 }, "not before its time");
  await installation.database.db.query("update run set not_before = app_now() where id = $1", [late]);
  assert.equal((await caller.waitForRun(late, PATIENCE_MS)).body.status, "completed");
});

test("a run goes on, and a chore is done, no matter who holds their jobs; jobs of programs of before are cleared away", async () => {
  const { db } = installation.database;
  gate = Promise.withResolvers<void>();
  gate.resolve();
  // No worker names the pool: it died before its id was written down.
  const lock = async (key: string, age: string): Promise<void> =>
    void (await db.query(
      `update graphile_worker._private_jobs set locked_by = 'pool-of-' || key, locked_at = now() - $2::interval where key = $1`,
      [key, age],
    ));
  await db.query(
    "select graphile_worker.add_job('housekeeping', job_key => 'held', run_at => now() + interval '1 hour')",
  );
  await lock("held", "1 minute");
  await db.query("update graphile_worker._private_jobs set run_at = now() where key = 'held'");
  const run = await trigger("left-4");
  await db.query(
    `select graphile_worker.add_job('execute_run', json_build_object('runId', $1::text), job_key => $1, run_at => now() + interval '1 hour')`,
    [run],
  );
  await lock(run, "0 s");
  assert.equal((await caller.waitForRun(run, PATIENCE_MS)).body.status, "completed");
  await db.query(
    "update graphile_worker._private_jobs set run_at = now(), locked_at = now() - interval '1 minute' where key = $1",
    [run],
  );
  const isClear = async (): Promise<true | undefined> =>
    (await db.query("select from graphile_worker.jobs where key in ('held', $1)", [run])).length === 0
      ? true
      : undefined;
  await eventually("both jobs are gone", isClear, PATIENCE_MS);
});

test("runs have the slots that their pace leaves them, and one pace is asked by deliveries and told of runs", async (context) => {
  gate = Promise.withResolvers<void>();
  [open, most] = [0, 0];
  const told = context.mock.method(RunPace.prototype, "note").mock;
  const askedFor = context.mock.method(RunPace.prototype, "isBusy").mock;
  const shared = context.mock.method(RunPace.prototype, "share").mock;
  context.mock.getter(RunPace.prototype, "slots", () => 1);
  const runs = await Promise.all(["new-5", "new-6", "new-7"].map(trigger));
  await eventually("one has begun", async () => (open === 1 ? true : undefined), PATIENCE_MS);
  gate.resolve();
  for (const run of runs) assert.equal((await caller.waitForRun(run, PATIENCE_MS)).body.status, "completed");
  assert.equal(most, 1, "at once");
  const isSeen = (): true | undefined => (askedFor.callCount() > 0 && shared.callCount() > 0) || undefined;
  await eventually("deliveries have asked", isSeen, PATIENCE_MS);
  const paces = new Set([told, askedFor, shared].flatMap(({ calls }) => calls.map((call) => call.this)));
  assert.equal(paces.size, 1);
});
