import assert from "node:assert/strict";
import { hashIdempotencyKey } from "#domain/idempotency.ts";
import { eventually, PATIENCE_MS } from "../eventually.ts";
import type { ApiAnswer } from "../caller.ts";
import type { Installation } from "../service.ts";

export const TRIGGER = "/blueprints/plain/trigger";
export const SESSION = { strategy_id: "strat_acme" };
export const keyed = (key: string): Record<string, string> => ({ "Idempotency-Key": key });

export function assertReplay(again: ApiAnswer, first: ApiAnswer): void {
  assert.equal(again.status, first.status);
  assert.equal(again.text, first.text);
  assert.equal(again.headers.get("idempotent-replay"), "true");
}

export function assertFresh(answer: ApiAnswer, status: number): void {
  assert.equal(answer.status, status, answer.text);
  assert.equal(answer.headers.get("idempotent-replay"), null);
}

export function assertReuse(answer: ApiAnswer): void {
  assertFresh(answer, 409);
  assert.equal(answer.body.error.type, "conflict");
  assert.equal(answer.body.error.details[0].code, "idempotency_key_reuse");
}

/** Holds what every new run needs, so that a trigger is under way until `release`. */
export async function holdRuns(
  installation: Installation,
): Promise<{ readonly waiting: () => Promise<number>; release(): Promise<void> }> {
  const { db } = installation.database;
  const client = await db.pool.connect();
  await client.query("begin; lock table run in share mode");
  return {
    waiting: async () =>
      // Only an API request inserts runs here. One that has waited so long is alone: a group gives up after 100 ms.
      await eventually(
        "an insert waits",
        async () => {
          const rows = await db.query<{ pid: number }>(
            `select pid from pg_stat_activity where datname = current_database() and application_name = 'latchkey'
           and wait_event_type = 'Lock' and query ilike '%insert into run%' and query_start < now() - interval '300 ms'`,
          );
          return rows[0]?.pid;
        },
        PATIENCE_MS,
      ),
    release: async () => {
      await client.query("rollback");
      client.release();
    },
  };
}

/** A key that another process's request holds, neither committed nor rolled back. */
export async function holdKey(
  installation: Installation,
  key: string,
): Promise<{ release(): Promise<void> }> {
  const client = await installation.database.db.pool.connect();
  await client.query("begin");
  await client.query(
    `insert into idempotency_key (account_id, key_hash, fingerprint, expires_at)
     select id, $1, '\\x00', app_now() + interval '1 day' from account where slug = 'acme'`,
    [hashIdempotencyKey(key)],
  );
  return {
    release: async () => {
      await client.query("rollback");
      client.release();
    },
  };
}

/** How many rows the key has: 1 when its answer is stored. */
export async function storedKeys(installation: Installation, key: string): Promise<number> {
  const hash = hashIdempotencyKey(key);
  return (await installation.database.db.query("select 1 from idempotency_key where key_hash = $1", [hash]))
    .length;
}

let numbers = 0;

/** An Idempotency-Key that no other test of the process has. */
export const newKey = (): string => `case-${numbers++}`;
