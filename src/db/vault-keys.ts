import type { Database } from "./pool.ts";

export interface VaultKey {
  readonly kid: string;
  readonly publicJwk: string;
  readonly sentinel: Uint8Array;
  readonly isPrimary: boolean;
  readonly createdAt: Date;
}

export type NewVaultKey = Pick<VaultKey, "kid" | "publicJwk" | "sentinel">;

export async function listVaultKeys(db: Database): Promise<readonly VaultKey[]> {
  return await db.query<VaultKey>(
    `select kid, public_jwk as "publicJwk", sentinel, is_primary as "isPrimary", created_at as "createdAt"
     from vault_key order by created_at, kid`,
  );
}

/** The first key of a database. When two processes start at once the second finds the first's. */
export async function insertFirstVaultKey(db: Database, key: NewVaultKey): Promise<void> {
  await db.query(
    `insert into vault_key (kid, public_jwk, sentinel, is_primary)
     select $1, $2, $3, true where not exists (select from vault_key)
     on conflict do nothing`,
    [key.kid, key.publicJwk, key.sentinel],
  );
}

/** One more key, which opens and does not seal. */
export async function insertVaultKey(db: Database, key: NewVaultKey): Promise<void> {
  await db.query(
    `insert into vault_key (kid, public_jwk, sentinel, is_primary) values ($1, $2, $3, false) on conflict do nothing`,
    [key.kid, key.publicJwk, key.sentinel],
  );
}

/** Until the transaction ends nobody else changes the set of keys, here or in a key file. */
export async function lockVaultKeys(tx: Database): Promise<void> {
  // A key service may take its time to answer.
  await tx.query(`set local idle_in_transaction_session_timeout = '60s'`);
  await tx.query(`select pg_advisory_xact_lock(hashtext('latchkey vault_key'))`);
}

/** The key seals from now on. */
export async function promoteVaultKey(tx: Database, kid: string): Promise<void> {
  await tx.query(
    `update vault_key set is_primary = false, demoted_at = app_now() where is_primary and kid <> $1`,
    [kid],
  );
  await tx.query(`update vault_key set is_primary = true, demoted_at = null where kid = $1`, [kid]);
}

/** Until the transaction ends nothing can be sealed with the key. Whether it may just have been the primary one. */
export async function lockVaultKey(
  tx: Database,
  kid: string,
  settledMs: number,
): Promise<{ readonly isPrimary: boolean; readonly isSettled: boolean } | undefined> {
  const rows = await tx.query<{ isPrimary: boolean; isSettled: boolean }>(
    `select is_primary as "isPrimary",
            coalesce(demoted_at <= app_now() - $2::bigint * interval '1 ms', true) as "isSettled"
     from vault_key where kid = $1 for update`,
    [kid, settledMs],
  );
  return rows[0];
}

export async function deleteVaultKey(tx: Database, kid: string): Promise<void> {
  await tx.query(`delete from vault_key where kid = $1`, [kid]);
}
