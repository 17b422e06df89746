import { PROPOSAL_TRANSITIONS, type ProposalKind, type ProposalStatus } from "#domain/proposal.ts";
import type { PageRequest } from "#domain/page-cursor.ts";
import { assert, must } from "#lib/assert.ts";
import type { Database } from "#db/connection/pool.ts";
import { readGenuine, readOneGenuine, signRow, type RowMark, type Signed } from "#db/signing/signed-rows.ts";
import { decidingColumns, signedColumns, type SignedRow } from "#db/signing/signed-tables.ts";

export interface Proposal extends SignedRow {
  readonly id: string;
  readonly accountId: string;
  /** Slug. */
  readonly account: string;
  readonly kind: ProposalKind;
  /** JSON of a ProposalContent. */
  readonly content: string;
  readonly status: ProposalStatus;
  /** The operator's id; null: the command line. */
  readonly proposedBy: string | null;
  /** The operator's sign-in name, to be shown. */
  readonly proposer: string | null;
  /** Ids of the admins who agree, the proposer included. */
  readonly confirmedBy: readonly string[];
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly endedAt: Date | null;
  /** Whether it is still open although it has expired. */
  readonly isOver: boolean;
}

const SELECT = `select ${signedColumns("proposal")}, proposal.content, account.slug as account, operator.email as proposer,
    proposal.created_at as "createdAt", proposal.expires_at as "expiresAt", proposal.ended_at as "endedAt",
    proposal.ended_at is null and proposal.expires_at <= app_now() as "isOver"
  from proposal join account on account.id = proposal.account_id left join operator on operator.id = proposal.proposed_by`;

const signedParts = (row: SignedRow): readonly Signed[] => [{ kind: "proposal", row }];

type AuditedRow = RowMark["audited"];

/** `audited`: the part of the audit entry that refers to the row. */
export async function insertProposal(
  tx: Database,
  proposal: Pick<Proposal, "id" | "accountId" | "kind" | "content" | "proposedBy" | "confirmedBy">,
  forMs: number,
): Promise<{ readonly audited: AuditedRow; readonly expiresAt: Date }> {
  const { id, accountId, kind, content, proposedBy, confirmedBy } = proposal;
  const rows = await tx.query<Record<string, unknown> & { readonly expiresAt: Date }>(
    `insert into proposal (id, account_id, kind, content, status, proposed_by, confirmed_by, expires_at)
     values ($1, $2, $3, $4, 'open', $5, $6, app_now() + $7::bigint * interval '1 ms')
     returning ${decidingColumns("proposal")}, expires_at as "expiresAt"`,
    [id, accountId, kind, content, proposedBy, confirmedBy, forMs],
  );
  const audited = await sign(tx, rows);
  return { audited, expiresAt: must(rows[0], "the proposal").expiresAt };
}

/** Columns that a change omits keep their values. `proposal` must be locked. Returns the part of the audit entry that refers to the row. */
export async function saveProposal(
  tx: Database,
  proposal: Proposal,
  to: {
    readonly status: ProposalStatus;
    readonly confirmedBy?: readonly string[];
    /** From now on. */
    readonly forMs?: number;
  },
): Promise<AuditedRow> {
  const { id, status } = proposal;
  assert(PROPOSAL_TRANSITIONS[status].includes(to.status), `a proposal goes from ${status} to ${to.status}`);
  const rows = await tx.query<Record<string, unknown>>(
    `update proposal set status = $2, confirmed_by = $3,
       expires_at = case when $4::bigint is null then expires_at else app_now() + $4::bigint * interval '1 ms' end,
       ended_at = case when $2 not in ('open', 'confirmed') then app_now() end
     where id = $1 and status = any ($5) returning ${decidingColumns("proposal")}`,
    [
      id,
      to.status,
      to.confirmedBy ?? proposal.confirmedBy,
      to.forMs ?? null,
      Object.entries(PROPOSAL_TRANSITIONS).flatMap(([from, tos]) => (tos.includes(to.status) ? [from] : [])),
    ],
  );
  return await sign(tx, rows);
}

