// A list of runs answers as quickly with many runs as with few. `LATCHKEY_PLANTED_RUNS=1000000` for the numbers of docs/performance.md.
import assert from "node:assert/strict";
import { availableParallelism, loadavg } from "node:os";
import { after, before, test } from "node:test";
import { getCredential } from "#actions/operators/list-credentials.ts";
import { getBlueprintHealth } from "#actions/operators/get-health.ts";
import { getOverview } from "#actions/operators/get-overview.ts";
import { getRun, listRuns, type RunQuery } from "#actions/operators/list-runs.ts";
import { searchAll } from "#actions/operators/search.ts";
import { indexRuns } from "#actions/upkeep/index-runs.ts";
import type { TestDatabase } from "../database.ts";
import { testInAll, tier } from "../tiers.ts";
import { openPlanted } from "./plant-rows.ts";

const RUNS = Number(process.env["LATCHKEY_PLANTED_RUNS"] ?? (tier === "all" ? 100_000 : 20_000));
const ROUNDS = 20;
/** More than are looked up by their ids, and none of the newest. */
const OLD = 1_500;
/** The credential of all runs. */
const CREDENTIAL = `cred_${"0".repeat(28)}`;
let database: TestDatabase;

before(async () => {
  database = await openPlanted(PLANTS, "run");
});

after(async () => await database?.drop());

/** Two accounts, ten Blueprints; most runs completed, one in a thousand failed, names and metadata of their own. */
const PLANTS = [
  `insert into account (id, slug, document, name, allowed_origins, session_lifetime_ms, retention_ms, concurrency)
   select 'acct_' || n, 'account-' || n, '{}', 'n', '{}', 1, 1, 1 from generate_series(0, 1) n`,
  `insert into blueprint (id, account_id, key, current_version, retired)
   select 'bp_' || n, 'acct_' || n % 2, 'blueprint-' || n, 1, false from generate_series(0, 9) n`,
  `insert into run (id, run_key, account_id, blueprint_id, blueprint_version, api_key_id, name, metadata, ignored_keys, status,
     progress_step, created_at, started_at, ended_at, timeout_ms, retention_ms, error_kind, response_bytes)
   select 'run_' || lpad(n::text, 28, '0'), gen_random_uuid(), 'acct_' || n % 2, 'bp_' || n % 10, 1, 'key_1',
     convert_to('run ' || n, 'UTF8'), convert_to('{"po":"po-' || n || '","kind":"same"' || case when n > ${RUNS - OLD} then ',"era":"old"' else '' end || '}', 'UTF8'), '[]',
     case when n % 1000 = 7 then 'failed' else 'completed' end, 'x', at, at, at, 1, 1,
     case when n % 1000 = 7 then 'target' end, case when n % 1000 <> 7 then 2 end
   from (select n, app_now() - n * interval '1 second' as at from generate_series(1, ${RUNS}) n) planted`,
  `insert into credential (id, account_id, strategy_id, session_id, sealed, kid)
   values ('${CREDENTIAL}', 'acct_0', 'strat_0', 'sess_0', '', 'key')`,
  `insert into run_credential (account_id, run_id, slot, credential_id, strategy_id, strategy_version)
   select 'acct_0', id, 'it', '${CREDENTIAL}', 'strat_0', 1 from run`,
  "analyze run_credential",
];

const QUERIES: Readonly<Record<string, RunQuery>> = {
  "the first page": {},
  "a rare state": { status: "failed" },
  "a state that none has": { status: "queued" },
  "the usual state": { status: "completed" },
  "an account": { account: "account-1" },
  "a Blueprint": { blueprint: "blueprint-3" },
  "a name": { run_name: `run ${RUNS - 5}` },
  "a name that none has": { run_name: "nobody" },
  metadata: { metadata: `po=po-${RUNS - 5}` },
  "metadata that all have": { metadata: "kind=same" },
  "metadata that none has": { metadata: "po=none" },
  "one id": { id: `run_${String(RUNS - 5).padStart(28, "0")}` },
  "a time": { since: "2020-01-01", until: "2100-01-01", status: "failed", account: "account-1" },
};

test("every filter finds what it should", async () => {
  const found = async (query: RunQuery): Promise<number> =>
    (await listRuns(database.db, query, null)).items.length;
  const counts: Record<string, number> = {};
  for (const [what, query] of Object.entries(QUERIES)) counts[what] = await found({ ...query, limit: 5 });
  assert.deepEqual(counts, {
    "the first page": 5,
    "a rare state": 5,
    "a state that none has": 0,
    "the usual state": 5,
    "an account": 5,
    "a Blueprint": 5,
    "a name": 1,
    "a name that none has": 0,
    metadata: 1,
    "metadata that all have": 5,
    "metadata that none has": 0,
    "one id": 1,
    "a time": 5,
  });
});

test("metadata that many old runs have finds all of them, newest first", async () => {
  const first = await listRuns(database.db, { metadata: "era=old", limit: 200 }, null);
  const rest = await listRuns(
    database.db,
    { metadata: "era=old", limit: 200, cursor: first.next_cursor ?? "" },
    null,
  );
  const ids = [...first.items, ...rest.items].map(({ id }) => Number(id.slice("run_".length)));
  const expected = Array.from({ length: 400 }, (_, index) => RUNS - OLD + 1 + index);
  assert.deepEqual(ids, expected);
});

