import type { Database } from "./pool.ts";

/** A secret as it is listed: without its value. */
export interface ListedSecret {
  /** Slug. */
  readonly account: string;
  readonly name: string;
  readonly origins: readonly string[];
  readonly createdAt: Date;
  /** When the value was set. */
  readonly updatedAt: Date;
  /** The operator's sign-in name; null: it was the command line. */
  readonly setBy: string | null;
}

export interface SealedSecret {
  readonly valueId: string;
  readonly sealed: Uint8Array;
  readonly kid: string;
}

/** With an account's id only its own. */
export async function listAccountSecrets(
  db: Database,
  accountId: string | null,
): Promise<readonly ListedSecret[]> {
  return await db.query<ListedSecret>(
    `select slug as account, account_secret.name, origins, account_secret.created_at as "createdAt",
       account_secret.updated_at as "updatedAt", operator.email as "setBy"
     from account_secret join account on account.id = account_id left join operator on operator.id = operator_id
     where $1::text is null or account_id = $1 order by slug, account_secret.name`,
    [accountId],
  );
}

export async function findAccountSecret(
  db: Database,
  accountId: string,
  name: string,
): Promise<SealedSecret | undefined> {
  const rows = await db.query<SealedSecret>(
    `select value_id as "valueId", sealed, kid from account_secret where account_id = $1 and name = $2`,
    [accountId, name],
  );
  return rows[0];
}

/** Keeps a secret, in place of the one that has the name. */
export async function saveAccountSecret(
  db: Database,
  secret: SealedSecret & {
    readonly accountId: string;
    readonly name: string;
    readonly origins: readonly string[];
    readonly operatorId: string | null;
  },
): Promise<"created" | "replaced"> {
  const { accountId, name, origins, valueId, sealed, kid, operatorId } = secret;
  const rows = await db.query<{ isNew: boolean }>(
    `insert into account_secret (account_id, name, origins, value_id, sealed, kid, operator_id)
     values ($1, $2, $3, $4, $5, $6, $7)
     on conflict (account_id, name) do update set origins = excluded.origins, value_id = excluded.value_id,
       sealed = excluded.sealed, kid = excluded.kid, operator_id = excluded.operator_id,
       updated_at = greatest(app_now(), account_secret.created_at)
     returning xmax = 0 as "isNew"`,
    [accountId, name, origins, valueId, sealed, kid, operatorId],
  );
  return rows[0]?.isNew === true ? "created" : "replaced";
}

export async function countAccountSecrets(db: Database, accountId: string): Promise<number> {
  const rows = await db.query<{ total: number }>(
    `select count(*)::int as total from account_secret where account_id = $1`,
    [accountId],
  );
  return rows[0]?.total ?? 0;
}

/** False: there is none of that name. */
export async function deleteAccountSecret(db: Database, accountId: string, name: string): Promise<boolean> {
  const rows = await db.query(`delete from account_secret where account_id = $1 and name = $2 returning 1`, [
    accountId,
    name,
  ]);
  return rows.length > 0;
}
