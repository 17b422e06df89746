// The audit log answers as quickly with many entries as with few. `LATCHKEY_PLANTED_ENTRIES=1000000` shows it at the size of years.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { listAuditEntries, type AuditQuery } from "#actions/operators/list-audit-entries.ts";
import type { TestDatabase } from "../database.ts";
import { openPlanted } from "./plant-rows.ts";

const ENTRIES = Number(process.env["LATCHKEY_PLANTED_ENTRIES"] ?? 20_000);
const ROUNDS = 20;
let database: TestDatabase;

before(async () => {
  database = await openPlanted(PLANTS, "audit_entry");
});

after(async () => await database?.drop());

/** A busy account, and one that did a little long ago; hundred operators' entries among the busy one's. */
const PLANTS = [
  `insert into account (id, slug, document, name, allowed_origins, session_lifetime_ms, retention_ms, concurrency)
   select 'acct_' || slug, slug, '{}', 'n', '{}', 1, 1, 1 from unnest(array['busy', 'small']) slug`,
  `insert into operator (id, email, role, password_hash, created_at)
   select 'op_' || n, 'op' || n || '@example.com', 'admin', 'x', app_now() from generate_series(1, 2) n`,
  `insert into audit_entry (account_id, id, occurred_at, actor_kind, actor_id, action, subject_id, detail, seal)
   select 'acct_' || account, 'aud_' || lpad(n::text, 28, '0'), app_now() - n * interval '1 second',
     case when n % ${Math.floor(ENTRIES / 100)} = 3 then 'operator' else 'run' end,
     case when n % ${Math.floor(ENTRIES / 100)} = 3 then 'op_1' else 'run_' || n end,
     case when n % 1000 = 3 then 'run.cancel' else 'credential.open' end, 'cred_' || n % 5000, '{}', decode(repeat('00', 32), 'hex')
   from (select n, case when n > ${ENTRIES - 30} then 'small' else 'busy' end as account from generate_series(1, ${ENTRIES}) n) planted`,
];

const QUERIES: Readonly<Record<string, readonly [query: AuditQuery, found: number]>> = {
  "the first page": [{}, 20],
  "a busy account": [{ account: "busy" }, 20],
  "a small account": [{ account: "small" }, 20],
  "what a small account never did": [{ account: "small", action: "run.cancel" }, 0],
  "a rare action": [{ action: "run.cancel" }, 20],
  "an action that nobody did": [{ action: "key.create" }, 0],
  "an operator": [{ operator: "op1@example.com" }, 20],
  "an operator who did nothing": [{ operator: "op2@example.com" }, 0],
  "a subject": [{ subject: "cred_17" }, Math.min(ENTRIES / 5_000, 20)],
  "a time": [{ until: "2020-01-01" }, 0],
};

test("every filter has an index, however rare what it looks for is", async (context) => {
  for (const [what, [query, found]] of Object.entries(QUERIES)) {
    const times: number[] = [];
    const before_ = await rowsRead();
    for (let round = 0; round < ROUNDS; round++) {
      const since = performance.now();
      const page = await listAuditEntries(database.db, { ...query, limit: 20 }, null);
      times.push(performance.now() - since);
      assert.equal(page.items.length, found, what);
    }
    const read = ((await rowsRead()) - before_) / ROUNDS;
    const p95 = times.toSorted((a, b) => a - b)[Math.floor(ROUNDS * 0.95) - 1] ?? 0;
    context.diagnostic(`${what}: p95 ${p95.toFixed(1)} ms of ${ENTRIES} entries, ${read} read`);
    assert.ok(read <= 200, `${what}: ${read} entries were read for a page of 20`);
  }
});

/** Rows of `audit_entry` that were read, by scanning or by an index. */
async function rowsRead(): Promise<number> {
  await database.db.query("select pg_stat_force_next_flush()");
  await database.db.query("select pg_stat_clear_snapshot()");
  const rows = await database.db.query<{ read: number }>(
    `select (seq_tup_read + coalesce(idx_tup_fetch, 0))::float8 as read from pg_stat_user_tables where relname = 'audit_entry'`,
  );
  return rows[0]?.read ?? 0;
}
