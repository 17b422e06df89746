import type { BlobStore } from "#blobs/store.ts";
import { recordAudit } from "#db/audit-entries.ts";
import { readInstallationMark } from "#db/installation.ts";
import type { Database } from "#db/connection/pool.ts";
import type { Signing } from "#lib/signing.ts";
import { ExplainedError } from "#lib/explained-error.ts";

/** The object store belongs to another installation, or to the database that this one was copied from. */
export class StoreOfAnother extends ExplainedError {
  constructor() {
    super(
      "The object store belongs to another installation, or to the database that this one is a copy of: objects that this database does not " +
        "name would be deleted there. Give this installation a bucket, prefix or data folder of its own. If the store is to be its own " +
        "from now on, and nobody else's, run `latchkey store adopt`.",
    );
  }
}

/**
 * Makes sure that the store belongs to this installation, and claims one that has no owner. Throws StoreOfAnother, and StoreFailed when the
 * store can't be reached.
 */
export async function claimStore(db: Database, blobs: BlobStore): Promise<void> {
  const mark = await readInstallationMark(db);
  if (mark === undefined) return;
  if (!isSame(await blobs.claim(mark), mark)) throw new StoreOfAnother();
}

/** Like claimStore, for a command that only reads: it does not claim a store without an owner. */
export async function checkStoreOwner(db: Database, blobs: BlobStore): Promise<void> {
  const [mark, found] = [await readInstallationMark(db), await blobs.readMark()];
  if (mark !== undefined && found !== null && !isSame(found, mark)) throw new StoreOfAnother();
}

/** Makes this installation the owner of the store. Returns whether another one was. */
export async function adoptStore(services: {
  readonly db: Database;
  readonly blobs: BlobStore;
  readonly signing: Signing;
}): Promise<boolean> {
  const { db, blobs, signing } = services;
  const mark = await readInstallationMark(db);
  if (mark === undefined) return false;
  const before = await blobs.claim(mark);
  if (isSame(before, mark)) return false;
  await recordAudit(db, signing.audit, {
    accountId: null,
    actor: { kind: "cli" },
    action: "store.adopt",
    subjectId: "installation",
    detail: { store: blobs.kind },
  });
  await blobs.adopt(mark);
  return true;
}

/** Unknown fields, of later versions, are ignored. */
function isSame(one: string, other: string): boolean {
  const [first, second] = [one, other].map((text): Record<string, unknown> => {
    try {
      return JSON.parse(text) as Record<string, unknown>;
    } catch {
      return {};
    }
  });
  return ["installation", "server", "database"].every(
    (part) => typeof first?.[part] === "string" && first[part] === second?.[part],
  );
}
