import { countCredentialsOf } from "#db/credentials/credential-binding.ts";
import { listAdminIds, listOperators } from "#db/operators/operators.ts";
import type { Database } from "#db/connection/pool.ts";
import {
  findProposal,
  listProposals as listStoredProposals,
  type Proposal,
} from "#db/operators/proposals.ts";
import { diffDocuments } from "#domain/config-diff.ts";
import { isId } from "#domain/ids.ts";
import type { Json } from "#domain/json.ts";
import { makePage, readPage } from "#domain/page-cursor.ts";
import {
  ADMINS_WANTED,
  describeNeed,
  type Need,
  type ProposalContent,
  type ProposalStatus,
  type ProposedDocument,
} from "#domain/proposal.ts";
import { RowRefused } from "#domain/refused-row.ts";
import { showDifference } from "#actions/operators/get-documents.ts";
import { OperatorError, accountIdsOf } from "#actions/operator-error.ts";

/** Only confirmations of current admins count. */
export interface Confirmations {
  readonly counted: readonly string[];
  readonly wanted: number;
}

export function countConfirmations(
  { confirmedBy }: Pick<Proposal, "confirmedBy">,
  adminIds: readonly string[],
): Confirmations {
  const counted = [...new Set(confirmedBy)].filter((id) => adminIds.includes(id));
  return { counted, wanted: Math.max(0, ADMINS_WANTED - counted.length) };
}

export const contentOf = ({ content }: Pick<Proposal, "content">): ProposalContent =>
  JSON.parse(content) as ProposalContent;

/** The status now: an open proposal past its deadline is expired. */
export const statusOf = ({ status, isOver }: Proposal): ProposalStatus => (isOver ? "expired" : status);

interface People {
  /** By account. */
  readonly adminIds: ReadonlyMap<string, readonly string[]>;
  readonly names: ReadonlyMap<string, string>;
}

async function readPeople(db: Database, rows: readonly Proposal[]): Promise<People> {
  const accounts = [...new Set(rows.map(({ accountId }) => accountId))];
  return {
    adminIds: new Map(
      await Promise.all(accounts.map(async (id) => [id, await listAdminIds(db, id)] as const)),
    ),
    names: new Map((await listOperators(db)).map(({ id, email }) => [id, email])),
  };
}

function show(row: Proposal, { adminIds, names }: People) {
  const status = statusOf(row);
  return {
    id: row.id,
    kind: row.kind,
    account: row.account,
    status,
    proposed_by: row.proposer,
    confirmed_by: row.confirmedBy.map((id) => names.get(id) ?? id),
    confirmations_wanted:
      status === "open" ? Math.max(1, countConfirmations(row, adminIds.get(row.accountId) ?? []).wanted) : 0,
    reasons: contentOf(row).needs.map(describeNeed),
    created_at: row.createdAt.toISOString(),
    expires_at: row.expiresAt.toISOString(),
    ended_at: row.endedAt?.toISOString() ?? null,
  };
}

export interface ProposalQuery {
  cursor?: string;
  limit?: number;
  account?: string;
  /** Only open ones. */
  waiting?: boolean;
}

/** A page of proposals, newest first. Throws Problem 422, OperatorError. */
export async function listProposals(db: Database, query: ProposalQuery, limit: readonly string[] | null) {
  const page = readPage(query);
  const accountIds = query.account === undefined ? limit : await accountIdsOf(db, query.account, limit);
  const rows = await listStoredProposals(db, { accountIds, limit, isWaiting: query.waiting === true }, page);
  const people = await readPeople(db, rows);
  return makePage(
    rows,
    page,
    ({ createdAt, id }) => ({ atMs: createdAt.getTime(), id }),
    (row) => show(row, people),
  );
}

/** A proposal with its changes. Throws OperatorError. */
export async function getProposal(db: Database, id: string) {
  const row = await requireProposal(async () => await findProposal(db, id), id);
  const content = contentOf(row);
  const strategies = content.needs.filter(({ kind, why }) => kind === "strategy" && why !== "rebinding");
  return {
    ...show(row, await readPeople(db, [row])),
    origins: [...new Set(content.needs.flatMap(({ origins }) => origins))],
    credentials:
      content.kind === "rebinding" ? content.credentials.length : await countConnected(db, strategies),
    documents: content.kind === "documents" ? content.documents.map(showDocument) : [],
    rebindings:
      content.kind === "rebinding"
        ? content.credentials.map(({ id: credential, strategyId, before, after }) => ({
            credential,
            strategy: strategyId,
            before: before && [...before],
            after: [...after],
          }))
        : [],
  };
}

/** Credentials of these strategies, as many as there are now. */
async function countConnected(db: Database, strategies: readonly Need[]): Promise<number> {
  const once = new Map(strategies.map((each) => [`${each.account}/${each.id}`, each]));
  let credentials = 0;
  for (const { account, id: strategyId } of once.values())
    credentials += await countCredentialsOf(db, { account, strategyId });
  return credentials;
}

const showDocument = ({ kind, account, id, before, after }: ProposedDocument) => ({
  kind,
  account,
  id,
  is_new: before === null,
  differences: diffDocuments(
    before === null ? {} : (JSON.parse(before) as Json),
    JSON.parse(after) as Json,
  ).map(showDifference),
});

/** Throws OperatorError if there is no such proposal, or this installation did not write it. */
export async function requireProposal(
  read: () => Promise<Proposal | undefined>,
  id: string,
): Promise<Proposal> {
  let row;
  try {
    row = isId("proposal", id) ? await read() : undefined;
  } catch (error) {
    if (!(error instanceof RowRefused)) throw error;
    throw new OperatorError(`${error.message} Propose the change again.`);
  }
  if (row) return row;
  throw new OperatorError(`There is no proposal ${id}. \`latchkey proposals list\` shows them.`, "missing");
}
