// docs/decisions/0004: every write of a worker carries the epoch, and a stale one changes nothing. Each such
// function is called with leases that are no longer good, and whole rows are compared before and after.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import type { Lease } from "#db/runs/lease.ts";
import type { Database } from "#db/connection/pool.ts";
import { leaveQueue, joinQueue } from "#db/runs/lines.ts";
import { saveLivePicture } from "#db/runs/live-pictures.ts";
import { notePoll, waitForPoll } from "#db/runs/polls.ts";
import { takeRetry } from "#db/runs/retry-budget.ts";
import {
  failStep,
  finishStep,
  noteStep,
  saveStepObject,
  saveStepSource,
  startStep,
} from "#db/runs/run-steps.ts";
import { storeIteration, noteTurns } from "#db/runs/run-turns.ts";
import { beginWrite, endWrite } from "#db/runs/run-writes.ts";
import { completeRun } from "#db/runs/run-results.ts";
import { failIdleRunsOf, failRun, moveStep, parkRun, releaseRun, startRun } from "#db/runs/runs.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";

const FOLDER = resolve(import.meta.dirname, "../../src/db");
const ACCOUNT = "acct_fences";
const NODE = "node_a";
const EPOCH = 5;
const TABLES = [
  "run",
  "run_step",
  "run_turn",
  "run_poll",
  "run_write",
  "live_picture",
  "run_result",
  "blob",
  "review",
  "worker",
];

interface Case {
  /** Other than a run that is running, with nothing in its journal. */
  readonly run?: "queued" | "running";
  /** The entry that the function changes, begun under the lease. */
  readonly entry?: "run_step" | "run_poll" | "run_write" | "live_picture";
  /** Only the entry's own epoch fences it: its truth does not depend on who has the run now. */
  readonly fencedByEntryAlone?: true;
  readonly call: (db: Database, lease: Lease, unique: string) => Promise<unknown>;
}

const blob = (key: string) => ({ key, sizeBytes: 3, sha256: new Uint8Array(32) });

/** Everything in src/db that writes under a lease. */
const CASES: Readonly<Record<string, Case>> = {
  moveStep: { call: async (db, lease) => await moveStep(db, { lease, step: "reading" }) },
  startRun: { run: "queued", call: async (db, lease) => await startRun(db, { lease }) },
  completeRun: {
    call: async (db, lease) =>
      await completeRun(db, { lease, accountId: ACCOUNT, responseBytes: 17, results: [], tally: null }),
  },
  failRun: {
    call: async (db, lease) => await failRun(db, { lease, kind: "target", detail: "the story", tally: null }),
  },
  parkRun: { call: async (db, lease) => await parkRun(db, lease) },
  joinQueue: { call: async (db, lease) => await joinQueue(db, lease, { line: "cred_x", waitedMs: 5 }) },
  leaveQueue: { call: async (db, lease) => await leaveQueue(db, lease, 5) },
  releaseRun: { call: async (db, lease) => await releaseRun(db, lease) },
  takeRetry: { call: async (db, lease) => await takeRetry(db, lease, 3) },
  startStep: { call: async (db, lease) => await startStep(db, { lease, accountId: ACCOUNT, nodeId: NODE }) },
  finishStep: {
    entry: "run_step",
    call: async (db, lease, unique) =>
      await finishStep(db, {
        lease,
        accountId: ACCOUNT,
        nodeId: NODE,
        outputKind: "json",
        output: null,
        blob: blob(unique),
        filename: null,
        contentType: null,
        recordsTotal: null,
        recordsValid: null,
        log: "",
        tookMs: 5,
        tally: null,
      }),
  },
  failStep: {
    entry: "run_step",
    call: async (db, lease) =>
      await failStep(db, { lease, accountId: ACCOUNT, nodeId: NODE, detail: "the story", tookMs: 5 }),
  },
  saveStepSource: {
    entry: "run_step",
    call: async (db, lease, unique) =>
      await saveStepSource(db, lease, { accountId: ACCOUNT, nodeId: NODE, blob: blob(unique), tally: null }),
  },
  saveStepObject: {
    call: async (db, lease, unique) =>
      await saveStepObject(db, lease, { accountId: ACCOUNT, blob: blob(unique) }),
  },
  noteStep: { entry: "run_step", call: async (db, lease) => await noteStep(db, lease, NODE, "a line") },
  noteTurns: { entry: "run_step", call: async (db, lease) => await noteTurns(db, lease, NODE, 7) },
  storeIteration: {
    call: async (db, lease, unique) =>
      await storeIteration(db, lease, ACCOUNT, {
        nodeId: NODE,
        ordinal: 0,
        outputKind: "json",
        output: null,
        blob: blob(unique),
        filename: null,
        contentType: null,
      }),
  },
  saveLivePicture: {
    entry: "live_picture",
    call: async (db, lease) => await saveLivePicture(db, lease, "steps[0]", Buffer.from("a picture")),
  },
  notePoll: {
    call: async (db, lease) =>
      (await notePoll(db, lease, { accountId: ACCOUNT, nodeId: NODE, ordinal: 0 })) !== undefined,
  },
  waitForPoll: {
    entry: "run_poll",
    call: async (db, lease) => await waitForPoll(db, lease, { nodeId: NODE, ordinal: 0, waitMs: 5_000 }),
  },
  beginWrite: {
    entry: "run_write",
    call: async (db, lease) => await beginWrite(db, lease, { accountId: ACCOUNT, nodeId: NODE, ordinal: 0 }),
  },
  endWrite: {
    entry: "run_write",
    fencedByEntryAlone: true,
    call: async (db, lease) =>
      await endWrite(db, lease, {
        nodeId: NODE,
        ordinal: 0,
        epoch: lease.epoch,
        status: "done",
        outcome: "{}",
        detail: null,
        sent: null,
      }),
  },
};

