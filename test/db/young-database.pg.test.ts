// A new or just restored database has no statistics until autovacuum comes. What PostgreSQL plans without them must not read more the more
// runs there are: a reference to a run was once checked by reading all runs of its account.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { openPool } from "#db/connection/pool.ts";
import { insertRunTogether, type NewRun } from "#db/runs/new-runs.ts";
import { newId } from "#lib/new-id.ts";
import { cpuSecondsOf } from "../../bench/cpu.ts";
import { eventually } from "../eventually.ts";
import { install } from "../service.ts";
import { testInAll } from "../tiers.ts";

const AT_ONCE = 50;
/** Entries of the indexes of `run` that a trigger of one input may read. */
const READS_MAX = 10;

const INPUT = {
  refKey: "a",
  kind: "text",
  content: Buffer.from("[]"),
  blobKey: null,
  filename: null,
  contentType: null,
  sizeBytes: 2,
  sha256: null,
} as const;

/** An installation without statistics, and the statement that triggers share. */
async function openYoung() {
  const installation = await install();
  await installation.apply(
    "account: acme",
    `blueprint: young
account: acme
nodes:
  - { id: a, type: input, refKey: a }
  - { id: rows, type: parse, from: a, format: json }
  - { id: out, type: output, refKey: out, from: rows }`,
  );
  await installation.createKey("acme");
  const { connectionString, db } = installation.database;
  const [made] = await db.query<Pick<NewRun, "accountId" | "blueprintId" | "apiKeyId">>(
    `select blueprint.account_id as "accountId", blueprint.id as "blueprintId", api_key.id as "apiKeyId" from blueprint, api_key`,
  );
  assert.ok(made);
  const name = `young-${newId("run_")}`;
  const service = openPool({ connectionString }, { applicationName: name, max: 2 });
  const trigger = async (): Promise<boolean> => {
    const run = {
      id: newId("run_"),
      runKey: randomUUID(),
      blueprintVersion: 1,
      againOf: null,
      operatorId: null,
    };
    const rest = {
      name: null,
      metadata: "{}",
      ignoredKeys: [],
      timeoutMs: 60_000,
      retentionMs: 60_000,
      queue: null,
      group: null,
      traceparent: null,
      scheduleId: null,
    };
    return await insertRunTogether(
      service,
      { ...made, ...run, ...rest, credentials: [], inputs: [INPUT] },
      null,
    );
  };
  const sessions = async (): Promise<readonly number[]> =>
    (
      await db.query<{ pid: number }>("select pid from pg_stat_activity where application_name = $1", [name])
    ).map(({ pid }) => pid);
  return {
    db,
    sessions,
    trigger: async (runs: number): Promise<void> => {
      for (let count = 0; count < runs; count += AT_ONCE)
        assert.ok((await Promise.all(Array.from({ length: AT_ONCE }, trigger))).every(Boolean));
    },
    end: async () => await service.end(),
    [Symbol.asyncDispose]: async () => {
      await service.end();
      await installation[Symbol.asyncDispose]();
    },
  };
}

test("the thousandth trigger of a database without statistics reads as little as the first", async () => {
  await using young = await openYoung();
  const runs = 1_000;
  await young.trigger(runs);
  await young.end();
  // A session tells what it has read when it ends.
  await eventually("its sessions have ended", async () => (await young.sessions()).length === 0 || undefined);
  const read = await young.db.query<{ index: string; entries: number }>(
    `select indexrelname as index, idx_tup_read::int as entries from pg_stat_user_indexes where relname = 'run' and idx_tup_read > 0`,
  );
  const entries = read.reduce((sum, each) => sum + each.entries, 0);
  const [told] = await young.db.query<{ runs: number }>(
    `select n_tup_ins::int as runs from pg_stat_user_tables where relname = 'run'`,
  );
  assert.equal(told?.runs, runs, "the sessions have told what they did");
  assert.ok(entries <= READS_MAX * runs, `${entries / runs} entries for each: ${JSON.stringify(read)}`);
});

testInAll(
  "how many entries of indexes a thousand triggers read",
  "the first 5,000 triggers cost PostgreSQL at most 1.3 times those after ANALYZE",
  { timeout: 120_000 },
  async (t) => {
    await using young = await openYoung();
    const cost = async (): Promise<number> => {
      const pids = await young.sessions();
      const before = cpuSecondsOf(pids);
      await young.trigger(5_000);
      return cpuSecondsOf(pids) - before;
    };
    await young.trigger(2 * AT_ONCE);
    const first = await cost();
    await young.db.query("analyze");
    await young.trigger(2 * AT_ONCE);
    const later = await cost();
    t.diagnostic(`${(first * 200).toFixed(0)} and ${(later * 200).toFixed(0)} µs each`);
    assert.ok(first <= 1.3 * later, `${first} s of CPU, then ${later} s`);
  },
);
