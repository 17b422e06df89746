import {
  entryBytes,
  INSTALLATION_CHAIN,
  type AuditEntry,
  type AuditEvent,
  type ChainedEntry,
} from "#domain/audit.ts";
import type { AuditAction } from "#domain/audit-actions.ts";
import { ID_PREFIX } from "#domain/ids.ts";
import type { AuditKeys } from "#lib/audit-keys.ts";
import { newId } from "#lib/new-id.ts";
import { readClockText } from "./connection/clock.ts";
import { given, namesOf, valuesOf, type Columns } from "./connection/given-rows.ts";
import type { Database } from "./connection/pool.ts";

/**
 * Writes an entry in the transaction of its effect: call it inside that transaction, and let its error roll it back. No
 * audit, no effect (docs/decisions/0023). `at`: the result of `readClockText`, if the caller has it. Returns the entry's id and time.
 */
export async function recordAudit(
  tx: Database,
  keys: AuditKeys,
  event: AuditEvent,
  at?: string,
): Promise<{ readonly id: string; readonly occurredAt: string }> {
  const entry = sealEntry(keys, event, at ?? (await readClockText(tx)));
  await insertEntries(tx, [entry]);
  return entry;
}

/** The same for entries that are sealed already. */
export async function insertEntries(tx: Database, entries: readonly SealedEntry[]): Promise<void> {
  await tx.query({
    name: "insert_audit_entries",
    text: `insert into audit_entry (${namesOf(ENTRY)}) select * from ${given("entry", ENTRY, 1)}`,
    values: [...valuesOf(ENTRY, entries)],
  });
}

/** An entry as it is inserted. */
export type SealedEntry = AuditEntry & { readonly accountId: string | null; readonly seal: Buffer };

/** Seals an entry that the statement of its effect inserts as well. `occurredAt`: ISO 8601, as `readClockText` returns it. */
export function sealEntry(keys: AuditKeys, event: AuditEvent, occurredAt: string): SealedEntry {
  const entry: AuditEntry = {
    chain: event.accountId ?? INSTALLATION_CHAIN,
    id: newId(ID_PREFIX.auditEntry),
    occurredAt,
    actorKind: event.actor.kind,
    actorId: "id" in event.actor ? event.actor.id : null,
    action: event.action,
    subjectId: event.subjectId,
    runId: event.runId ?? null,
    detail: JSON.stringify(event.detail ?? {}),
  };
  return { ...entry, accountId: event.accountId, seal: keys.seal(entryBytes(entry)) };
}

export const ENTRY: Columns<SealedEntry> = {
  id: ["text", ({ id }) => id],
  account_id: ["text", ({ accountId }) => accountId],
  occurred_at: ["timestamptz", ({ occurredAt }) => occurredAt],
  actor_kind: ["text", ({ actorKind }) => actorKind],
  actor_id: ["text", ({ actorId }) => actorId],
  action: ["text", ({ action }) => action],
  subject_id: ["text", ({ subjectId }) => subjectId],
  run_id: ["text", ({ runId }) => runId],
  detail: ["text", ({ detail }) => detail],
  seal: ["bytea", ({ seal }) => seal],
};

// The time in full precision, so that a change can't be hidden by an output format.
const ENTRY_COLUMNS = `chain, id, (extract(epoch from occurred_at) * 1000)::text as "occurredMs", actor_kind as "actorKind",
  actor_id as "actorId", action, subject_id as "subjectId", run_id as "runId", detail, seal`;

type EntryRow = Omit<AuditEntry, "occurredAt"> & { occurredMs: string };

function readEntry<T extends EntryRow>({ occurredMs, ...row }: T): Omit<T, "occurredMs"> & AuditEntry {
  const [, ms] = /^(\d{1,15})(?:\.0+)?$/.exec(occurredMs) ?? [];
  return { ...row, occurredAt: ms === undefined ? occurredMs : new Date(Number(ms)).toISOString() };
}

