import { keepSigningKeyPrint } from "#db/installation.ts";
import type { Database } from "#db/pool.ts";
import { SigningKeyError, type Signing } from "#lib/signing.ts";

/**
 * Refuses the signing key of another installation at the start, before the first caller finds out: the first start writes a print
 * of its key into the database, and every later one compares. Throws SigningKeyError.
 */
export async function checkSigningKey(db: Database, signing: Signing): Promise<void> {
  const print = signing.fingerprint();
  if ((await keepSigningKeyPrint(db, print))?.equals(print)) return;
  throw new SigningKeyError(
    "The signing key is not the one of this database: with it, every API key, hosted link and download URL made before would stop " +
      "working. Give the one that belongs to it (LATCHKEY_SIGNING_KEY_FILE, or LATCHKEY_SIGNING_KEY), from your backup if need be.",
  );
}
