// What happens to the whole database is no sign against a worker: its runs keep their leases, and read nothing twice.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { moveClock } from "../clock.ts";
import { eventually } from "../eventually.ts";
import { blueprint, openBench, type Bench } from "../documents/bench.ts";
import { assertInvariants } from "../invariants.ts";

const PATIENCE_MS = 60_000;
/** Some looks of each worker at the others. */
const LOOKS_MS = 1_500;

let bench: Bench;

before(async () => {
  bench = await openBench([
    blueprint(
      "reads",
      `- { id: items, type: http, request: { url: "{TARGET}/items" }, records: $ }
- { id: out, type: output, refKey: out, from: items }`,
      "hosts: ['{TARGET}']",
    ),
  ]);
  await bench.installation.serve({}, ["worker"]);
});
after(async () => await bench?.[Symbol.asyncDispose]());

const db = () => bench.installation.database.db;

/** Runs that read while something happens: each has asked once, and has its first lease, when they end. */
async function whileReading(happens: () => Promise<void>): Promise<void> {
  const gate = Promise.withResolvers<void>();
  const before = bench.target.seen("GET /items").length;
  const asked = (): number => bench.target.seen("GET /items").length - before;
  bench.target.on("GET /items", async () => {
    await gate.promise;
    return { json: [] };
  });
  const ids = await Promise.all(
    Array.from({ length: 6 }, async () => (await bench.trigger("reads")).body.id as string),
  );
  await eventually("all read", async () => asked() === ids.length || undefined, PATIENCE_MS);
  await happens();
  gate.resolve();
  for (const id of ids) assert.equal((await bench.ended(id)).status.status, "completed");
  assert.equal(asked(), ids.length, "nothing was read again");
  const leases = await db().query(
    "select lease_epoch, lost_leases, count(*)::int as runs from run where id = any($1) group by 1, 2",
    [ids],
  );
  assert.deepEqual(leases, [{ lease_epoch: 1, lost_leases: 0, runs: ids.length }]);
  await assertInvariants(bench.installation);
}

const workers = async (): Promise<readonly string[]> =>
  (await db().query<{ id: string }>("select id from worker order by id")).map(({ id }) => id);

test("a clock that steps by more than a worker may be silent costs no lease", async () => {
  const known = await workers();
  assert.equal(known.length, 2);
  await whileReading(async () => {
    await moveClock(db(), "16 seconds");
    await sleep(LOOKS_MS);
    await moveClock(db(), "-16 seconds");
    await sleep(LOOKS_MS);
  });
  await moveClock(db(), "0 seconds");
  assert.deepEqual(await workers(), known);
});

test("when all connections that say 'alive' are cut, the workers take their locks anew and go on with their runs", async () => {
  const known = await workers();
  const keys = async (): Promise<readonly unknown[]> =>
    await db().query("select lock_key, id from worker order by id");
  const before = await keys();
  await whileReading(async () => {
    const cut = await db().query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'latchkey liveness' and datname = current_database()",
    );
    assert.equal(cut.length, known.length);
    await eventually(
      "each has another lock",
      async () => {
        const now = await keys();
        return now.every((row, index) => JSON.stringify(row) !== JSON.stringify(before[index])) || undefined;
      },
      PATIENCE_MS,
    );
    await sleep(LOOKS_MS);
  });
  assert.deepEqual(await workers(), known);
});
