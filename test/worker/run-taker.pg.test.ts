// What takes waiting runs, with real runs in a real database.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Database } from "#db/connection/pool.ts";
import { systemClock } from "#lib/clock.ts";
import { openLog } from "#lib/log.ts";
import { RunTaker, type TakerOptions } from "#worker/run-taker.ts";
import { anyBlueprint, installForRuns } from "../runs/any-blueprint.ts";
import type { Installation } from "../service.ts";

const WAITING = 40;
const LOG = openLog({ level: "silent", format: "json" });

let installation: Installation & AsyncDisposable;
let db: Database;
let accountId: string;

before(async () => {
  const beta = ["account: beta\nconcurrency: 1000", anyBlueprint("beta")];
  ({ installation, db, accountId } = await installForRuns(...beta));
  await installation.createKey("beta");
});
after(async () => await installation?.[Symbol.asyncDispose]());

async function idOf(slug: string): Promise<string> {
  const [account] = await db.query<{ id: string }>("select id from account where slug = $1", [slug]);
  return account?.id ?? "";
}

async function addWaiting(prefix: string, account = accountId): Promise<void> {
  await db.query(
    `insert into run (id, run_key, account_id, blueprint_id, blueprint_version, api_key_id, metadata, ignored_keys,
       timeout_ms, retention_ms)
     select $2 || i, gen_random_uuid(), $1, blueprint.id, 1, api_key.id, '{}', '[]', 1800000, 2592000000
     from blueprint, api_key, generate_series(1, $3::int) i
     where blueprint.account_id = $1 and api_key.account_id = $1`,
    [account, prefix, WAITING],
  );
}

/** Room for one at a time, forever: it takes again and again. */
function openTaker(begin: TakerOptions["begin"], workerId: () => string | null = () => "worker_test") {
  return new RunTaker({
    db,
    log: LOG,
    clock: systemClock,
    workerId,
    room: () => 1,
    active: () => new Map(),
    begin,
  });
}

test("what must happen while nothing is taken comes between, however much waits", async () => {
  await addWaiting("run_between");
  const begun: string[] = [];
  const done = Promise.withResolvers<void>();
  const taker = openTaker((run) => {
    begun.push(run.id);
    if (begun.length === WAITING) done.resolve();
  });
  taker.wake([accountId]);
  let between = -1;
  await taker.between(async () => {
    between = begun.length;
    for (let look = 0; look < 20; look++) {
      await sleep(15);
      const leased = await db.query(
        "select 1 from run where id like 'run_between%' and lease_owner is not null",
      );
      // All that was taken is begun, and nothing is taken meanwhile.
      assert.deepEqual([leased.length, begun.length], [between, between]);
    }
  });
  assert.ok(between < WAITING, `only after ${between} runs`);
  await done.promise;
  await taker.stop();
  assert.equal(new Set(begun).size, WAITING, "each once");
});

test("an account whose row another transaction holds keeps only its own runs waiting", async () => {
  const beta = await idOf("beta");
  const begun: string[] = [];
  const [ofBeta, ofAll] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const room = (): number => WAITING;
  const begin = (run: { readonly id: string }): void => {
    begun.push(run.id);
    if (begun.length === 2 * WAITING) ofBeta.resolve();
    if (begun.length === 3 * WAITING) ofAll.resolve();
  };
  const taker = new RunTaker({
    db,
    log: LOG,
    clock: systemClock,
    workerId: () => "worker_test",
    room,
    active: () => new Map(),
    begin,
  });
  await addWaiting("run_of_acme");
  await addWaiting("run_of_beta", beta);
  const client = await db.pool.connect();
  await client.query("begin");
  await client.query("select from account where id = $1 for update", [accountId]);
  taker.wake([accountId, beta], true);
  // More than once: the account that waits does not keep the next turn from the other.
  while (begun.length < WAITING) await sleep(5);
  await addWaiting("run_of_beta_later", beta);
  taker.wake([beta], true);
  await ofBeta.promise;
  assert.deepEqual(
    [...new Set(begun.map((id) => id.replace(/\d+$/, "")))],
    ["run_of_beta", "run_of_beta_later"],
  );
  await client.query("rollback");
  client.release();
  await ofAll.promise;
  await taker.stop();
  assert.equal(new Set(begun).size, 3 * WAITING, "each once");
});