async function sign(tx: Database, rows: readonly Record<string, unknown>[]): Promise<AuditedRow> {
  const row = must(rows[0], "the proposal");
  const { serial, mac, audited } = await signRow(tx, "proposal", row);
  await tx.query(`update proposal set row_serial = $2, row_mac = $3 where id = $1`, [row["id"], serial, mac]);
  return audited;
}

/** Throws RowRefused. */
export async function findProposal(db: Database, id: string): Promise<Proposal | undefined> {
  return await readOneGenuine(
    db,
    async () => await db.query<Proposal>(`${SELECT} where proposal.id = $1`, [id]),
    signedParts,
  );
}

/** Locked until the transaction ends. Throws RowRefused. */
export async function lockProposal(tx: Database, id: string): Promise<Proposal | undefined> {
  return await readOneGenuine(
    tx,
    async () => await tx.query<Proposal>(`${SELECT} where proposal.id = $1 for update of proposal`, [id]),
    signedParts,
  );
}

interface ProposalFilter {
  readonly accountIds: readonly string[] | null;
  /** The accounts of a limited caller: proposals with documents of another one are left out; null: the caller is not limited. */
  readonly limit: readonly string[] | null;
  readonly isWaiting: boolean;
}

/** A page, the newest first. Proposals that this installation has not written are skipped and raise alarms. */
export async function listProposals(
  db: Database,
  filter: ProposalFilter,
  { after, rows }: PageRequest,
): Promise<readonly Proposal[]> {
  const found: Proposal[] = [];
  for (let from = after; ;) {
    let batch: readonly Proposal[] = [];
    const { genuine } = await readGenuine(
      db,
      async () => (batch = await readSome(db, filter, { after: from, rows })),
      signedParts,
    );
    found.push(...genuine);
    const last = batch.at(-1);
    if (found.length >= rows || batch.length < rows || last === undefined) return found.slice(0, rows);
    from = { atMs: last.createdAt.getTime(), id: last.id };
  }
}

const readSome = async (
  db: Database,
  filter: ProposalFilter,
  { after, rows }: PageRequest,
): Promise<Proposal[]> =>
  await db.query<Proposal>(
    `${SELECT} where ($1::text[] is null or proposal.account_id = any($1))
       and (not $2 or (proposal.ended_at is null and proposal.expires_at > app_now()))
       and ($3::bigint is null
         or (proposal.created_at, proposal.id) < (timestamptz 'epoch' + $3::bigint * interval '1 ms', $4))
       and ($6::text[] is null or not exists (
         select from jsonb_array_elements(coalesce(proposal.content::jsonb -> 'documents', '[]')) as each (document)
         where each.document ->> 'account' not in (select slug from account where id = any($6))))
     order by proposal.created_at desc, proposal.id desc limit $5`,
    [filter.accountIds, filter.isWaiting, after?.atMs ?? null, after?.id ?? null, rows, filter.limit],
  );

/** The open proposals of an account, oldest first, locked. */
export async function lockWaiting(tx: Database, accountId: string): Promise<readonly Proposal[]> {
  const { genuine } = await readGenuine(
    tx,
    async () =>
      await tx.query<Proposal>(
        `${SELECT} where proposal.account_id = $1 and proposal.ended_at is null and proposal.expires_at > app_now()
         order by proposal.created_at, proposal.id for update of proposal`,
        [accountId],
      ),
    signedParts,
  );
  return genuine;
}

/** Locks and returns open proposals that have expired, except those that are locked by another transaction. */
export async function lockOverdue(tx: Database, rows: number): Promise<readonly Proposal[]> {
  const { genuine } = await readGenuine(
    tx,
    async () =>
      await tx.query<Proposal>(
        `${SELECT} where proposal.ended_at is null and proposal.expires_at <= app_now()
         order by proposal.created_at, proposal.id limit $1 for update of proposal skip locked`,
        [rows],
      ),
    signedParts,
  );
  return genuine;
}
