import type { Database } from "./pool.ts";

/** The print of the signing key that this database belongs to. The first start writes its own; two at once write one. */
export async function keepSigningKeyPrint(db: Database, print: Uint8Array): Promise<Buffer | undefined> {
  await db.query(`insert into installation (signing_key_print) values ($1) on conflict do nothing`, [print]);
  const rows = await db.query<{ print: Buffer }>(`select signing_key_print as print from installation`);
  return rows[0]?.print;
}
