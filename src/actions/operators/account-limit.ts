import type { KnownConfig } from "#actions/config/check-config.ts";
import { contentOf } from "#actions/config/list-proposals.ts";
import { requireAccount, requireWithin } from "#actions/operator-error.ts";
import { findAccountById, findAccountBySlug, listTestAccountIds } from "#db/accounts.ts";
import { findAccountOfKey } from "#db/api-keys.ts";
import { findAccountOfCredential, findSeenSession } from "#db/operators/operator-credentials.ts";
import { findAccountOfSchedule } from "#db/operators/operator-schedules.ts";
import type { Database } from "#db/connection/pool.ts";
import { findProposal } from "#db/operators/proposals.ts";
import { findWebhookEndpoint } from "#db/webhooks/webhook-endpoints.ts";
import { findReview } from "#db/runs/reviews.ts";
import { findRunOfAnyAccount } from "#db/runs/runs.ts";
import { readRunReference } from "#domain/ids.ts";
import { invalidField, notFound, Problem } from "#domain/problem.ts";
import { RowRefused } from "#domain/refused-row.ts";
import { must } from "#lib/assert.ts";
import type { Principal } from "./operator-caller.ts";

/** The ids of the accounts that a caller is limited to; null: all accounts. */
export const limitOf = (caller: Principal): readonly string[] | null => caller.accountIds;

/** The accounts, and their test accounts. */
export const withTestAccounts = async (
  db: Database,
  limit: readonly string[],
): Promise<readonly string[]> => [...limit, ...(await listTestAccountIds(db, limit))];

/** The caller in test mode: limited to the test accounts of all accounts, or of those that it is limited to. */
export async function limitToTestMode<C extends Principal>(db: Database, caller: C): Promise<C> {
  return { ...caller, accountIds: await listTestAccountIds(db, caller.accountIds) };
}

/**
 * How an operation is cut to the accounts of a limited caller whose path and body name none of their objects. `documents`: its action
 * checks the accounts of the documents. `own`: its action reads only what is of the accounts. `none`: its answer has nothing of any account.
 */
type AccountsOf = "documents" | "own" | "none";

/** How an operation refers to accounts, as far as it matters to a limited caller. */
interface CutOperation {
  readonly id: string;
  readonly path: string;
  readonly accounts?: AccountsOf;
  readonly query?: { readonly properties: object };
  readonly body?: { readonly properties: object };
}

interface Input {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, unknown>>;
  readonly body: Readonly<Record<string, unknown>>;
}

/** The accounts that an object is of, by the name of its id in paths; an undefined one: there is no such object or account. */
const OWNERS: Readonly<
  Record<string, (db: Database, id: string) => Promise<string | undefined | readonly (string | undefined)[]>>
> = {
  runId: async (db, id) => {
    const reference = readRunReference(id);
    return reference && (await findRunOfAnyAccount(db, reference))?.accountId;
  },
  reviewId: async (db, id) => (await findReview(db, id))?.accountId,
  credentialId: findAccountOfCredential,
  sessionId: async (db, id) => (await findSeenSession(db, id))?.accountId,
  // One of the operators is of no account.
  webhookId: async (db, id) => (await findWebhookEndpoint(db, id))?.accountId ?? undefined,
  keyId: findAccountOfKey,
  scheduleId: findAccountOfSchedule,
  proposalId: async (db, id) => await findAccountsOfProposal(db, id),
  // The chain of an account has its id.
  chain: async (_db, id) => await Promise.resolve(id),
};

/** Its own account, and those of its documents. A row that this installation did not write counts as missing. */
async function findAccountsOfProposal(db: Database, id: string): Promise<readonly (string | undefined)[]> {
  const proposal = await findProposal(db, id).catch((error: unknown) => {
    if (error instanceof RowRefused) return undefined;
    throw error;
  });
  if (!proposal) return [undefined];
  const content = contentOf(proposal);
  const slugs = content.kind === "documents" ? content.documents.map(({ account }) => account) : [];
  const accounts = await Promise.all(
    [...new Set(slugs)].map(async (slug) => await findAccountBySlug(db, slug)),
  );
  return [proposal.accountId, ...accounts.map((account) => account?.id)];
}

/**
 * Cuts an operation to the accounts of a limited caller, and returns its input, with the account that an export is narrowed to. By default
 * an operation is refused: one is only allowed if what it reads or changes is known to be of one of the accounts, or if its action cuts
 * what it reads. Others are as if they did not exist. Throws Problem 403, 404 or 422, OperatorError.
 */
