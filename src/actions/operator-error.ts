import { findAccountBySlug, listLiveAccountIds, type Account } from "#db/accounts.ts";
import type { Database } from "#db/connection/pool.ts";
import { ExplainedError } from "#lib/explained-error.ts";

/** The operator's request can't be executed. The message says why and what to do. */
export class OperatorError extends ExplainedError {
  /** `missing`: a named object does not exist. */
  readonly kind: "missing" | "refused";

  constructor(message: string, kind: OperatorError["kind"] = "refused") {
    super(message);
    this.kind = kind;
  }
}

/** By its slug. Throws OperatorError. */
export async function requireAccount(db: Database, slug: string): Promise<Account> {
  const account = await findAccountBySlug(db, slug);
  if (account) return account;
  throw new OperatorError(
    `There is no account "${slug}". Apply its document first: latchkey apply -f FILE.`,
    "missing",
  );
}

/**
 * The ids of the accounts that a list is narrowed to; null: all. `slug`: the one that was named; undefined: all but test accounts. `limit`:
 * the accounts of a caller who may use no others, which are as if they did not exist; null: the caller is not limited. Throws OperatorError.
 */
export async function accountIdsOf(
  db: Database,
  slug: string | undefined,
  limit: readonly string[] | null,
): Promise<readonly string[] | null> {
  if (slug === undefined) return limit ?? (await listLiveAccountIds(db));
  const { id } = limit === null ? await requireAccount(db, slug) : await requireWithin(db, limit, slug);
  return [id];
}

/** The account, if it is one of those that a caller is limited to. Throws OperatorError. */
export async function requireWithin(db: Database, limit: readonly string[], slug: string): Promise<Account> {
  const account = await findAccountBySlug(db, slug);
  if (account && limit.includes(account.id)) return account;
  throw new OperatorError(`There is no account "${slug}" among those that you are limited to.`, "missing");
}
