// docs/decisions/0007: concurrent writes of a worker are one statement. Each is fenced by itself: a lease that was lost,
// or a row that the database refuses, changes nothing for its neighbours.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Database } from "#db/connection/pool.ts";
import { admitRuns } from "#db/runs/admission.ts";
import type { Lease } from "#db/runs/lease.ts";
import { completeRun, type NewResult } from "#db/runs/run-results.ts";
import { failStep, finishStep, startStep, type FinishedStep } from "#db/runs/run-steps.ts";
import { failRun, moveStep, startRun } from "#db/runs/runs.ts";
import type { Installation } from "../service.ts";
import { installForRuns } from "./any-blueprint.ts";

const OWNER = "worker_test";
const NODE = "read";

let installation: Installation & AsyncDisposable;
let db: Database;
let accountId: string;

before(async () => {
  ({ installation, db, accountId } = await installForRuns());
});
after(async () => await installation?.[Symbol.asyncDispose]());

let inserted = 0;

/** Runs that are `running` under leases of this process; that of the third was lost to another worker meanwhile. */
async function leases(): Promise<readonly Lease[]> {
  const first = inserted;
  inserted += 5;
  await db.query(
    `insert into run (id, run_key, account_id, blueprint_id, blueprint_version, api_key_id, metadata, ignored_keys,
       timeout_ms, retention_ms)
     select 'run_test' || i, gen_random_uuid(), $1, blueprint.id, 1, api_key.id, '{}', '[]', 1800000, 2592000000
     from blueprint, api_key, generate_series($2::int, $2::int + 4) i`,
    [accountId, first],
  );
  const { runs } = await admitRuns(db, accountId, OWNER, 5);
  assert.equal(runs.length, 5);
  const held = runs.map(({ id, epoch }) => ({ runId: id, owner: OWNER, epoch }));
  await db.query("update run set lease_epoch = lease_epoch + 1 where id = $1", [held[2]?.runId]);
  return held;
}

interface Row {
  readonly status: string;
  readonly step: string;
  readonly owner: string | null;
  readonly results: number;
  readonly steps: readonly string[];
}

async function rowsOf(held: readonly Lease[]): Promise<readonly (Row | undefined)[]> {
  const rows = await db.query<Row & { id: string }>(
    `select id, status, progress_step as step, lease_owner as owner,
       (select count(*)::int from run_result where run_id = run.id) as results,
       array(select status from run_step where run_id = run.id) as steps
     from run where id = any($1)`,
    [held.map(({ runId }) => runId)],
  );
  return held.map(({ runId }) => {
    const found = rows.find(({ id }) => id === runId);
    if (!found) return undefined;
    const { id: _id, ...row } = found;
    return row;
  });
}

const result = (key: string): NewResult => ({
  key,
  totalRecords: 0,
  jsonBytes: 2,
  content: Buffer.from("{}"),
  blob: null,
});
const finished = (lease: Lease): FinishedStep => ({
  lease,
  accountId,
  nodeId: NODE,
  outputKind: "text",
  output: Buffer.from("x"),
  blob: null,
  filename: null,
  contentType: null,
  recordsTotal: null,
  recordsValid: null,
  log: "",
  tookMs: 5,
  tally: null,
});
const RUNNING: Row = { status: "running", step: "running", owner: OWNER, results: 0, steps: [] };

/** What each grouped write does to a run that is held. */
const writes: Record<string, { write: (lease: Lease) => Promise<boolean>; gives: Row }> = {
  moveStep: {
    write: async (lease) => await moveStep(db, { lease, step: "reading" }),
    gives: { ...RUNNING, step: "reading" },
  },
  startRun: { write: async (lease) => await startRun(db, { lease }), gives: RUNNING },
  failRun: {
    write: async (lease) => await failRun(db, { lease, kind: "data", detail: "no", tally: null }),
    gives: { ...RUNNING, status: "failed", step: "failed", owner: null },
  },
  completeRun: {
    write: async (lease) =>
      await completeRun(db, {
        lease,
        accountId,
        responseBytes: 9,
        results: [result("a"), result("b")],
        tally: null,
      }),
    gives: { ...RUNNING, status: "completed", step: "completed", owner: null, results: 2 },
  },
  startStep: {
    write: async (lease) => await startStep(db, { lease, accountId, nodeId: NODE }),
    gives: { ...RUNNING, steps: ["started"] },
  },
  "finishStep of one that only reads": {
    write: async (lease) => await finishStep(db, finished(lease)),
    gives: { ...RUNNING, steps: ["done"] },
  },
  failStep: {
    write: async (lease) => await failStep(db, { lease, accountId, nodeId: NODE, detail: "no", tookMs: 5 }),
    gives: { ...RUNNING, steps: ["failed"] },
  },
  finishStep: {
    write: async (lease) =>
      (await startStep(db, { lease, accountId, nodeId: NODE })) && (await finishStep(db, finished(lease))),
    gives: { ...RUNNING, steps: ["done"] },
  },
};

for (const [name, { write, gives }] of Object.entries(writes)) {
  test(`${name}: a lease that was lost in the middle of a batch changes nothing, and only there`, async () => {
    const held = await leases();
    assert.deepEqual(await Promise.all(held.map(write)), [true, true, false, true, true]);
    assert.deepEqual(await rowsOf(held), [gives, gives, RUNNING, gives, gives]);
    // A process with neither owner nor epoch of the present lease is ignored after it, too.
    const [first] = held;
    assert.ok(first);
    assert.equal(await write({ ...first, owner: "worker_other" }), false);
    assert.equal(await write({ ...first, epoch: first.epoch - 1 }), false);
    assert.deepEqual((await rowsOf([first]))[0], gives);
  });
}

