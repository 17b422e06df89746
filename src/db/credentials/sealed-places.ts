import type { Database } from "#db/connection/pool.ts";

/** A sealed value and its binding. */
export interface SealedRow {
  readonly rowId: string;
  readonly accountId: string;
  readonly strategyId: string;
  /** null: the row's value never changes. */
  readonly version: string | null;
  readonly sealed: Uint8Array;
  readonly kid: string;
}

/** A column of sealed values. */
export interface SealedPlace {
  readonly table: string;
  readonly purpose: "credential" | "login_session" | "oauth_token" | "account_secret" | "webhook_secret";
  /** The plural noun for messages. */
  readonly noun: string;
  /** Returns up to $2 rows as SealedRow after $1, in the order of their ids; with $3 only those not sealed with that key. */
  readonly list: string;
  /** $1 kid; arrays: $2 row ids, $3 the old kids, $4 the old bytes, $5 the new bytes. Returns a row for each change. */
  readonly replace: string;
  /** How many values each key holds. */
  readonly count: string;
}

/**
 * All columns with sealed values. Rotation, `doctor` and the test of this list use it: a table with a sealed
 * column that is missing here fails `test/vault/sealed-places.pg.test.ts`.
 */
export const SEALED_PLACES: readonly SealedPlace[] = [
  {
    table: "credential",
    purpose: "credential",
    noun: "credentials",
    list: `select id as "rowId", account_id as "accountId", strategy_id as "strategyId", null as version, sealed, kid
      from credential where id > $1 and ($3::text is null or kid <> $3) order by id limit $2`,
    replace: `update credential set sealed = fresh.sealed, kid = $1
      from unnest($2::text[], $3::text[], $4::bytea[], $5::bytea[]) as fresh (row_id, kid, was, sealed)
      where credential.id = fresh.row_id and credential.kid = fresh.kid and credential.sealed = fresh.was returning 1`,
    count: `select kid, count(*) as total from credential group by kid`,
  },
  {
    table: "login_session",
    purpose: "login_session",
    noun: "cached logins",
    // The version has the format of `loginVersion`.
    list: `select login_session.credential_id as "rowId", login_session.account_id as "accountId",
        credential.strategy_id as "strategyId", login_session.sealed, login_session.kid,
        concat_ws('/', strategy_version, (extract(epoch from expires_at) * 1000)::bigint, login_id) as version
      from login_session join credential on credential.id = login_session.credential_id
      where credential_id > $1 and ($3::text is null or login_session.kid <> $3) order by credential_id limit $2`,
    replace: `update login_session set sealed = fresh.sealed, kid = $1
      from unnest($2::text[], $3::text[], $4::bytea[], $5::bytea[]) as fresh (row_id, kid, was, sealed)
      where credential_id = fresh.row_id and login_session.kid = fresh.kid and login_session.sealed = fresh.was returning 1`,
    count: `select kid, count(*) as total from login_session group by kid`,
  },
  {
    table: "oauth_token",
    purpose: "oauth_token",
    noun: "OAuth token sets",
    list: `select oauth_token.credential_id as "rowId", oauth_token.account_id as "accountId",
        credential.strategy_id as "strategyId", oauth_token.version::text as version, oauth_token.sealed, oauth_token.kid
      from oauth_token join credential on credential.id = oauth_token.credential_id
      where credential_id > $1 and ($3::text is null or oauth_token.kid <> $3) order by credential_id limit $2`,
    replace: `update oauth_token set sealed = fresh.sealed, kid = $1
      from unnest($2::text[], $3::text[], $4::bytea[], $5::bytea[]) as fresh (row_id, kid, was, sealed)
      where credential_id = fresh.row_id and oauth_token.kid = fresh.kid and oauth_token.sealed = fresh.was returning 1`,
    count: `select kid, count(*) as total from oauth_token group by kid`,
  },
  {
    table: "account_secret",
    purpose: "account_secret",
    noun: "account secrets",
    list: `select account_id || '/' || name as "rowId", account_id as "accountId", '' as "strategyId", value_id as version, sealed, kid
      from account_secret where account_id || '/' || name > $1 and ($3::text is null or kid <> $3)
      order by account_id || '/' || name limit $2`,
    replace: `update account_secret set sealed = fresh.sealed, kid = $1
      from unnest($2::text[], $3::text[], $4::bytea[], $5::bytea[]) as fresh (row_id, kid, was, sealed)
      where account_id || '/' || name = fresh.row_id and account_secret.kid = fresh.kid and account_secret.sealed = fresh.was
      returning 1`,
    count: `select kid, count(*) as total from account_secret group by kid`,
  },
  {
    table: "webhook_secret",
    purpose: "webhook_secret",
    noun: "webhook secrets",
    // As in `webhookSecretBinding`.
    list: `select id as "rowId", coalesce(account_id, 'installation') as "accountId", endpoint_id as "strategyId", null as version, sealed, kid
      from webhook_secret where id > $1 and ($3::text is null or kid <> $3) order by id limit $2`,
    replace: `update webhook_secret set sealed = fresh.sealed, kid = $1
      from unnest($2::text[], $3::text[], $4::bytea[], $5::bytea[]) as fresh (row_id, kid, was, sealed)
      where webhook_secret.id = fresh.row_id and webhook_secret.kid = fresh.kid and webhook_secret.sealed = fresh.was returning 1`,
    count: `select kid, count(*) as total from webhook_secret group by kid`,
  },
];

/** A batch in the order of ids, after `afterId`; with `notKid` only values sealed with another key. */
export async function listSealed(
  db: Database,
  place: SealedPlace,
  page: { readonly afterId: string; readonly limit: number; readonly notKid?: string },
): Promise<readonly SealedRow[]> {
  return await db.query<SealedRow>(place.list, [page.afterId, page.limit, page.notKid ?? null]);
}

/**
 * Replaces the bytes that were read with resealed ones. Rows that were written or deleted in the meantime remain unchanged.
 * Returns the number of replaced values.
 */
export async function replaceSealed(
  db: Database,
  place: SealedPlace,
  kid: string,
  changes: readonly { readonly was: SealedRow; readonly sealed: Uint8Array }[],
): Promise<number> {
  // Two concurrent rotations may lock rows in different orders: the server aborts one of the statements, which is then retried.
  const replaced = await db.transaction(
    async (tx) =>
      await tx.query(place.replace, [
        kid,
        changes.map(({ was }) => was.rowId),
        changes.map(({ was }) => was.kid),
        changes.map(({ was }) => was.sealed),
        changes.map(({ sealed }) => sealed),
      ]),
    { retry: true },
  );
  return replaced.length;
}

export interface KeyUse {
  readonly noun: string;
  readonly kid: string;
  readonly total: number;
}

/** The number of values per place and key. */
export async function countSealed(db: Database): Promise<readonly KeyUse[]> {
  const use: KeyUse[] = [];
  for (const { noun, count } of SEALED_PLACES) {
    const rows = await db.query<{ kid: string; total: number }>(count);
    use.push(...rows.map((row) => ({ noun, ...row })));
  }
  return use;
}
