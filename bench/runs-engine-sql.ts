/**
 * The limit: the least that a durable run costs in this database, written by hand. One table of runs with a lease and its
 * history, one of steps; claims with SKIP LOCKED; claims, checkpoints and completions of many runs are one statement. No
 * recovery, no retries, no accounts, no inputs, no results.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { openPool, openSession, type Database } from "#db/connection/pool.ts";
import { systemClock } from "#lib/clock.ts";
import { groupCommit } from "#lib/group-commit.ts";
import { newId } from "#lib/new-id.ts";
import type { Engine, EngineOptions } from "./runs-engine.ts";

const TABLES = `
  create table if not exists limit_run (
    id text primary key, account text not null, payload jsonb not null, status text not null default 'queued',
    created_at timestamptz not null default now(), ended_at timestamptz, lease_owner text, lease_epoch integer not null default 0);
  create index if not exists limit_run_queued on limit_run (created_at, id) where status = 'queued';
  create index if not exists limit_run_lease on limit_run (lease_owner) where lease_owner is not null;
  create table if not exists limit_step (
    run_id text not null, ordinal integer not null, output jsonb not null, done_at timestamptz not null default now(),
    primary key (run_id, ordinal))`;

const CLAIM = `update limit_run set status = 'running', lease_owner = $1, lease_epoch = lease_epoch + 1
  from (select id from limit_run where status = 'queued' order by created_at, id limit $2 for update skip locked) due
  where limit_run.id = due.id returning limit_run.id, payload`;
const CHECKPOINT = `insert into limit_step (run_id, ordinal, output)
  select run_id, ordinal, output::jsonb from unnest($1::text[], $2::int[], $3::text[]) as given (run_id, ordinal, output)`;
const COMPLETE = `update limit_run set status = 'completed', ended_at = now(), lease_owner = null
  where id = any($1) and lease_owner = $2`;
const INSERT = `with made as (insert into limit_run (id, account, payload)
    select id, 'acme', $2::jsonb from unnest($1::text[]) as id returning 1)
  select pg_notify('limit_run', '') from (select count(*) from made) as counted`;

const BATCH = 5_000;
const CLAIMED_AT_ONCE = 200;
const CARRIED_AT_ONCE = 600;
const BATCHES_MAX = 2;
const CALLS_MAX = 500;
const WAIT_MAX_MS = 60_000;
const LOOK_EVERY_MS = 1_000;

interface Claimed {
  readonly id: string;
  readonly payload: { readonly sentMs: number };
}

/** Calls of many runs, a statement at a time. */
function together<Call>(send: (calls: readonly Call[]) => Promise<unknown>): (call: Call) => Promise<null> {
  return groupCommit<Call, null>({
    clock: systemClock,
    together: async (calls) => {
      await send(calls);
      return calls.map(() => null);
    },
    alone: async () => null,
    mayGoAlone: () => false,
    callsMax: CALLS_MAX,
    batchesMax: BATCHES_MAX,
    waitMaxMs: WAIT_MAX_MS,
  });
}

export async function openSql(options: EngineOptions): Promise<Engine> {
  const patience = { statementTimeoutMs: WAIT_MAX_MS, queryTimeoutMs: WAIT_MAX_MS };
  const db = openPool(options, { applicationName: "bench-limit", max: 8, ...patience });
  const insert = async (ids: readonly string[], sentMs: number): Promise<void> =>
    void (await db.query({ name: "limit_insert", text: INSERT, values: [ids, JSON.stringify({ sentMs })] }));
  return {
    prepare: async () => void (await db.query(TABLES)),
    enqueueMany: async (count) => {
      for (let made = 0; made < count; made += BATCH)
        await insert(
          Array.from({ length: Math.min(BATCH, count - made) }, () => newId("run_")),
          0,
        );
    },
    enqueue: async (sentMs) => await insert([newId("run_")], sentMs),
    work: async () => await work(db, options),
  };
}

async function work(db: Database, { connectionString, ...options }: EngineOptions): Promise<void> {
  const owner = randomUUID();
  const checkpoint = together<{ runId: string; ordinal: number; output: string }>(
    async (steps) =>
      await db.query({
        name: "limit_checkpoint",
        text: CHECKPOINT,
        values: [
          steps.map(({ runId }) => runId),
          steps.map(({ ordinal }) => ordinal),
          steps.map(({ output }) => output),
        ],
      }),
  );
  const complete = together<string>(
    async (ids) => await db.query({ name: "limit_complete", text: COMPLETE, values: [ids, owner] }),
  );
  const carry = async ({ id, payload }: Claimed): Promise<void> => {
    for (let ordinal = 0; ordinal < options.work.steps; ordinal++) {
      const output = JSON.stringify((await options.step(ordinal)) ?? null);
      await checkpoint({ runId: id, ordinal, output });
    }
    await complete(id);
    options.carried(payload.sentMs);
  };
  let underWay = 0;
  // Whatever stirs while the loop is not waiting keeps it from waiting next.
  let stirred = Promise.withResolvers<void>();
  const wake = (): void => stirred.resolve();
  await listen(connectionString, wake);
  void (async () => {
    for (;;) {
      stirred = Promise.withResolvers();
      const room = Math.min(CARRIED_AT_ONCE - underWay, CLAIMED_AT_ONCE);
      const wanted = room < CLAIMED_AT_ONCE / 2 ? 0 : room;
      const claimed =
        wanted === 0
          ? []
          : await db.query<Claimed>({ name: "limit_claim", text: CLAIM, values: [owner, wanted] });
      underWay += claimed.length;
      for (const run of claimed)
        void carry(run).then(() => {
          underWay--;
          wake();
        });
      if (wanted === 0 || claimed.length < wanted)
        await Promise.race([stirred.promise, sleep(LOOK_EVERY_MS)]);
    }
  })();
}

async function listen(connectionString: string, heard: () => void): Promise<void> {
  const onLost = (): void => void process.stderr.write("the limit's listening connection was lost\n");
  const session = await openSession({ connectionString }, { applicationName: "bench-limit", onLost });
  const client = await session.pool.connect();
  client.on("notification", heard);
  await client.query("listen limit_run");
}