/** $1: names of rows. Uses the index `audit_entry_row`, so its condition and expression must match the index. */
export const ROW_ENTRIES = `select ${ENTRY_COLUMNS} from audit_entry
  where detail like '%"row":"%' and substring(detail from '"row":"([^"]*)"') = any($1::text[])
    and xmin is distinct from pg_current_xact_id_if_assigned()::xid`;

/**
 * The serials of signed rows according to the audit log, by the rows' names. Only committed entries that a process with the signing key
 * wrote count.
 */
export async function listRowEntries(
  db: Database,
  keys: AuditKeys,
  names: readonly string[],
): Promise<readonly { readonly name: string; readonly serial: number; readonly version: number | null }[]> {
  const rows = await db.query<EntryRow & { seal: Buffer }>({
    name: "list_row_entries",
    text: ROW_ENTRIES,
    values: [names],
  });
  return rows.flatMap((row) => {
    const entry = readEntry(row);
    if (!keys.isSealed(entryBytes(entry), entry.seal)) return [];
    const { row: name, serial, version } = JSON.parse(entry.detail) as Record<string, unknown>;
    if (typeof name !== "string" || typeof serial !== "number") return [];
    return [{ name, serial, version: typeof version === "number" ? version : null }];
  });
}

/** The details of all entries of an action that a process with the signing key has written. */
export async function listSealedDetails(
  db: Database,
  keys: AuditKeys,
  action: AuditAction,
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const rows = await db.query<EntryRow & { seal: Buffer }>(
    `select ${ENTRY_COLUMNS} from audit_entry where action = $1 order by occurred_at, id`,
    [action],
  );
  const entries = rows.map(readEntry).filter((entry) => keys.isSealed(entryBytes(entry), entry.seal));
  return entries.map(({ detail }) => JSON.parse(detail) as Record<string, unknown>);
}

/** Runs `work` in one snapshot, so that workers can close chains concurrently. */
export async function inSnapshot<T>(db: Database, work: (tx: Database) => Promise<T>): Promise<T> {
  return await db.transaction(async (tx) => {
    await tx.query("set transaction isolation level repeatable read, read only");
    return await work(tx);
  });
}

/** The chains with unchained entries. Creates the rows of new chains. */
export async function listOpenChains(db: Database): Promise<readonly string[]> {
  const rows = await db.query<{ chain: string }>(
    `with open as (select distinct chain from audit_entry where sequence is null),
       made as (insert into audit_chain (chain, count, head)
         select chain, 0, decode(repeat('00', 32), 'hex') from open on conflict do nothing)
     select chain from open`,
  );
  return rows.map((row) => row.chain);
}

export interface ChainEnd {
  readonly chain: string;
  readonly count: number;
  readonly head: Buffer;
}

/** The end of a chain, locked until the transaction ends; undefined: another process has it locked. */
export async function lockChain(tx: Database, chain: string): Promise<ChainEnd | undefined> {
  const rows = await tx.query<ChainEnd>(
    `select chain, count, head from audit_chain where chain = $1 for update skip locked`,
    [chain],
  );
  return rows[0];
}

export type OpenEntry = AuditEntry & { readonly seal: Buffer };

/** A batch of a chain's entries without a number, in the order of their ids, after `afterId`. */
export async function listOpenEntries(
  db: Database,
  chain: string,
  afterId: string,
  limit: number,
): Promise<readonly OpenEntry[]> {
  const rows = await db.query<EntryRow & { seal: Buffer }>(
    `select ${ENTRY_COLUMNS} from audit_entry where chain = $1 and sequence is null and id > $2 order by id limit $3`,
    [chain, afterId, limit],
  );
  return rows.map(readEntry);
}

