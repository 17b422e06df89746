import { signFirstRows } from "#db/signing/first-signing.ts";
import { keepSigningKeyPrint } from "#db/installation.ts";
import type { Database } from "#db/connection/pool.ts";
import { guardRows } from "#db/signing/signed-rows.ts";
import type { Log } from "#lib/log.ts";
import { SigningKeyError, type Signing } from "#lib/signing.ts";

/**
 * Refuses the signing key of another installation at the start, before the first caller finds out: the first start writes a print
 * of its key into the database, and every later one compares. From then on this process verifies the rows that decide (see
 * `db/signing/signed-rows.ts`); those of a kind that was never signed here are signed first. Throws SigningKeyError.
 */
export async function checkSigningKey(db: Database, signing: Signing, log: Log | null = null): Promise<void> {
  const print = signing.fingerprint();
  if (!(await keepSigningKeyPrint(db, print))?.equals(print)) {
    throw new SigningKeyError(
      "The signing key is not the one of this database: with it, every API key, hosted link and download URL made before would stop " +
        "working. Give the one that belongs to it (LATCHKEY_SIGNING_KEY_FILE, or LATCHKEY_SIGNING_KEY), from your backup if need be.",
    );
  }
  guardRows(db, signing, log);
  const { signed, lostMarks } = await signFirstRows(db, signing);
  for (const { kind, rows, ids } of signed.filter(({ rows }) => rows > 0))
    log?.warn(
      { kind, rows, ids },
      "rows that were there before they were signed have been signed; look whether all are yours",
    );
  for (const kind of lostMarks) {
    log?.error(
      { alarm: "row_mark", kind },
      "the mark that rows of this kind are signed was gone, and was put back; no row was signed. Find out who can write to the database",
    );
  }
}
