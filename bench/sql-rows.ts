/** The rows of each kind of request, written or read by group-committed SQL alone: no HTTP, no authentication, no checks. */
import { createHash, randomUUID } from "node:crypto";
import { openPool, type Database } from "#db/connection/pool.ts";
import { systemClock } from "#lib/clock.ts";
import { groupCommit } from "#lib/group-commit.ts";
import { newId } from "#lib/new-id.ts";

/** What the SQL of a scenario works with. */
export interface SqlWork {
  readonly connectionString: string;
  readonly scenario: SqlScenario;
  readonly callers: number;
  readonly rows: SqlRows;
}

/** What the rows refer to. */
export interface SqlRows {
  readonly accountId: string;
  readonly apiKeyId: string;
  readonly blueprintId: string;
  readonly strategyId: string;
  readonly runIds: readonly string[];
  readonly resultRunIds: readonly string[];
  readonly storedKeys: readonly string[];
  readonly input: string;
}

export type SqlScenario = keyof typeof SCENARIOS;

type Batch = (db: Database, rows: SqlRows, count: number) => Promise<unknown>;

const BATCHES_MAX = 2;
const hash = (text: string): Buffer => createHash("sha256").update(text).digest();
const times = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make);

let turn = 0;
const inTurn = (count: number, from: readonly string[]): string[] =>
  times(count, () => from[turn++ % from.length] ?? "");

const INSERT_RUNS = `made as (insert into run (id, run_key, account_id, blueprint_id, blueprint_version, api_key_id, name, metadata,
    ignored_keys, timeout_ms, retention_ms)
  select id, run_key, $3, $4, 1, $5, '\\x4e', '\\x7b7d', '\\x5b5d', 3600000, 2592000000 from unnest($1::text[], $2::uuid[]) as given(id, run_key))
  insert into run_input (account_id, run_id, ref_key, kind, content) select $3, id, 'rows', 'text', $6 from unnest($1::text[]) as id`;

const insertRuns: Batch = async (db, rows, count) =>
  await db.query({
    name: "limit_insert_runs",
    text: `with ${INSERT_RUNS}`,
    values: [
      times(count, () => newId("run_")),
      times(count, randomUUID),
      rows.accountId,
      rows.blueprintId,
      rows.apiKeyId,
      Buffer.from(rows.input),
    ],
  });

const insertKeyedRuns: Batch = async (db, rows, count) => {
  const ids = times(count, () => newId("run_"));
  const uuids = times(count, randomUUID);
  await db.query({
    name: "limit_insert_keyed_runs",
    text: `with keyed as (insert into idempotency_key (account_id, key_hash, fingerprint, expires_at, status, body)
        select $3, key_hash, key_hash, app_now() + interval '1 day', 202, body
        from unnest($7::bytea[], $8::bytea[]) as given(key_hash, body) on conflict do nothing), ${INSERT_RUNS}`,
    values: [
      ids,
      uuids,
      rows.accountId,
      rows.blueprintId,
      rows.apiKeyId,
      Buffer.from(rows.input),
      times(count, () => hash(randomUUID())),
      ids.map((id, index) => Buffer.from(`{"id":"${id}","run_key":"${uuids[index]}","status":"queued"}`)),
    ],
  });
};

const insertSessions: Batch = async (db, rows, count) =>
  await db.query({
    name: "limit_insert_sessions",
    text: `insert into credential_session (id, account_id, strategy_id, strategy_version, token_lookup, expires_at)
      select id, $3, $4, 1, lookup, app_now() + interval '7 days' from unnest($1::text[], $2::bytea[]) as given(id, lookup)`,
    values: [
      times(count, () => newId("sess_")),
      times(count, () => hash(randomUUID())),
      rows.accountId,
      rows.strategyId,
    ],
  });

const readRuns: Batch = async (db, rows, count) =>
  await db.query({
    name: "limit_read_runs",
    text: `select run.id, run_key, status, progress_step, created_at, started_at, ended_at, blueprint_id, blueprint.key
      from run join blueprint on blueprint.id = run.blueprint_id where run.account_id = $1 and run.id = any($2)`,
    values: [rows.accountId, inTurn(count, rows.runIds)],
  });

const readAnswers: Batch = async (db, rows, count) =>
  await db.query({
    name: "limit_read_answers",
    text: `select key_hash, fingerprint, status, body from idempotency_key
      where account_id = $1 and key_hash = any($2) and expires_at > app_now()`,
    values: [rows.accountId, inTurn(count, rows.storedKeys).map((key) => Buffer.from(key, "hex"))],
  });

const readResults: Batch = async (db, rows, count) =>
  await db.query({
    name: "limit_read_results",
    text: `select run.id, run_key, run.status, metadata, started_at, ended_at, response_bytes, purged_at,
        result.key, total_records, json_bytes, blob_key
      from unnest($2::text[]) as given(id) join run on run.account_id = $1 and run.id = given.id
        join run_result result on result.run_id = run.id`,
    values: [rows.accountId, inTurn(count, rows.resultRunIds)],
  });

const SCENARIOS = {
  insertRuns,
  insertKeyedRuns,
  insertSessions,
  readRuns,
  readAnswers,
  readResults,
} as const;

/** One call for each request; concurrent ones share a statement. */
export function openSql(work: SqlWork): { call(): Promise<void>; end(): Promise<void> } {
  const db = openPool(
    { connectionString: work.connectionString },
    { applicationName: "bench-limit", max: BATCHES_MAX },
  );
  const together = async (calls: readonly number[]): Promise<readonly null[]> => {
    await SCENARIOS[work.scenario](db, work.rows, calls.length);
    return calls.map(() => null);
  };
  const grouped = groupCommit<number, null>({
    clock: systemClock,
    together,
    alone: async () => null,
    mayGoAlone: () => false,
    callsMax: work.callers,
    batchesMax: BATCHES_MAX,
    waitMaxMs: 10_000,
  });
  return { call: async () => void (await grouped(0)), end: async () => await db.end() };
}
