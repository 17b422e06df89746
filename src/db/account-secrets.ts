import type { Database } from "./connection/pool.ts";
import { readGenuine, readOneGenuine, signRow, type RowMark } from "./signing/signed-rows.ts";
import { signedColumns, type SignedRow } from "./signing/signed-tables.ts";

/** A secret without its value, for lists. */
export interface ListedSecret {
  /** Slug. */
  readonly account: string;
  readonly name: string;
  readonly origins: readonly string[];
  readonly createdAt: Date;
  /** When the value was set. */
  readonly updatedAt: Date;
  /** The operator's email; null: the command line. */
  readonly setBy: string | null;
}

export interface SealedSecret {
  readonly valueId: string;
  readonly sealed: Uint8Array;
  readonly kid: string;
}

/** All secrets, or those of one account. Rows that this installation did not sign are omitted. */
export async function listAccountSecrets(
  db: Database,
  accountIds: readonly string[] | null,
): Promise<readonly ListedSecret[]> {
  const { genuine } = await readGenuine(
    db,
    async () =>
      await db.query<ListedSecret & SignedRow>(
        `select ${signedColumns("account_secret")}, slug as account, account_secret.created_at as "createdAt",
           account_secret.updated_at as "updatedAt", operator.email as "setBy"
         from account_secret join account on account.id = account_id left join operator on operator.id = operator_id
         where $1::text[] is null or account_id = any($1) order by slug, account_secret.name`,
        [accountIds],
      ),
    (row) => [{ kind: "account_secret", row }],
  );
  return genuine.map(({ account, name, origins, createdAt, updatedAt, setBy }) => ({
    account,
    name,
    origins,
    createdAt,
    updatedAt,
    setBy,
  }));
}

/** Throws RowRefused. */
export async function findAccountSecret(
  db: Database,
  accountId: string,
  name: string,
): Promise<SealedSecret | undefined> {
  return await readOneGenuine(
    db,
    async () =>
      await db.query<SealedSecret & SignedRow>(
        `select ${signedColumns("account_secret")}, sealed, kid from account_secret where account_id = $1 and name = $2`,
        [accountId, name],
      ),
    (row) => [{ kind: "account_secret", row }],
  );
}

/** Stores a secret, replacing one of the same name. */
export async function saveAccountSecret(
  db: Database,
  secret: SealedSecret & {
    readonly accountId: string;
    readonly name: string;
    readonly origins: readonly string[];
    readonly operatorId: string | null;
  },
): Promise<{ readonly change: "created" | "replaced"; readonly audited: RowMark["audited"] }> {
  const { accountId, name, origins, valueId, sealed, kid, operatorId } = secret;
  const { serial, mac, audited } = await signRow(db, "account_secret", { accountId, name, origins, valueId });
  const rows = await db.query<{ isNew: boolean }>(
    `insert into account_secret (account_id, name, origins, value_id, sealed, kid, operator_id, row_serial, row_mac)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     on conflict (account_id, name) do update set origins = excluded.origins, value_id = excluded.value_id,
       sealed = excluded.sealed, kid = excluded.kid, operator_id = excluded.operator_id,
       row_serial = excluded.row_serial, row_mac = excluded.row_mac,
       updated_at = greatest(app_now(), account_secret.created_at)
     returning xmax = 0 as "isNew"`,
    [accountId, name, origins, valueId, sealed, kid, operatorId, serial, mac],
  );
  return { change: rows[0]?.isNew === true ? "created" : "replaced", audited };
}

export async function countAccountSecrets(db: Database, accountId: string): Promise<number> {
  const rows = await db.query<{ total: number }>(
    `select count(*)::int as total from account_secret where account_id = $1`,
    [accountId],
  );
  return rows[0]?.total ?? 0;
}

/** Returns the next serial of the deleted row, so that no earlier one is valid any more. Undefined: there is no such secret. */
export async function deleteAccountSecret(
  db: Database,
  accountId: string,
  name: string,
): Promise<RowMark["audited"] | undefined> {
  const rows = await db.query(`delete from account_secret where account_id = $1 and name = $2 returning 1`, [
    accountId,
    name,
  ]);
  if (rows.length === 0) return undefined;
  return (await signRow(db, "account_secret", { accountId, name, origins: [], valueId: "" })).audited;
}
