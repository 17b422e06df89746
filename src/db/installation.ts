import type { Database } from "./connection/pool.ts";

/**
 * The fingerprint of the signing key that this database belongs to. The first start writes that of its key; of two concurrent
 * starts only one does.
 */
export async function storeSigningKeyFingerprint(
  db: Database,
  print: Uint8Array,
): Promise<Buffer | undefined> {
  await db.query(`insert into installation (signing_key_print) values ($1) on conflict do nothing`, [print]);
  const rows = await db.query<{ print: Buffer }>(`select signing_key_print as print from installation`);
  return rows[0]?.print;
}

/**
 * The identity of this database, as recorded in its object store: the installation's id, and two values that a copy of the
 * database does not have, the server's identifier (`pg_control_system`) and the database's oid. Undefined: the service was never
 * started with it.
 */
export async function readInstallationMark(db: Database): Promise<string | undefined> {
  const rows = await db.query<{ mark: string }>(
    `select json_build_object('v', 1, 'installation', installation.id, 'server', (select system_identifier::text from pg_control_system()),
       'database', (select oid::text from pg_database where datname = current_database()))::text as mark
     from installation`,
  );
  return rows[0]?.mark;
}
