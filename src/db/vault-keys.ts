import type { Database } from "./pool.ts";

export interface VaultKey {
  readonly kid: string;
  readonly publicJwk: string;
  readonly sentinel: Uint8Array;
  readonly isPrimary: boolean;
}

export async function listVaultKeys(db: Database): Promise<readonly VaultKey[]> {
  return await db.query<VaultKey>(
    `select kid, public_jwk as "publicJwk", sentinel, is_primary as "isPrimary" from vault_key order by created_at`,
  );
}

/** The first key of a database. When two processes start at once the second finds the first's. */
export async function insertFirstVaultKey(db: Database, key: Omit<VaultKey, "isPrimary">): Promise<void> {
  await db.query(
    `insert into vault_key (kid, public_jwk, sentinel, is_primary)
     select $1, $2, $3, true where not exists (select from vault_key)
     on conflict do nothing`,
    [key.kid, key.publicJwk, key.sentinel],
  );
}
