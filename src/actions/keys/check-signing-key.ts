import { signFirstRows } from "#db/signing/first-signing.ts";
import { storeSigningKeyFingerprint } from "#db/installation.ts";
import type { Database } from "#db/connection/pool.ts";
import { guardRows } from "#db/signing/signed-rows.ts";
import type { Log } from "#lib/log.ts";
import { SigningKeyError, type Signing } from "#lib/signing.ts";

/**
 * Rejects the signing key of another installation at the start: the first start stores a fingerprint of its key in the database, and
 * later ones compare it. From then on this process verifies signed rows (`db/signing/signed-rows.ts`); kinds of rows that were never
 * signed are signed first. Throws SigningKeyError.
 */
export async function checkSigningKey(db: Database, signing: Signing, log: Log | null = null): Promise<void> {
  const print = signing.fingerprint();
  if (!(await storeSigningKeyFingerprint(db, print))?.equals(print)) {
    throw new SigningKeyError(
      "The signing key does not belong to this database: with it, every existing API key, hosted link and download URL would stop " +
        "working. Give the one that belongs to it (LATCHKEY_SIGNING_KEY_FILE, or LATCHKEY_SIGNING_KEY), from your backup if need be.",
    );
  }
  guardRows(db, signing, log);
  const { signed, lostMarks } = await signFirstRows(db, signing);
  for (const { kind, rows, ids } of signed.filter(({ rows }) => rows > 0))
    log?.warn(
      { kind, rows, ids },
      "existing rows have been signed for the first time; check that all of them are yours",
    );
  for (const kind of lostMarks) {
    log?.error(
      { alarm: "row_mark", kind },
      "the mark that rows of this kind are signed was missing and has been restored; no row was signed. Find out who can write to the database",
    );
  }
}