/** Exported, and about leases, but not written under one: who calls them and what guards them instead. */
const OTHERS: Readonly<Record<string, string>> = {
  claimLeftRuns: "takes the lease: only where nobody has one",
  cancelRun: "a caller's or an operator's; the run's holder is fenced from then on",
  failIdleRunsOf: "only runs that nobody holds",
  decideWrite: "an operator's; only while nobody holds the run",
  releaseLogin: "the right to log in, by its claim; only runs that stand in line, which nobody holds",
  takeOverDeadWorkers: "takes leases away, raising their epochs",
  releaseOrphans: "a worker's own runs, by its name and their epochs",
  deleteWorker: "a worker's own runs, by its name",
  listRunsToStop: "reads",
  listLeases: "reads",
  listSeenWorkers: "reads",
  callToBrowsers: "calls runs that wait, which have no lease",
  countWaitingRuns: "reads",
  findDetailedRun: "reads",
  listHeldClaims: "reads",
  freeOrphanedRuns: "only runs of workers that are gone, raising their epochs",
  RUN_CHECKS: "reads",
  freeOrphanedJobs: "frees jobs and changes no run",
  CLAIM: "part of what takes a lease",
  CLAIMED_COLUMNS: "reads",
};

let database: TestDatabase;
before(async () => {
  database = await createTestDatabase();
  await database.db.transaction(async (tx) => {
    // What a run belongs to is of no interest here.
    await tx.query("set local session_replication_role = replica");
    await tx.query(
      `insert into account (id, slug, document, name, allowed_origins, session_lifetime_ms, retention_ms, concurrency)
       values ($1, 'fences', '', 'Fences', '{}', 1, 1, 1)`,
      [ACCOUNT],
    );
  });
});
after(async () => await database?.drop());

let made = 0;

/** A run that the lease holds, and the entry that it has begun. */
async function plant({ run: status = "running", entry }: Case): Promise<Lease> {
  const lease: Lease = { runId: `run_fence_${++made}`, owner: `wrk_owner_${made}`, epoch: EPOCH };
  await database.db.transaction(async (tx) => {
    await tx.query("set local session_replication_role = replica");
    await tx.query(
      `insert into run (id, run_key, account_id, blueprint_id, blueprint_version, api_key_id, metadata, ignored_keys, timeout_ms,
         retention_ms, status, progress_step, started_at, admitted_at, deadline_at, lease_owner, lease_epoch, lost_leases)
       values ($1, gen_random_uuid(), $2, 'bp', 1, 'key', '{}', '[]', 1000, 1000, $3, $3,
         case when $3 = 'running' then app_now() end, app_now(), app_now(), $4, $5, 1)`,
      [lease.runId, ACCOUNT, status, lease.owner, lease.epoch],
    );
    if (entry === "run_step")
      await tx.query(
        `insert into run_step (account_id, run_id, node_id, status, epoch) values ($1, $2, $3, 'started', $4)`,
        [ACCOUNT, lease.runId, NODE, lease.epoch],
      );
    if (entry === "run_poll")
      await tx.query(`insert into run_poll (account_id, run_id, node_id, ordinal) values ($1, $2, $3, 0)`, [
        ACCOUNT,
        lease.runId,
        NODE,
      ]);
    if (entry === "live_picture")
      await tx.query(
        `insert into live_picture (run_id, watched_until) values ($1, app_now() + interval '1 hour')`,
        [lease.runId],
      );
    if (entry === "run_write")
      await tx.query(
        `insert into run_write (account_id, run_id, node_id, ordinal, status, epoch) values ($1, $2, $3, 0, 'started', $4)`,
        [ACCOUNT, lease.runId, NODE, lease.epoch],
      );
  });
  return lease;
}

