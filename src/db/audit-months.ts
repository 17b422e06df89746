import type { AuditMonth, AuditSlice, DetachedSlice } from "#domain/audit-month.ts";
import type { Database } from "./connection/pool.ts";

/** A month of an installation of years is read and removed at once. */
const WHOLE_MONTH_MS = 3_600_000;

/** For the rest of this transaction, statements may take as long as a month of entries takes. */
export async function allowWholeMonth(tx: Database): Promise<void> {
  await tx.query("set local statement_timeout to 0; set local idle_in_transaction_session_timeout to 0");
}

export type ListedSlice = AuditSlice & {
  /** Slug; null: the installation's own chain. */
  readonly account: string | null;
  /** Whether entries of earlier months are still in the database. */
  readonly hasEarlier: boolean;
};

/** The part of each chain that belongs to a month and is in the database. A late entry of a detached month belongs to the next part. */
export async function listSlices(
  tx: Database,
  { startsAt, endsAt }: AuditMonth,
): Promise<readonly ListedSlice[]> {
  return await tx.query<ListedSlice>({
    text: `with began as (
        select audit_chain.chain, audit_chain.count, coalesce(left_over.last, 0) as base, left_over.head as base_head,
          (select min(sequence) from audit_entry entry where entry.chain = audit_chain.chain
             and sequence > coalesce(left_over.last, 0) and (occurred_at >= $1::timestamptz or occurred_at < left_over.ended)) as first,
          (select min(sequence) from audit_entry entry where entry.chain = audit_chain.chain
             and sequence > coalesce(left_over.last, 0) and occurred_at >= $2::timestamptz) as next
        from audit_chain left join lateral (
          select last, head, (month + interval '1 month') at time zone 'UTC' as ended
          from audit_month where chain = audit_chain.chain order by last desc limit 1) left_over on true
      ), slice as (
        select chain, base, base_head, first, coalesce(next - 1, count) as last from began
        where first <= coalesce(next - 1, count)
      )
      select slice.chain, account.slug as account, first, slice.last, first > base + 1 as "hasEarlier",
        encode(coalesce(before.hash, base_head, decode(repeat('00', 32), 'hex')), 'hex') as previous, encode(ending.hash, 'hex') as head
      from slice left join account on account.id = slice.chain
        left join audit_entry before on before.chain = slice.chain and before.sequence = first - 1 and first - 1 > base
        join audit_entry ending on ending.chain = slice.chain and ending.sequence = slice.last
      order by account.slug nulls first, slice.chain`,
    values: [startsAt, endsAt],
    timeoutMs: WHOLE_MONTH_MS,
  });
}

/** Whether a month ended long enough ago, and all of its entries have their numbers. */
export async function readMonthState(
  db: Database,
  { endsAt }: AuditMonth,
  closesAfterMs: number,
): Promise<{ readonly isOver: boolean; readonly isChained: boolean }> {
  const [state] = await db.query<{ isOver: boolean; isChained: boolean }>(
    `select app_now() >= $1::timestamptz + $2::float8 * interval '1 ms' as "isOver",
       not exists (select from audit_entry where sequence is null and occurred_at < $1::timestamptz) as "isChained"`,
    [endsAt, closesAfterMs],
  );
  return state ?? { isOver: false, isChained: false };
}

/** The months of a chain that are no longer in the database, in their order. */
export async function listDetached(
  db: Database,
  chain: string,
): Promise<readonly (DetachedSlice & { readonly signature: Buffer })[]> {
  return await db.query<DetachedSlice & { signature: Buffer }>(
    `select chain, to_char(month, 'YYYY-MM') as month, first, last, encode(previous, 'hex') as previous, encode(head, 'hex') as head, kept,
       encode(kept_sha256, 'hex') as "keptSha256", encode(file_sha256, 'hex') as "fileSha256", signature
     from audit_month where chain = $1 order by last`,
    [chain],
  );
}

export async function isDetached(db: Database, month: string): Promise<boolean> {
  const rows = await db.query(`select 1 from audit_month where month = ($1 || '-01')::date limit 1`, [month]);
  return rows.length > 0;
}

/** As the owner of the tables. */
export async function insertDetached(
  owner: Database,
  slice: DetachedSlice,
  signature: Uint8Array,
): Promise<void> {
  await owner.query(
    `insert into audit_month (chain, month, first, last, previous, head, kept, kept_sha256, file_sha256, signature)
     values ($1, ($2 || '-01')::date, $3, $4, decode($5, 'hex'), decode($6, 'hex'), $7, decode($8, 'hex'), decode($9, 'hex'), $10)`,
    [
      slice.chain,
      slice.month,
      slice.first,
      slice.last,
      slice.previous,
      slice.head,
      slice.kept,
      slice.keptSha256,
      slice.fileSha256,
      Buffer.from(signature),
    ],
  );
}

/**
 * Entries that the service reads, however old they are: serials of signed rows, what was signed and bound at first, and the last backup.
 */
const IS_KEPT = `(detail like '%"row":"%' or action in ('row.sign', 'credential.bind', 'backup.create'))`;

export interface EntryPlace {
  readonly sequence: number;
  readonly hash: Buffer;
}

/** A batch of those of a part, in the order of their numbers, after `after`. */
export async function listKept(
  db: Database,
  slice: Pick<AuditSlice, "chain" | "last">,
  after: number,
  limit: number,
): Promise<readonly EntryPlace[]> {
  return await db.query<EntryPlace>({
    text: `select sequence, hash from audit_entry where chain = $1 and sequence > $2 and sequence <= $3 and ${IS_KEPT}
      order by sequence limit $4`,
    values: [slice.chain, after, slice.last, limit],
    timeoutMs: WHOLE_MONTH_MS,
  });
}

/** Deletes the other entries of a part with these numbers. As the owner of the tables. Returns how many. */
export async function deleteEntries(
  owner: Database,
  chain: string,
  from: number,
  to: number,
): Promise<number> {
  const [row] = await owner.query<{ count: number }>({
    text: `with removed as (delete from audit_entry where chain = $1 and sequence between $2 and $3 and not ${IS_KEPT} returning 1)
      select count(*)::int as count from removed`,
    values: [chain, from, to],
    timeoutMs: WHOLE_MONTH_MS,
  });
  return row?.count ?? 0;
}
