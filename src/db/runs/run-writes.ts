import { HELD, leaseValues, RUN_HELD, type Lease } from "./lease.ts";
import type { Database } from "#db/connection/pool.ts";

export type WriteStatus = "started" | "done" | "refused" | "in_doubt" | "ruled_out";

export interface StoredWrite {
  readonly ordinal: number;
  readonly status: WriteStatus;
  readonly epoch: number;
  readonly outcome: Buffer | null;
}

/** The begun writes of a node with these ordinals. */
export async function listWrites(
  db: Database,
  runId: string,
  nodeId: string,
  first: number,
  count: number,
): Promise<readonly StoredWrite[]> {
  return await db.query<StoredWrite>({
    name: "list_writes",
    text: `select ordinal, status, epoch, outcome from run_write
      where run_id = $1 and node_id = $2 and ordinal >= $3 and ordinal < $3 + $4::int`,
    values: [runId, nodeId, first, count],
  });
}

/**
 * Stores the intent, which is committed before the request is sent. Only a write that was ruled out, or that this lease has begun
 * before (an attempt that certainly had no effect), may be begun again. False: it must not be sent.
 */
export async function beginWrite(
  db: Database,
  lease: Lease,
  write: { readonly accountId: string; readonly nodeId: string; readonly ordinal: number },
): Promise<boolean> {
  const rows = await db.query({
    name: "begin_write",
    text: `insert into run_write (account_id, run_id, node_id, ordinal, status, epoch)
      select $4, $1, $5, $6, 'started', $3 where ${RUN_HELD}
      on conflict (run_id, node_id, ordinal) do update
        set status = 'started', epoch = excluded.epoch, attempts = run_write.attempts + 1, started_at = app_now(),
          ended_at = null, detail = null, sent = null
        where run_write.status = 'ruled_out' or (run_write.status = 'started' and run_write.epoch = excluded.epoch)
      returning 1`,
    values: [...leaseValues(lease), write.accountId, write.nodeId, write.ordinal],
  });
  return rows.length > 0;
}

export interface EndedWrite {
  readonly nodeId: string;
  readonly ordinal: number;
  /** The epoch in which it was begun. */
  readonly epoch: number;
  readonly status: Exclude<WriteStatus, "started">;
  readonly outcome: string | null;
  readonly detail: string | null;
  /** For an uncertain write: its request, redacted. */
  readonly sent: string | null;
}

/**
 * Stores the outcome of a write that this lease began or found uncertain. It is not fenced by the lease, because it is true for any holder
 * of the run; it is fenced by the write's own epoch, so that it never overwrites another worker's later finding. If that worker found it
 * uncertain and asks the operator, the decision is the operator's: without it, nothing would resume the run.
 *
 * Under the lease, a completed write counts as progress like a finished step (docs/decisions/0009). One that was ruled out does not:
 * sending it may kill the process.
 */
export async function endWrite(db: Database, lease: Lease, write: EndedWrite): Promise<boolean> {
  const rows = await db.query({
    name: "end_write",
    // The run's row first, as a transaction that ends a run has it: they never wait for each other.
    text: `with lost as (
        select id from run where id = $1 and ${HELD} and lost_leases > 0 and $7 = 'done' for no key update
      ), ended as (
        update run_write set status = $7, ended_at = greatest(app_now(), started_at), outcome = $8, detail = $9, sent = $10
        where run_id = $1 and node_id = $4 and ordinal = $5 and epoch = $6
          and (status = 'started' or status = 'in_doubt' and exists (select from run where id = $1 and (ended_at is not null or ${HELD})))
          and (select count(*) from lost) >= 0
        returning 1
      ), progressed as (
        update run set lost_leases = 0 from lost where run.id = lost.id and exists (select from ended)
      )
      select 1 from ended`,
    values: [
      ...leaseValues(lease),
      write.nodeId,
      write.ordinal,
      write.epoch,
      write.status,
      write.outcome === null ? null : Buffer.from(write.outcome, "utf8"),
      write.detail,
      write.sent,
    ],
  });
  return rows.length > 0;
}

/** An uncertain write, for the operator. */
export interface DoubtfulWrite {
  readonly accountId: string;
  readonly account: string;
  readonly runId: string;
  readonly blueprint: string;
  readonly nodeId: string;
  readonly ordinal: number;
  readonly detail: string | null;
  /** The beginning of its request, redacted. null: unknown, because the run ended while it was in progress. */
  readonly sent: string | null;
  readonly startedAt: Date;
  /** null: its run waits for the decision. Otherwise the run has ended, and the decision is only recorded. */
  readonly runEnded: "failed" | "cancelled" | null;
}

