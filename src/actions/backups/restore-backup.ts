import { recordAudit } from "#db/audit-entries.ts";
import { loading, type Loading } from "#db/backups/load.ts";
import type { Database } from "#db/connection/pool.ts";
import type { BlobStore } from "#blobs/store.ts";
import { reconcileRestore, type Reconciled } from "#actions/credentials/restore-reconcile.ts";
import { adoptStore } from "#actions/upkeep/claim-store.ts";
import type { Signing } from "#lib/signing.ts";
import type { MasterKey } from "#vault/master-key.ts";
import { BackupRefused } from "./create-backup.ts";
import type { Manifest, Totals } from "./frames.ts";
import { ObjectWriter } from "./object-writer.ts";
import { framesOf, type BackupFile, type VerifiedBackup } from "./read-backup.ts";

const KEYS_ASKED_AT_ONCE = 500;

/** Refuses a backup that the keys at hand could not use. Throws BackupRefused. */
export function requireKeys(
  { signingKey, masterKeys }: Manifest,
  keys: { readonly signing: Signing; readonly masterKey: MasterKey },
): void {
  if (signingKey !== "" && signingKey !== keys.signing.fingerprint().toString("hex"))
    throw new BackupRefused(
      "The signing key is not that of the backup: with it, every API key, hosted link and download URL would stop working. Put the one that " +
        "belongs to the backup into the data folder, from where you keep it. Nothing was written.",
    );
  const lacking = masterKeys.filter((kid) => !keys.masterKey.privateKeys.has(kid));
  if (lacking.length > 0)
    throw new BackupRefused(
      `The backup needs the master ${lacking.length === 1 ? "key" : "keys"} ${lacking.join(", ")} to open its credentials, and the keyset has ` +
        `only ${[...keys.masterKey.privateKeys.keys()].join(", ")}. Give the keyset that has them. Nothing was written.`,
    );
}

/** The store must be free, because a restore makes it this installation's. Throws BackupRefused, StoreFailed. */
export async function requireFreeStore(blobs: BlobStore): Promise<void> {
  if ((await blobs.readMark()) === null) return;
  throw new BackupRefused(
    "The object store belongs to an installation. Give the restored one a bucket, prefix or data folder of its own; or, if the other one is " +
      "not used any more, add --adopt-store. Nothing was written.",
  );
}

/**
 * Loads a verified backup into a database whose tables are empty and have the backup's schema, and its objects into the store. All rows
 * are one transaction, which is committed when all objects are stored. Throws BackupRefused, StoreFailed.
 */
export async function loadBackup(
  owner: Database,
  blobs: BlobStore,
  backup: BackupFile,
  { totals }: VerifiedBackup,
): Promise<void> {
  await loading(owner, async (load) => {
    await using objects = new ObjectWriter(blobs);
    const asked: string[] = [];
    let named = 0;
    const settle = async (): Promise<void> => {
      await objects.settle();
      named += await removeUnnamed(load, blobs, asked.splice(0));
    };
    for await (const { head, body } of framesOf(backup)) {
      if (head.frame === "table") {
        const rows = await load.loadRows(head, body);
        if (rows !== totals.rows[head.name])
          throw new Error(`${rows} of ${totals.rows[head.name]} rows of ${head.name} were loaded.`);
      } else if (head.frame === "object") {
        await objects.put(head.key, body);
        asked.push(head.key);
        if (asked.length >= KEYS_ASKED_AT_ONCE) await settle();
      } else for await (const _ of body);
    }
    await settle();
    for (const { name, lastValue } of totals.sequences) await load.setSequence(name, lastValue);
    const lacking = (await load.countObjects()) - named - totals.missing;
    if (lacking > 0)
      throw new BackupRefused(
        `${lacking} objects to which rows refer are not in the backup. Nothing was restored.`,
      );
  });
}

/** Objects that are newer than the rows came along. Returns how many of the keys rows refer to. */
async function removeUnnamed(load: Loading, blobs: BlobStore, keys: readonly string[]): Promise<number> {
  const unnamed = await load.listUnnamed(keys);
  if (unnamed.size > 0) await blobs.remove([...unnamed]);
  return keys.length - unnamed.size;
}

/**
 * Makes a loaded backup this installation's: the store, the deletes since, an audit entry. `tombstones`: files with the ids of credentials
 * that were deleted later.
 */
export async function settleRestore(
  services: { readonly db: Database; readonly blobs: BlobStore; readonly signing: Signing },
  { manifest, totals }: { readonly manifest: Manifest; readonly totals: Totals },
  tombstones: readonly string[],
): Promise<Reconciled> {
  const { db, signing } = services;
  await adoptStore(services);
  const reconciled = await reconcileRestore(db, signing, tombstones);
  await recordAudit(db, signing.audit, {
    accountId: null,
    actor: { kind: "cli" },
    action: "backup.restore",
    subjectId: "installation",
    detail: {
      taken_at: manifest.takenAt,
      rows: countRows(totals),
      objects: totals.objects,
      missing: totals.missing,
    },
  });
  return reconciled;
}

export const countRows = ({ rows }: Pick<Totals, "rows">): number =>
  Object.values(rows).reduce((sum, each) => sum + each, 0);
