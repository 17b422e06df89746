// No run waits forever: one that needs several credentials reserves them after a while, and the limit in force counts.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { admitRuns } from "#db/runs/admission.ts";
import { claimLeftRuns } from "#db/runs/left-runs.ts";
import { callNextQueued } from "#db/runs/lines.ts";
import { releaseOrphans } from "#db/runs/workers.ts";
import { callToBrowsers } from "#db/runs/browser-line.ts";
import type { Database } from "#db/connection/pool.ts";
import { until } from "../eventually.ts";
import type { Installation } from "../service.ts";
import { installForRuns } from "./any-blueprint.ts";

const OWNER = "worker_test";
const ROUNDS = 20;

const strategy = (id: string, concurrency: number | null): string => `strategy: strat_${id}
account: acme
hosts: ["https://it.example"]
${concurrency === null ? "" : `concurrency: ${concurrency}\n`}fields: [{ key: token, label: Token, type: password }]
login: { type: bearer, token: token }`;

let installation: Installation & AsyncDisposable;
let db: Database;
let accountId: string;

before(async () => {
  ({ installation, db, accountId } = await installForRuns(
    strategy("one", 1),
    strategy("two", 1),
    strategy("three", 1),
  ));
});
beforeEach(async () => {
  await end(await underWay());
  await db.query(
    "update run set status = 'cancelled', progress_step = 'cancelled', ended_at = app_now() where ended_at is null",
  );
});
after(async () => await installation?.[Symbol.asyncDispose]());

let made = 0;

/** A run that waits, a moment after those before it. Each credential is of the strategy of its name; `copied` is the limit at its trigger. */
async function addRun(
  credentials: readonly ("one" | "two" | "three")[],
  copied: number | null = 1,
): Promise<string> {
  const id = `run_test${String(++made).padStart(4, "0")}`;
  await db.query(
    `insert into run (id, run_key, account_id, blueprint_id, blueprint_version, api_key_id, metadata, ignored_keys,
       timeout_ms, retention_ms, created_at)
     select $1, gen_random_uuid(), $2, blueprint.id, 1, api_key.id, '{}', '[]', 1800000, 2592000000,
       app_now() + $3::int * interval '1 ms' from blueprint, api_key`,
    [id, accountId, made],
  );
  await db.query(
    `insert into run_credential (account_id, run_id, slot, credential_id, strategy_id, strategy_version, concurrency)
     select $1, $2, name, 'cred_' || name, 'strat_' || name, 1, $4 from unnest($3::text[]) as name`,
    [accountId, id, credentials, copied],
  );
  return id;
}

const admit = async (limit = 50): Promise<readonly string[]> =>
  (await admitRuns(db, accountId, OWNER, limit)).runs.map(({ id }) => id);