/** The answer to a write in progress at its run's end may still arrive within this time and settle it. */
const ASKED = `(run.ended_at is null or run.ended_at < app_now() - interval '10 seconds')`;

/** Uncertain writes of parked runs and of ended ones, oldest first. */
export async function listDoubtfulWrites(
  db: Database,
  filter: {
    readonly accountIds: readonly string[] | null;
    readonly runId: string | null;
    /** Only those of one node of a Blueprint. */
    readonly of?: { readonly blueprint: string; readonly nodeId: string };
  },
): Promise<readonly DoubtfulWrite[]> {
  return await db.query<DoubtfulWrite>(
    `select write.account_id as "accountId", account.slug as account, write.run_id as "runId", blueprint.key as blueprint,
       write.node_id as "nodeId", write.ordinal, write.detail, write.sent, write.started_at as "startedAt",
       case when run.ended_at is not null then run.status end as "runEnded"
     from run_write write join run on run.id = write.run_id join account on account.id = write.account_id
       join blueprint on blueprint.id = run.blueprint_id
     where write.status = 'in_doubt' and ${ASKED}
       and ($1::text[] is null or write.account_id = any($1)) and ($2::text is null or write.run_id = $2)
       and ($3::text is null or (blueprint.key = $3 and write.node_id = $4))
     order by run.ended_at is not null, write.started_at, write.run_id, write.node_id, write.ordinal limit 1000`,
    [filter.accountIds, filter.runId, filter.of?.blueprint ?? null, filter.of?.nodeId ?? null],
  );
}

/** The uncertain writes of one node of a Blueprint in all its runs, usually with the same cause. */
export interface DoubtfulGroup {
  readonly account: string;
  readonly blueprint: string;
  readonly nodeId: string;
  readonly writes: number;
  readonly runs: number;
  /** The request of the oldest write. */
  readonly since: Date;
  /** The reason that most of them have. */
  readonly detail: string | null;
  /** The request of the oldest of which it is known, redacted. */
  readonly sent: string | null;
}

/** The oldest first. */
export async function listDoubtfulGroups(
  db: Database,
  filter: { readonly accountIds: readonly string[] | null; readonly blueprint: string | null },
): Promise<readonly DoubtfulGroup[]> {
  return await db.query<DoubtfulGroup>(
    `select account.slug as account, blueprint.key as blueprint, write.node_id as "nodeId", count(*)::int as writes,
       count(distinct write.run_id)::int as runs, min(write.started_at) as since,
       mode() within group (order by write.detail) as detail,
       (array_agg(write.sent order by write.started_at, write.ordinal) filter (where write.sent is not null))[1] as sent
     from run_write write join run on run.id = write.run_id join account on account.id = write.account_id
       join blueprint on blueprint.id = run.blueprint_id
     where write.status = 'in_doubt' and ${ASKED}
       and ($1::text[] is null or write.account_id = any($1)) and ($2::text is null or blueprint.key = $2)
     group by account.slug, blueprint.key, write.node_id order by min(write.started_at), 1, 2, 3 limit 1000`,
    [filter.accountIds, filter.blueprint],
  );
}

/** Stores the operator's decision on one write, once. False: no decision is pending. */
export async function decideWrite(
  db: Database,
  write: { readonly runId: string; readonly nodeId: string; readonly ordinal: number },
  decision: { readonly happened: boolean; readonly by: string; readonly outcome: string },
): Promise<boolean> {
  const rows = await db.query(
    `update run_write set status = case when $4 then 'done' else 'ruled_out' end, ended_at = greatest(app_now(), started_at),
       outcome = case when $4 then $5::bytea end, decided_by = $6, decided_at = app_now()
     where run_id = $1 and node_id = $2 and ordinal = $3 and status = 'in_doubt'
       and exists (select 1 from run where id = $1 and lease_owner is null and ${ASKED} for update)
     returning 1`,
    [
      write.runId,
      write.nodeId,
      write.ordinal,
      decision.happened,
      Buffer.from(decision.outcome, "utf8"),
      decision.by,
    ],
  );
  return rows.length > 0;
}

export async function hasDoubtfulWrites(db: Database, runId: string): Promise<boolean> {
  const rows = await db.query(`select 1 from run_write where run_id = $1 and status = 'in_doubt' limit 1`, [
    runId,
  ]);
  return rows.length > 0;
}
