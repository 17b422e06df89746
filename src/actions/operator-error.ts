import { findAccountBySlug, type Account } from "#db/accounts.ts";
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

/** The id of the account that a list is narrowed to; null: none was named. Throws OperatorError. */
export async function accountIdOf(db: Database, slug: string | undefined): Promise<string | null> {
  return slug === undefined ? null : (await requireAccount(db, slug)).id;
}