test("nothing is taken without a membership, nor after the stop", async () => {
  await addWaiting("run_idle");
  const begun: string[] = [];
  const stranger = openTaker(
    (run) => begun.push(run.id),
    () => null,
  );
  stranger.wake([accountId]);
  await stranger.stop();
  const stopped = openTaker((run) => begun.push(run.id));
  await stopped.stop();
  stopped.wake([accountId]);
  assert.deepEqual(stopped.accountIds, [accountId], "whom others may serve");
  const taken = await db.query("select 1 from run where id like 'run_idle%' and admitted_at is not null");
  assert.equal(taken.length, 0);
  assert.deepEqual(begun, []);
});

test("a place that gets free is offered only where some waited at the last look", async () => {
  const begun: string[] = [];
  const all = Promise.withResolvers<void>();
  const taker = openTaker((run) => {
    if (run.id.startsWith("run_offered") && begun.push(run.id) === 2 * WAITING) all.resolve();
  });
  await addWaiting("run_offered_first");
  taker.wake([accountId]);
  // Until a look finds none.
  for (let isDone = false; !isDone;) {
    await taker.between(async () => {
      isDone = begun.length === WAITING && taker.accountIds.length === 0;
    });
    await sleep(5);
  }
  await addWaiting("run_offered_then");
  taker.freed(accountId);
  await taker.between(async () => {});
  assert.equal(begun.length, WAITING, "nobody has told it of them");
  taker.wake([accountId]);
  await all.promise;
  await taker.stop();
});

test("left runs go on before waiting ones begin; one that must be alone, or whose time has not come, does not", async () => {
  const begun: string[] = [];
  const taker = openTaker((run) => begun.push(run.id));
  await db.query(
    "update run set ended_at = app_now(), status = 'cancelled', progress_step = 'cancelled', lease_owner = null where ended_at is null",
  );
  await addWaiting("run_behind");
  const leave = async (id: string, change: string): Promise<void> => {
    await addWaiting(`run_left_${id}`);
    await db.query(`delete from run where id like $1 and id <> $2`, [`run_left_${id}%`, `run_left_${id}1`]);
    await db.query(`update run set admitted_at = app_now(), ${change} where id = $1`, [`run_left_${id}1`]);
  };
  await leave("plain", "lost_leases = 1");
  await leave("poison", "lost_leases = 3");
  await leave("suspect", "lost_leases = 2, deadline_at = app_now() + interval '1 hour'");
  await leave("overdue", "lost_leases = 2, deadline_at = app_now()");
  await leave("later", "not_before = app_now() + interval '1 hour'");
  taker.wakeForLeft([accountId]);
  while (begun.length < WAITING + 3) await sleep(5);
  await taker.stop();
  assert.deepEqual(begun.slice(0, 3).toSorted(), [
    "run_left_overdue1",
    "run_left_plain1",
    "run_left_poison1",
  ]);
  assert.ok(
    begun.slice(3).every((id) => id.startsWith("run_behind")),
    begun.join(),
  );
  const alone: string[] = [];
  const quarantined = new RunTaker({
    db,
    log: LOG,
    clock: systemClock,
    takes: "suspect",
    workerId: () => "worker_test",
    room: () => 1,
    active: () => new Map(),
    begin: (run) => alone.push(run.id),
  });
  await addWaiting("run_not_suspected");
  quarantined.wakeForLeft([accountId]);
  while (alone.length === 0 || quarantined.accountIds.length > 0) await sleep(5);
  await quarantined.stop();
  assert.deepEqual(alone, ["run_left_suspect1"], "in quarantine, and nothing else there");
});