test("pages follow each other without a gap, also deep in the list", async () => {
  const first = await listRuns(database.db, { limit: 200 }, null);
  const second = await listRuns(database.db, { limit: 200, cursor: first.next_cursor ?? "" }, null);
  const ids = [...first.items, ...second.items].map(({ id }) => id);
  assert.deepEqual(
    ids,
    Array.from({ length: 400 }, (_, at) => `run_${String(at + 1).padStart(28, "0")}`),
  );
});

test("no filter reads all runs, however rare what it looks for is", async (context) => {
  for (const [what, query] of Object.entries(QUERIES)) {
    const times: number[] = [];
    const before = await tuplesRead();
    for (let round = 0; round < ROUNDS; round++) {
      const since = performance.now();
      await listRuns(database.db, query, null);
      times.push(performance.now() - since);
    }
    const read = (await tuplesRead()) - before;
    const p95 = times.toSorted((a, b) => a - b)[Math.floor(ROUNDS * 0.95) - 1] ?? 0;
    context.diagnostic(`${what}: p95 ${p95.toFixed(1)} ms of ${RUNS} runs`);
    assert.ok(read < RUNS, `${what}: ${read} rows were read by scanning in ${ROUNDS} rounds`);
  }
});

test("a run's page, and the last hours in numbers, are as quick", async (context) => {
  const id = `run_${String(RUNS - 5).padStart(28, "0")}`;
  const looks: Readonly<Record<string, () => Promise<unknown>>> = {
    "a credential of all runs": async () => await getCredential(database.db, CREDENTIAL),
    "a Blueprint's health": async () =>
      await getBlueprintHealth(database.db, { account: "account-1", name: "blueprint-3" }, {}),
    "the runs of a credential": async () => await listRuns(database.db, { credential: CREDENTIAL }, null),
    "a run": async () => await getRun(database.db, id, true),
    "a day in numbers": async () => await getOverview(database.db, 24, null),
    "a week in numbers": async () => await getOverview(database.db, 168, null),
  };
  for (const [what, look] of Object.entries(looks)) {
    const first = performance.now();
    await look();
    context.diagnostic(`${what}: the first time ${(performance.now() - first).toFixed(0)} ms`);
    const times: number[] = [];
    const before = await tuplesRead();
    for (let round = 0; round < ROUNDS; round++) {
      const since = performance.now();
      await look();
      times.push(performance.now() - since);
    }
    const read = (await tuplesRead()) - before;
    const p95 = times.toSorted((a, b) => a - b)[Math.floor(ROUNDS * 0.95) - 1] ?? 0;
    context.diagnostic(`${what}: p95 ${p95.toFixed(1)} ms of ${RUNS} runs`);
    assert.ok(read < RUNS, `${what}: ${read} rows were read by scanning in ${ROUNDS} rounds`);
  }
});

const SEARCH_MS_MAX = 100;
const TRIES = 5;

/** On a machine that does other things as well, each waits for its turn. */
const limitMs = (): number => SEARCH_MS_MAX * Math.max(1, (loadavg()[0] ?? 0) / availableParallelism());

/** Of several tries, if it must be. */
async function bestP95(look: () => Promise<unknown>): Promise<number> {
  let best = Infinity;
  for (let attempt = 0; attempt < TRIES && best > SEARCH_MS_MAX; attempt++) {
    const times: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const since = performance.now();
      await look();
      times.push(performance.now() - since);
    }
    best = Math.min(best, times.toSorted((a, b) => a - b)[Math.floor(ROUNDS * 0.95) - 1] ?? Infinity);
  }
  return best;
}

const TEXTS = [`run ${RUNS - 5}`, `PO-${RUNS - 7}`, "same", "old", "nobody has this", "ru"];

testInAll(
  "what a search finds, in operator/run-nodes",
  "a search takes at most 100 ms, whether its text is rare, old, everywhere or nowhere",
  { timeout: 300_000 },
  async (context) => {
    await indexRuns({ db: database.db }, null);
    await database.db.query("analyze run_search");
    for (const text of TEXTS) {
      const looks = {
        search: async () => (await searchAll(database.db, "admin", text, null)).runs.length,
        list: async () => (await listRuns(database.db, { q: text, limit: 50 }, null)).items.length,
      };
      for (const [what, look] of Object.entries(looks)) {
        const found = await look();
        assert.equal(found > 0, text !== "nobody has this", text);
        const p95 = await bestP95(look);
        context.diagnostic(`${what} for "${text}": ${found} found, p95 ${p95.toFixed(1)} ms of ${RUNS} runs`);
        assert.ok(p95 <= limitMs(), `${what} for ${text}: ${p95} ms`);
      }
    }
  },
);

/** Rows of `run` that sequential scans have read. */
async function tuplesRead(): Promise<number> {
  await database.db.query("select pg_stat_force_next_flush()");
  await database.db.query("select pg_stat_clear_snapshot()");
  const rows = await database.db.query<{ read: number }>(
    "select seq_tup_read::float8 as read from pg_stat_user_tables where relname = 'run'",
  );
  return rows[0]?.read ?? 0;
}
