import type { Database } from "#db/connection/pool.ts";
import { readGenuine, signRow, type ReadRows, type RowMark } from "#db/signing/signed-rows.ts";
import { signedColumns, type SignedRow } from "#db/signing/signed-tables.ts";

export interface VaultKey {
  readonly kid: string;
  readonly publicJwk: string;
  readonly sentinel: Uint8Array;
  readonly isPrimary: boolean;
  readonly createdAt: Date;
}

export type NewVaultKey = Pick<VaultKey, "kid" | "publicJwk" | "sentinel">;

const KEY_COLUMNS = `${signedColumns("vault_key")}, sentinel, created_at as "createdAt"`;

/** The keys that this installation registered. Any other row raises an alarm and is ignored. */
export async function listVaultKeys(db: Database): Promise<readonly VaultKey[]> {
  return (await readVaultKeys(db)).genuine;
}

/** Like listVaultKeys, with the reasons why other rows are refused. */
export async function readVaultKeys(db: Database): Promise<ReadRows<VaultKey>> {
  return await readGenuine(
    db,
    async () =>
      await db.query<VaultKey & SignedRow>(`select ${KEY_COLUMNS} from vault_key order by created_at, kid`),
    (row) => [{ kind: "vault_key", row }],
  );
}

/** The id of any key, even an unverified one, which means that the database has sealed values. Undefined: it is new. */
export async function findAnyVaultKeyId(db: Database): Promise<string | undefined> {
  const rows = await db.query<{ kid: string }>(`select kid from vault_key order by created_at, kid limit 1`);
  return rows[0]?.kid;
}

/** Registers the first key of a database as the primary one. Of two concurrent processes, the second finds the first's key. */
export async function insertFirstVaultKey(db: Database, key: NewVaultKey): Promise<void> {
  const mark = await signRow(db, "vault_key", { ...key, isPrimary: true });
  await db.query(
    `insert into vault_key (kid, public_jwk, sentinel, is_primary, row_serial, row_mac)
     select $1, $2, $3, true, $4, $5 where not exists (select from vault_key)
     on conflict do nothing`,
    [key.kid, key.publicJwk, key.sentinel, mark.serial, mark.mac],
  );
}

/** Registers another key, which only decrypts; replaces a row that does not verify, if there is one. */
export async function insertVaultKey(tx: Database, key: NewVaultKey): Promise<RowMark> {
  const mark = await signRow(tx, "vault_key", { ...key, isPrimary: false });
  await tx.query(
    `insert into vault_key (kid, public_jwk, sentinel, is_primary, row_serial, row_mac) values ($1, $2, $3, false, $4, $5)
     on conflict (kid) do update set public_jwk = excluded.public_jwk, sentinel = excluded.sentinel, is_primary = false,
       row_serial = excluded.row_serial, row_mac = excluded.row_mac`,
    [key.kid, key.publicJwk, key.sentinel, mark.serial, mark.mac],
  );
  return mark;
}

/** Locks the set of keys, here and in key files, until the transaction ends. */
export async function lockVaultKeys(tx: Database): Promise<void> {
  // A key service may be slow to answer.
  await tx.query(`set local idle_in_transaction_session_timeout = '60s'`);
  await tx.query(`select pg_advisory_xact_lock(hashtext('latchkey vault_key'))`);
}

/** Makes the key primary. Returns the marks of all changed keys, by id. */
export async function promoteVaultKey(
  tx: Database,
  { kid, publicJwk }: Pick<VaultKey, "kid" | "publicJwk">,
): Promise<ReadonlyMap<string, RowMark>> {
  const marks = new Map<string, RowMark>();
  for (const key of await listVaultKeys(tx)) {
    if (!key.isPrimary || key.kid === kid) continue;
    const mark = await signRow(tx, "vault_key", { ...key, isPrimary: false });
    await tx.query(
      `update vault_key set is_primary = false, demoted_at = app_now(), row_serial = $2, row_mac = $3 where kid = $1`,
      [key.kid, mark.serial, mark.mac],
    );
    marks.set(key.kid, mark);
  }
  // A forged row keeps its invalid signature.
  await tx.query(
    `update vault_key set is_primary = false, demoted_at = app_now() where is_primary and kid <> $1`,
    [kid],
  );
  const mark = await signRow(tx, "vault_key", { kid, publicJwk, isPrimary: true });
  await tx.query(
    `update vault_key set is_primary = true, demoted_at = null, row_serial = $2, row_mac = $3 where kid = $1`,
    [kid, mark.serial, mark.mac],
  );
  return marks.set(kid, mark);
}

/** Prevents sealing with the key until the transaction ends. Returns whether it may have been primary until recently. */
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

/** Returns the next serial of the row, which invalidates all earlier ones. */
export async function deleteVaultKey(tx: Database, kid: string): Promise<RowMark> {
  await tx.query(`delete from vault_key where kid = $1`, [kid]);
  return await signRow(tx, "vault_key", { kid, publicJwk: "", isPrimary: false });
}
