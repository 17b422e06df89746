import type { Database } from "#db/connection/pool.ts";
import type { SealedRow } from "./sealed-places.ts";

/** The mark that existing credentials were bound to their origins, and when. */
export interface BoundMark {
  readonly atMs: number;
  readonly mac: Buffer;
}

/** Undefined: not yet, according to this row. */
export async function findBoundMark(db: Database): Promise<BoundMark | undefined> {
  const rows = await db.query<BoundMark>(
    `select (extract(epoch from credentials_bound_at) * 1000)::float8 as "atMs", credentials_bound_mac as mac
     from installation where credentials_bound_at is not null`,
  );
  return rows[0];
}

/** False: the mark already exists. */
export async function insertBoundMark(tx: Database, mark: BoundMark): Promise<boolean> {
  const rows = await tx.query(
    `update installation set credentials_bound_at = timestamptz 'epoch' + $1::bigint * interval '1 ms', credentials_bound_mac = $2
     where credentials_bound_at is null returning 1`,
    [mark.atMs, mark.mac],
  );
  return rows.length > 0;
}

/** The audit entry of the binding, which only the owner of the tables can delete. */
export async function findBindingEntry(db: Database): Promise<string | undefined> {
  const rows = await db.query<{ id: string }>(
    `select id from audit_entry where chain = 'installation' and action = 'credential.bind' order by id limit 1`,
  );
  return rows[0]?.id;
}

/** The displayed origins of credentials; only the sealed values decide. */
export async function noteOrigins(
  db: Database,
  notes: readonly { readonly credentialId: string; readonly origins: readonly string[] }[],
): Promise<void> {
  await db.query(
    `update credential set origins = array(select jsonb_array_elements_text(noted.origins))
     from unnest($1::text[], $2::jsonb[]) as noted (id, origins) where credential.id = noted.id`,
    [notes.map(({ credentialId }) => credentialId), notes.map(({ origins }) => JSON.stringify(origins))],
  );
}

/** The ids of one credential, if there is one, or of all of a strategy, oldest first. */
export async function listCredentialsOf(
  db: Database,
  choice: { readonly id: string } | { readonly accountId: string; readonly strategyId: string },
): Promise<readonly string[]> {
  const rows =
    "id" in choice
      ? await db.query<{ id: string }>(`select id from credential where id = $1`, [choice.id])
      : await db.query<{ id: string }>(
          `select id from credential where account_id = $1 and strategy_id = $2 order by created_at, id`,
          [choice.accountId, choice.strategyId],
        );
  return rows.map(({ id }) => id);
}

const FIND_SEALED = {
  credential: `select id as "rowId", account_id as "accountId", strategy_id as "strategyId", null as version, sealed, kid
    from credential where id = $1 for no key update`,
  oauth_token: `select oauth_token.credential_id as "rowId", oauth_token.account_id as "accountId",
      credential.strategy_id as "strategyId", oauth_token.version::text as version, oauth_token.sealed, oauth_token.kid
    from oauth_token join credential on credential.id = oauth_token.credential_id
    where oauth_token.credential_id = $1 for no key update of oauth_token`,
} as const;

/** The sealed value of a credential or of its tokens, locked until the transaction ends. */
export async function findSealedOf(
  db: Database,
  what: keyof typeof FIND_SEALED,
  credentialId: string,
): Promise<SealedRow | undefined> {
  return (await db.query<SealedRow>(FIND_SEALED[what], [credentialId]))[0];
}

export async function countCredentialsOf(
  db: Database,
  of: { readonly account: string; readonly strategyId: string },
): Promise<number> {
  const rows = await db.query<{ count: number }>(
    `select count(*)::int as count from credential join account on account.id = credential.account_id
     where account.slug = $1 and credential.strategy_id = $2`,
    [of.account, of.strategyId],
  );
  return rows[0]?.count ?? 0;
}

/** How many credentials of a strategy don't reach all of these origins, as far as rows say. */
export async function countUnreached(
  db: Database,
  of: { readonly account: string; readonly strategyId: string; readonly origins: readonly string[] },
): Promise<number> {
  const rows = await db.query<{ count: number }>(
    `select count(*)::int as count from credential join account on account.id = credential.account_id
     where account.slug = $1 and credential.strategy_id = $2
       and (credential.origins is null or not credential.origins @> $3::text[])`,
    [of.account, of.strategyId, of.origins],
  );
  return rows[0]?.count ?? 0;
}
