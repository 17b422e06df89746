import { listAccounts } from "#db/accounts.ts";
import { listAdminIds } from "#db/operators/operators.ts";
import type { Database } from "#db/connection/pool.ts";
import { readTwoPersonRules } from "#db/operators/two-person-rules.ts";
import { ADMINS_WANTED } from "#domain/proposal.ts";

export interface TooFewAdmins {
  /** Slug. */
  readonly account: string;
  readonly admins: number;
}

/** Accounts that require two admins where there are fewer: nobody could confirm their changes. */
export async function listAccountsWithTooFew(db: Database): Promise<readonly TooFewAdmins[]> {
  const accounts = await listAccounts(db);
  const rules = await readTwoPersonRules(
    db,
    accounts.map(({ id }) => id),
  );
  const found = await Promise.all(
    accounts
      .filter(({ id }) => rules.get(id) !== "off")
      .map(async ({ id, slug }) => ({ account: slug, admins: (await listAdminIds(db, id)).length })),
  );
  return found.filter(({ admins }) => admins < ADMINS_WANTED);
}

export const describeTooFew = ({ account, admins }: TooFewAdmins): string =>
  `account ${account} requires two admins (\`two_person\`), but there ${admins === 1 ? "is only one" : "is none"}: changes that ` +
  "decide where its credentials go can't be made. Create another one: latchkey operators create ana@example.com --role admin";