/** All rows of the tables that a run has, as text. */
async function rows(tables: readonly string[] = TABLES): Promise<readonly string[]> {
  const texts = await Promise.all(
    tables.map(
      async (table) =>
        await database.db.query<{ row: string }>(
          `select '${table} ' || t::text as row from ${table} t order by 1`,
        ),
    ),
  );
  return texts.flat().map(({ row }) => row);
}

/** How a lease ends without its holder. */
const LOST: Readonly<Record<string, string>> = {
  "another epoch": `update run set lease_epoch = lease_epoch + 1 where id = $1`,
  "another owner": `update run set lease_owner = 'wrk_other' where id = $1`,
  "nobody as its owner": `update run set lease_owner = null where id = $1`,
  "an end": `update run set status = 'cancelled', progress_step = 'cancelled', ended_at = app_now(), lease_owner = null where id = $1`,
};

for (const [name, fenced] of Object.entries(CASES)) {
  test(`${name} changes what it should under a good lease`, async () => {
    const lease = await plant(fenced);
    const before = await rows();
    const answer = await fenced.call(database.db, lease, lease.runId);
    assert.ok(answer === true || answer === undefined);
    assert.notDeepEqual(await rows(), before);
  });

  if (!fenced.fencedByEntryAlone) {
    for (const [how, lose] of Object.entries(LOST)) {
      test(`${name} changes nothing when the run has ${how}`, async () => {
        const lease = await plant(fenced);
        await database.db.query(lose, [lease.runId]);
        const before = await rows();
        const answer = await fenced.call(database.db, lease, lease.runId);
        assert.ok(answer === false || answer === undefined);
        assert.deepEqual(await rows(), before);
      });
    }
  }

  const { entry } = fenced;
  // A poll has no epoch of its own: what it says is the same no matter which worker has the run. Nor has a live picture, of which only the last counts.
  if (entry !== undefined && entry !== "run_poll" && entry !== "live_picture") {
    test(`${name} leaves an entry alone that another lease has begun`, async () => {
      const lease = await plant(fenced);
      await database.db.query(`update ${entry} set epoch = epoch + 1 where run_id = $1`, [lease.runId]);
      const before = await rows([entry]);
      const answer = await fenced.call(database.db, lease, lease.runId);
      assert.ok(answer === false || answer === undefined);
      assert.deepEqual(await rows([entry]), before);
    });
  }
}

test("endWrite: what a lost lease finds out is noted, and counts for nothing in the run", async () => {
  for (const lose of Object.values(LOST)) {
    const lease = await plant(CASES["endWrite"] ?? assert.fail());
    await database.db.query(lose, [lease.runId]);
    const before = await rows(["run"]);
    assert.equal(await CASES["endWrite"]?.call(database.db, lease, ""), true);
    assert.deepEqual(await rows(["run"]), before);
  }
});

test("endWrite: a write about which the operator is asked is left to the operator, unless the lease is still held", async () => {
  const doubt = async (lease: Lease): Promise<void> =>
    void (await database.db.query(
      "update run_write set status = 'in_doubt', ended_at = app_now() where run_id = $1",
      [lease.runId],
    ));
  const lost = await plant(CASES["endWrite"] ?? assert.fail());
  await doubt(lost);
  await database.db.query("update run set lease_epoch = lease_epoch + 1 where id = $1", [lost.runId]);
  const before = await rows();
  assert.equal(await CASES["endWrite"]?.call(database.db, lost, ""), false);
  assert.deepEqual(await rows(), before);
  const held = await plant(CASES["endWrite"] ?? assert.fail());
  await doubt(held);
  assert.equal(await CASES["endWrite"]?.call(database.db, held, ""), true);
});