/** Holds the rows as another transaction would, until it is told. */
async function holdRows(lock: string, values: readonly unknown[]): Promise<() => Promise<void>> {
  const client = await db.pool.connect();
  await client.query("begin");
  await client.query(lock, [...values]);
  return async () => {
    await client.query("rollback");
    client.release();
  };
}

for (const [name, { write, gives }] of Object.entries(writes)) {
  test(`${name}: a run whose row another transaction holds keeps its own call waiting, and no other`, async () => {
    const held = (await leases()).filter((_lease, index) => index !== 2);
    const [first, ...others] = held;
    const release = await holdRows("select from run where id = $1 for update", [first?.runId]);
    const order: number[] = [];
    const written = held.map(async (lease, index) => {
      assert.equal(await write(lease), true);
      order.push(index);
    });
    await Promise.all(written.slice(1));
    assert.equal(order.includes(0), false);
    assert.deepEqual(
      await rowsOf(others),
      others.map(() => gives),
    );
    await release();
    await written[0];
    assert.deepEqual(
      await rowsOf(held),
      held.map(() => gives),
    );
  });
}

test("finishStep: a step whose lease was lost after it was started stays as it was", async () => {
  const held = await leases();
  const started = await Promise.all(
    held.map(async (lease) => await startStep(db, { lease, accountId, nodeId: NODE })),
  );
  assert.equal(started.filter(Boolean).length, 4);
  await db.query("update run set lease_epoch = lease_epoch + 1 where id = $1", [held[1]?.runId]);
  const ended = await Promise.all(held.map(async (lease) => await finishStep(db, finished(lease))));
  assert.deepEqual(ended, [true, false, false, true, true]);
  const rows = await rowsOf(held);
  assert.deepEqual(
    rows.map((row) => row?.steps),
    [["done"], ["started"], [], ["done"], ["done"]],
  );
});

test("finishStep: an object is stored, and the count of lost leases reset, whatever the neighbours need", async () => {
  const held = (await leases()).filter((_lease, index) => index !== 2);
  await db.query("update run set lost_leases = 2 where id = any($1)", [held.map(({ runId }) => runId)]);
  const blob = { key: `steps/${accountId}/test`, sizeBytes: 3, sha256: Buffer.alloc(32) };
  const more: readonly Partial<FinishedStep>[] = [
    { hasLost: false },
    { hasLost: true },
    { hasLost: false, output: null, blob },
    {},
  ];
  for (const batch of [[0], [0, 1], [2, 3]])
    await Promise.all(
      batch.map(async (at) => {
        const lease = held[at] as Lease;
        return await finishStep(db, { ...finished(lease), nodeId: `${NODE}${batch.length}`, ...more[at] });
      }),
    );
  const rows = await db.query(
    `select (select count(*)::int from run_step where run_id = run.id) as steps, lost_leases as lost,
       (select key from blob where run_id = run.id) as key from run where id = any($1) order by array_position($1, id)`,
    [held.map(({ runId }) => runId)],
  );
  assert.deepEqual(rows, [
    { steps: 2, lost: 0, key: null },
    { steps: 1, lost: 0, key: null },
    { steps: 1, lost: 0, key: blob.key },
    { steps: 1, lost: 0, key: null },
  ]);
});

test("a waiting run whose row another transaction holds is passed over, and is admitted at a later look", async () => {
  const held = inserted;
  inserted += 3;
  await db.query(
    `insert into run (id, run_key, account_id, blueprint_id, blueprint_version, api_key_id, metadata, ignored_keys,
       timeout_ms, retention_ms)
     select 'run_test' || i, gen_random_uuid(), $1, blueprint.id, 1, api_key.id, '{}', '[]', 1800000, 2592000000
     from blueprint, api_key, generate_series($2::int, $2::int + 2) i`,
    [accountId, held],
  );
  const release = await holdRows("select from run where id = $1 for update", [`run_test${held}`]);
  const ids = async (): Promise<readonly string[]> =>
    (await admitRuns(db, accountId, OWNER, 3)).runs.map(({ id }) => id).toSorted();
  assert.deepEqual(await ids(), [`run_test${held + 1}`, `run_test${held + 2}`]);
  await release();
  assert.deepEqual(await ids(), [`run_test${held}`]);
});

test("a write that the database refuses fails alone: its neighbours in the batch are done", async () => {
  const held = (await leases()).filter((_lease, index) => index !== 2);
  const completed = await Promise.allSettled(
    held.map(
      async (lease, index) =>
        await completeRun(db, {
          lease,
          accountId,
          responseBytes: 9,
          tally: null,
          // The same key twice: the row of the second can't be written.
          results: [result("a"), result(index === 1 ? "a" : "b")],
        }),
    ),
  );
  assert.deepEqual(
    completed.map(({ status }) => status),
    ["fulfilled", "rejected", "fulfilled", "fulfilled"],
  );
  const ended: Row = { ...RUNNING, status: "completed", step: "completed", owner: null, results: 2 };
  assert.deepEqual(await rowsOf(held), [ended, RUNNING, ended, ended]);
});