export async function cutToAccounts<I extends Input>(
  db: Database,
  limit: readonly string[],
  operation: CutOperation,
  input: I,
): Promise<I> {
  const { path, query, body, accounts } = operation;
  if (accounts !== undefined) return input;
  const [, object] = /\{(\w+)\}/.exec(path) ?? [];
  if (object === "account") {
    await requireWithin(db, limit, input.params["account"] ?? "");
    return input;
  }
  if (object !== undefined) {
    const owner = await (OWNERS[object] ?? refuse(operation))(db, input.params[object] ?? "");
    if (!(await ownsAll(db, limit, [owner].flat()))) throw notFound("The requested object was");
    return input;
  }
  if (body && Object.hasOwn(body.properties, "account")) {
    const { account } = input.body;
    await requireWithin(db, limit, typeof account === "string" ? account : "");
    return input;
  }
  if (!query || !Object.hasOwn(query.properties, "account")) throw refusal(operation);
  return { ...input, query: { ...input.query, account: await narrow(db, limit, input.query["account"]) } };
}

/** Also what is of their test accounts: an object that is named needs no mode. */
async function ownsAll(
  db: Database,
  limit: readonly string[],
  owners: readonly (string | undefined)[],
): Promise<boolean> {
  const others = owners.filter((id) => id === undefined || !limit.includes(id));
  if (others.length === 0) return true;
  const tests = await listTestAccountIds(db, limit);
  return others.every((id) => id !== undefined && tests.includes(id));
}

const refuse = (operation: CutOperation) => (): never => {
  throw refusal(operation);
};

const refusal = ({ id }: CutOperation): Problem =>
  new Problem(
    "authorization_error",
    `You are limited to some accounts, and this operation (${id}) can't be limited to them.`,
  );

/** The account of an export; null is no answer. Throws Problem 422, OperatorError. */
async function narrow(db: Database, limit: readonly string[], given: unknown): Promise<string> {
  if (typeof given === "string") {
    await requireWithin(db, limit, given);
    return given;
  }
  const names = await namesOf(db, limit);
  const [only, ...others] = names;
  if (only !== undefined && others.length === 0) return only;
  throw invalidField("account", `You are limited to ${names.join(", ")}: \`account\` must name one.`);
}

/** The accounts' names. */
export async function namesOf(db: Database, ids: readonly string[]): Promise<readonly string[]> {
  const accounts = await Promise.all(ids.map(async (id) => await findAccountById(db, id)));
  return accounts.map((account) => must(account, "an account").slug);
}

/** Null: the caller is not limited. */
export async function namesOfLimit(db: Database, caller: Principal): Promise<readonly string[] | null> {
  const limit = limitOf(caller);
  return limit && (await namesOf(db, limit));
}

/** What a caller's documents may refer to, so that no problem and no suggestion names anything of another account. */
export async function cutKnown(db: Database, caller: Principal, known: KnownConfig): Promise<KnownConfig> {
  const names = await namesOfLimit(db, caller);
  if (names === null) return known;
  // Keys are `<account>/<name>`.
  const own = <T>(map: ReadonlyMap<string, T>): ReadonlyMap<string, T> =>
    new Map([...map].filter(([key]) => names.includes(key.slice(0, key.indexOf("/")))));
  return {
    accounts: new Set(names),
    strategies: own(known.strategies),
    secrets: own(known.secrets),
    ...(known.variableLogins && { variableLogins: own(known.variableLogins) }),
  };
}

/** The ids of accounts, by their names. Throws OperatorError. */
export async function idsOf(db: Database, names: readonly string[]): Promise<readonly string[]> {
  const accounts = await Promise.all([...new Set(names)].map(async (name) => await requireAccount(db, name)));
  return accounts.map(({ id }) => id).toSorted((a, b) => (a < b ? -1 : 1));
}

/** For documents that a limited caller plans or applies: all must be of its accounts, which exist. Throws OperatorError. */
export async function requireDocumentsWithin(
  db: Database,
  caller: Principal,
  documents: readonly { readonly account: string }[],
): Promise<void> {
  const limit = limitOf(caller);
  if (limit === null) return;
  for (const name of new Set(documents.map(({ account }) => account))) await requireWithin(db, limit, name);
}