/** Numbers the entries and moves the chain's end. */
export async function chainEntries(
  tx: Database,
  end: ChainEnd,
  placed: readonly Pick<ChainedEntry, "id" | "sequence" | "hash" | "signature">[],
): Promise<void> {
  await tx.query(
    `update audit_entry set sequence = placed.sequence, hash = placed.hash, signature = placed.signature
     from unnest($1::text[], $2::bigint[], $3::bytea[], $4::bytea[]) as placed (id, sequence, hash, signature)
     where audit_entry.id = placed.id`,
    [
      placed.map((entry) => entry.id),
      placed.map((entry) => entry.sequence),
      placed.map((entry) => Buffer.from(entry.hash)),
      placed.map((entry) => Buffer.from(entry.signature)),
    ],
  );
  await tx.query(`update audit_chain set count = $2, head = $3 where chain = $1`, [
    end.chain,
    end.count,
    end.head,
  ]);
}

export async function findChainEnd(db: Database, chain: string): Promise<ChainEnd | undefined> {
  const rows = await db.query<ChainEnd>(`select chain, count, head from audit_chain where chain = $1`, [
    chain,
  ]);
  return rows[0];
}

export async function listChainEnds(db: Database): Promise<readonly ChainEnd[]> {
  return await db.query<ChainEnd>(`select chain, count, head from audit_chain order by chain`);
}

export interface ListedChain {
  readonly chain: string;
  /** Slug; null: the installation's own. */
  readonly account: string | null;
  /** Entries before this day are no longer in the database; null: all are. */
  readonly exportedBefore: string | null;
}

/** Every chain that has an entry or an end. */
export async function listChains(db: Database): Promise<readonly ListedChain[]> {
  return await db.query<ListedChain>(
    `select found.chain, account.slug as account,
       (select to_char(max(month) + interval '1 month', 'YYYY-MM-DD') from audit_month where chain = found.chain) as "exportedBefore"
     from (select chain from audit_chain union select chain from audit_entry) found
     left join account on account.id = found.chain order by account.slug nulls first, found.chain`,
  );
}

/** A batch of a chain in the order of its numbers, then ids: a forged number may exist twice. */
export async function listChained(
  db: Database,
  chain: string,
  after: { readonly sequence: number; readonly id: string },
  limit: number,
): Promise<readonly ChainedEntry[]> {
  const rows = await db.query<EntryRow & { seal: Buffer; sequence: number; hash: Buffer; signature: Buffer }>(
    `select ${ENTRY_COLUMNS}, sequence, coalesce(hash, '') as hash, coalesce(signature, '') as signature from audit_entry
     where chain = $1 and sequence is not null and (sequence, id) > ($2, $3) order by sequence, id limit $4`,
    [chain, after.sequence, after.id, limit],
  );
  return rows.map(readEntry);
}

/** Entries that are overdue for chaining: none while a worker runs. */
export async function countOverdueEntries(db: Database, chain: string, overdueMs: number): Promise<number> {
  const rows = await db.query<{ count: number }>(
    `select count(*)::int as count from audit_entry
     where chain = $1 and sequence is null and occurred_at < app_now() - $2::bigint * interval '1 ms'`,
    [chain, overdueMs],
  );
  return rows[0]?.count ?? 0;
}

/** Accounts that opened more credentials in the last minute than `factor` times an average one of the hour before. */
export async function listUnusualOpenings(
  db: Database,
  { floor, factor }: { readonly floor: number; readonly factor: number },
): Promise<
  readonly { readonly accountId: string; readonly lastMinute: number; readonly perMinute: number }[]
> {
  return await db.query<{ accountId: string; lastMinute: number; perMinute: number }>(
    `select * from (
       select account_id as "accountId", count(*) filter (where occurred_at > app_now() - interval '1 minute')::int as "lastMinute",
         count(*) filter (where occurred_at <= app_now() - interval '1 minute')::float8 / 60 as "perMinute"
       from audit_entry where action = 'credential.open' and occurred_at > app_now() - interval '61 minutes'
       group by account_id) openings
     where "lastMinute" >= $1 and "lastMinute" > $2 * "perMinute"`,
    [floor, factor],
  );
}