test("endWrite: a write ends no earlier than it began, though the database's clock was set back", async () => {
  const lease = await plant(CASES["endWrite"] ?? assert.fail());
  await database.db.query(
    "update run_write set started_at = app_now() + interval '1 minute' where run_id = $1",
    [lease.runId],
  );
  assert.equal(await CASES["endWrite"]?.call(database.db, lease, ""), true);
  assert.deepEqual(
    await database.db.query("select ended_at >= started_at as is from run_write where run_id = $1", [
      lease.runId,
    ]),
    [{ is: true }],
  );
});

test("failIdleRunsOf: a run ends no earlier than it began, though the database's clock was set back", async () => {
  const { runId } = await plant({ call: async () => {} });
  await database.db.transaction(async (tx) => {
    await tx.query("set local session_replication_role = replica");
    await tx.query(
      `update run set lease_owner = null, started_at = app_now() + interval '1 minute' where id = $1`,
      [runId],
    );
    await tx.query(
      `insert into run_credential (account_id, run_id, slot, credential_id, strategy_id, strategy_version) values ($1, $2, 'it', 'cred_gone', 'strat_it', 1)`,
      [ACCOUNT, runId],
    );
  });
  const failed = await failIdleRunsOf(database.db, ["cred_gone"]);
  assert.deepEqual(failed, [{ id: runId, credentialId: "cred_gone" }]);
  const [{ ended } = { ended: false }] = await database.db.query<{ ended: boolean }>(
    "select ended_at >= started_at as ended from run where id = $1",
    [runId],
  );
  assert.ok(ended);
});

test("whatever ends a run without its worker, a write that was under way is in doubt from then on, until its answer comes", async () => {
  for (const ended of ["failed", "cancelled"]) {
    const lease = await plant(CASES["endWrite"] ?? assert.fail());
    await database.db.query(
      `update run set status = $2, progress_step = $2, ended_at = app_now(), lease_owner = null,
         error_kind = case when $2 = 'failed' then 'timeout' end where id = $1`,
      [lease.runId, ended],
    );
    const status = async (): Promise<unknown> =>
      await database.db.query(`select status from run_write where run_id = $1`, [lease.runId]);
    assert.deepEqual(await status(), [{ status: "in_doubt" }]);
    assert.equal(await CASES["endWrite"]?.call(database.db, lease, ""), true);
    assert.deepEqual(await status(), [{ status: "done" }]);
  }
});

test("startStep begins a step of an earlier lease anew, and leaves one that is done", async () => {
  const lease = await plant({ entry: "run_step", call: async () => {} });
  await database.db.query(`update run_step set epoch = epoch - 1 where run_id = $1`, [lease.runId]);
  assert.equal(await CASES["startStep"]?.call(database.db, lease, ""), true);
  await database.db.query(`update run_step set status = 'done', ended_at = app_now() where run_id = $1`, [
    lease.runId,
  ]);
  const before = await rows();
  assert.equal(await CASES["startStep"]?.call(database.db, lease, ""), false);
  assert.deepEqual(await rows(), before);
});

test("every function of src/db that knows of leases is in one of the two tables", () => {
  const found = readdirSync(FOLDER, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && file !== "runs/lease.ts")
    .flatMap((file) => declarations(readFileSync(join(FOLDER, file), "utf8")))
    .filter(({ text }) => /Lease|lease_|HELD/.test(text))
    .map(({ name }) => name);
  const listed = [...Object.keys(CASES), ...Object.keys(OTHERS)];
  assert.deepEqual(
    found.toSorted((a, b) => a.localeCompare(b)),
    listed.toSorted((a, b) => a.localeCompare(b)),
  );
});

/** The functions that a file exports, each with its text up to the next thing at the beginning of a line. */
function declarations(source: string): readonly { readonly name: string; readonly text: string }[] {
  return source.split(/^(?=export )/m).flatMap((text) => {
    const name = /^export (?:async )?(?:function|const) (\w+)/.exec(text)?.[1];
    return name === undefined
      ? []
      : [{ name, text: text.split(/^(?=\/\*\*|const |function |async function )/m)[0] ?? "" }];
  });
}