/** One transaction waits for a row that another holds. */
const untilOneWaits = async (what: string): Promise<void> =>
  await until(what, async () => {
    const waiting = await db.query(
      "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
    return waiting.length === 1;
  });

async function underWay(): Promise<readonly string[]> {
  const rows = await db.query<{ id: string }>(
    "select id from run where admitted_at is not null and ended_at is null order by id",
  );
  return rows.map(({ id }) => id);
}

const end = async (runs: readonly string[]): Promise<unknown> =>
  await db.query(
    `update run set status = 'cancelled', progress_step = 'cancelled', lease_owner = null, ended_at = greatest(app_now(), started_at)
     where id = any($1)`,
    [runs],
  );

for (const room of [50, 1]) {
  test(`a run that needs two credentials begins within ${ROUNDS} rounds though runs of one come all the time (room for ${room})`, async () => {
    const running = { one: await addRun(["one"]), two: await addRun(["two"]) };
    for (let looks = 0; looks < 2; looks++) await admit(room);
    assert.deepEqual(await underWay(), [running.one, running.two]);
    const [waiting, later] = [await addRun(["one", "two"]), await addRun(["one", "two"])];
    assert.deepEqual(await admit(room), []);
    const rounds = await (async (): Promise<number> => {
      for (let round = 1; round <= ROUNDS; round++) {
        for (const name of ["one", "two"] as const) {
          await addRun([name]);
          await end([running[name]]);
          const [admitted, ...others] = await admit(room);
          assert.deepEqual(others, []);
          if (admitted === waiting) return round;
          running[name] = admitted ?? "";
        }
      }
      return Infinity;
    })();
    assert.ok(rounds <= ROUNDS, "it was not admitted");
    await end([waiting]);
    assert.deepEqual(await admit(room), [later], "before all that came after it");
    await end([later]);
    // And those that it kept waiting, in their order.
    const singles = await admit(50);
    assert.equal(singles.length, 2, singles.join());
  });
}

test("the oldest 20 runs that reserve are looked at; the next one follows when one of them begins", async () => {
  const running = await addRun(["one"]);
  assert.deepEqual(await admit(), [running]);
  const reserving: string[] = [];
  for (let count = 0; count < 20; count++) reserving.push(await addRun(["one", "two"]));
  const next = await addRun(["three"]);
  await db.query("update run set waits_for = '' where id = any($1)", [[...reserving, next]]);
  assert.deepEqual(await admit(), []);
  await end([running]);
  assert.deepEqual(await admit(), reserving.slice(0, 1));
  assert.deepEqual(await admit(), [next]);
});

test("runs that are taken together begin in their turn, wherever their rows lie", async () => {
  /** An update puts a row elsewhere in the table. */
  const move = async (runs: readonly string[]): Promise<void> => {
    for (const id of runs) await db.query("update run set metadata = metadata || '' where id = $1", [id]);
  };
  const addPlain = async (): Promise<readonly string[]> => {
    const runs: string[] = [];
    for (let count = 0; count < 12; count++) runs.push(await addRun([]));
    await move(runs.slice(0, 7).toReversed());
    return runs;
  };
  const plain = await addPlain();
  assert.deepEqual(await admit(), plain, "that wait for the account's concurrency alone");
  const running = await addRun(["one"]);
  assert.deepEqual(await admit(), [running]);
  await addRun(["one"]);
  const chosen = await addPlain();
  assert.deepEqual(await admit(), chosen, "behind one that waits for its credential");
  await db.query(
    `update run set lease_owner = null, deadline_at = app_now() + (100 - place) * interval '1 minute'
     from unnest($1::text[]) with ordinality as given (id, place) where run.id = given.id`,
    [chosen],
  );
  const left = await claimLeftRuns(db, accountId, OWNER, 50, "plain");
  assert.deepEqual(
    left.map(({ id }) => id),
    chosen.toReversed(),
    "that were left, by their deadlines",
  );
});

test("runs behind one that another transaction is changing are admitted all the same, within the limit", async () => {
  const waiting = [await addRun([]), await addRun([]), await addRun([])];
  const [changed = "", next = "", last = ""] = waiting;
  await db.transaction(async (tx) => {
    await tx.query("select 1 from run where id = $1 for no key update", [changed]);
    assert.deepEqual(await admit(1), [next], "one place");
    assert.deepEqual(await admit(50), [last], "as many as there are");
    assert.deepEqual(await admit(50), []);
  });
  assert.deepEqual(await admit(1), [changed]);
});

test("of a throttle's queue the first run that nobody changes is called, by the slot that is next when the throttle is free", async () => {
  const [slot] = await db.query<{ line: string }>(
    `insert into throttle_slot (account_id, blueprint_id, node_id, next_at, spacing_ms)
     select account_id, id, 'paced', app_now(), 1000 from blueprint returning blueprint_id || '/paced' as line`,
  );
  const line = slot?.line ?? assert.fail("no throttle");
  const queued = [await addRun([]), await addRun([])];
  await db.query(
    "update run set line = $2, parked_at = app_now(), deadline_at = app_now() where id = any($1)",
    [queued, line],
  );
  const called = async (): Promise<readonly string[]> => {
    const rows = await db.query<{ id: string }>(
      "select id from run where id = any($1) and parked_at is null order by id",
      [queued],
    );
    return rows.map(({ id }) => id);
  };
  let calling: Promise<unknown> = Promise.resolve();
  await db.transaction(async (tx) => {
    await tx.query("update throttle_slot set next_at = next_at + interval '1 hour'");
    calling = callNextQueued(db, [line]);
    await untilOneWaits("it waits for the throttle");
  });
  await calling;
  assert.deepEqual(await called(), [], "the next slot is an hour away");
  await db.query("update throttle_slot set next_at = app_now()");
  await db.transaction(async (tx) => {
    await tx.query("select 1 from run where id = $1 for no key update", [queued[0]]);
    assert.deepEqual(await callNextQueued(db, [line]), [accountId]);
  });
  assert.deepEqual(await called(), queued.slice(1));
  await db.query("delete from throttle_slot");
});

test("while another admission holds the account's row none begins, for it would count the same runs", async () => {
  const waiting = await addRun([]);
  await db.transaction(async (tx) => {
    await tx.query("select 1 from account where id = $1 for no key update", [accountId]);
    await assert.rejects(admit(), { code: "55P03" });
  });
  assert.deepEqual(await admit(), [waiting]);
});

test("a run that another worker takes over while its first one frees it stays with the other", async () => {
  const run = await addRun([]);
  assert.deepEqual(await admit(), [run]);
  let freed: Promise<number> = Promise.resolve(0);
  await db.transaction(async (tx) => {
    await tx.query(
      "update run set lease_owner = 'worker_other', lease_epoch = lease_epoch + 1 where id = $1",
      [run],
    );
    freed = releaseOrphans(db, OWNER, [{ runId: run, epoch: 1 }]);
    await untilOneWaits("it waits for the run's row");
  });
  assert.equal(await freed, 0);
  const [now] = await db.query("select lease_owner as owner from run where id = $1", [run]);
  assert.deepEqual(now, { owner: "worker_other" });
});

test("a limit counts as it is now, also for runs that were triggered under another one", async () => {
  const [first = "", ...others] = await addRuns(4, 1);
  assert.deepEqual(await admit(), [first]);
  assert.deepEqual(await admit(), []);
  await installation.apply(strategy("one", 3));
  const later = await addRuns(3, 3);
  assert.deepEqual(await admit(), others.slice(0, 2), "raised: those that waited come first");
  await end([first]);
  assert.deepEqual(await admit(), others.slice(2));
  await installation.apply(strategy("one", 2));
  await end(others.slice(0, 1));
  assert.deepEqual(await admit(), [], "lowered: two are under way");
  await installation.apply(strategy("one", null));
  assert.deepEqual(await admit(), later, "there is none any more");

  await end(await underWay());
  const unlimited = await addRuns(3, null);
  await installation.apply(strategy("one", 1));
  assert.deepEqual(await admit(), unlimited.slice(0, 1), "there was none when they were triggered");
});

async function addRuns(count: number, copied: number | null): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let index = 0; index < count; index++) ids.push(await addRun(["one"], copied));
  return ids;
}

test("a run that queues for a browser is called when a place is free, and only a worker with a browser takes it", async () => {
  const runs = [await addRun([]), await addRun([]), await addRun([])];
  const [first = "", second = ""] = runs;
  await db.query(
    "update run set line = 'browser', parked_at = app_now(), status = 'queued', progress_step = 'authenticating' where id = any($1)",
    [runs],
  );
  assert.deepEqual(await admit(), [], "they hold nothing");
  assert.equal((await callToBrowsers(db, 2)).length, 2);
  assert.deepEqual(await callToBrowsers(db, 2), [], "two were called already, and nobody has taken them");
  const withoutBrowser = await admitRuns(db, accountId, OWNER, 50, { isLikely: true, hasBrowser: false });
  assert.deepEqual(withoutBrowser.runs, []);
  assert.deepEqual(await admit(1), [first], "in the order of their triggers");
  assert.equal((await callToBrowsers(db, 2)).length, 1, "the first one has its place");
  assert.deepEqual(await admit(1), [second]);
});
