import { recordAudit } from "#db/audit-entries.ts";
import {
  allowWholeMonth,
  deleteEntries,
  insertDetached,
  listKept,
  listSlices,
  type ListedSlice,
} from "#db/audit-months.ts";
import { isRefusedRight, readRole } from "#db/connection/grants.ts";
import type { Database } from "#db/connection/pool.ts";
import { detachedBytes, KeptEntries } from "#domain/audit.ts";
import type { AuditSlice, DetachedSlice } from "#domain/audit-month.ts";
import type { AuditKeys } from "#lib/audit-keys.ts";
import { failpoint } from "#lib/failpoint.ts";
import { AuditMonthRefused, explainEmpty, requireClosed } from "./export-month.ts";
import { verifyMonthFile, type VerifiedMonth } from "./verify-month-file.ts";

export interface DetachedMonth {
  readonly month: string;
  readonly chains: number;
  /** Removed from the database. */
  readonly removed: number;
  /** Still in the database. */
  readonly kept: number;
  readonly sha256: string;
}

interface DetachRequest {
  readonly month: string;
  /** The file that `exportMonth` wrote. */
  readonly file: string;
  readonly onProgress?: (done: number, total: number) => void;
}

const BATCH = 10_000;

/** Whether the file has exactly the entries of the month that are in the database. Changes nothing. Throws AuditMonthRefused. */
export async function planDetaching(
  db: Database,
  keys: AuditKeys,
  { month: name, file }: DetachRequest,
): Promise<{ readonly verified: VerifiedMonth; readonly slices: readonly ListedSlice[] }> {
  const verified = await verifyMonthFile(file, keys);
  if (verified.month !== name)
    throw new AuditMonthRefused(
      `${file} has the entries of ${verified.month}, not of ${name}. Nothing was removed.`,
    );
  const month = await requireClosed(db, name);
  const slices = await listSlices(db, month);
  if (slices.length === 0) throw await explainEmpty(db, name);
  const early = slices.find(({ hasEarlier }) => hasEarlier);
  if (early !== undefined)
    throw new AuditMonthRefused(
      `Entries before ${name} of ${early.account ?? early.chain} are still in the database. Months are detached in their order: export and ` +
        "detach the earlier ones first.",
    );
  if (!isDeepEqual(slices.map(placesOf), verified.slices.map(placesOf)))
    throw new AuditMonthRefused(
      `${file} does not have the same entries of ${name} as the database. Export the month again, and run \`latchkey audit verify\`, which ` +
        "says whether the audit log has been tampered with. Nothing was removed.",
    );
  return { verified, slices };
}

const placesOf = ({ chain, first, last, previous, head }: AuditSlice): string =>
  [chain, first, last, previous, head].join(" ");

const isDeepEqual = (left: readonly string[], right: readonly string[]): boolean =>
  left.toSorted().join("\n") === right.toSorted().join("\n");

/**
 * Removes the entries of an exported month from the database, in one transaction: what is left of the month, the audit entry and the
 * removal are there together or not at all. `owner`: the owner of the tables, as the service's role can't delete entries. Throws
 * AuditMonthRefused.
 */
export async function detachMonth(
  owner: Database,
  keys: AuditKeys,
  request: DetachRequest,
): Promise<DetachedMonth> {
  try {
    return await owner.transaction(async (tx) => {
      await allowWholeMonth(tx);
      const { verified, slices } = await planDetaching(tx, keys, request);
      const { month, sha256: fileSha256 } = verified;
      let kept = 0;
      for (const slice of slices) {
        const left = { ...slice, month, fileSha256, ...(await summarizeKept(tx, slice)) };
        await insertDetached(tx, left, keys.sign(detachedBytes(left)));
        kept += left.kept;
      }
      await recordAudit(tx, keys, {
        accountId: null,
        actor: { kind: "cli" },
        action: "audit.detach",
        subjectId: month,
        detail: { chains: slices.length, entries: verified.entries, kept, sha256: fileSha256 },
      });
      const removed = await remove(tx, slices, request.onProgress ?? (() => {}));
      if (removed !== verified.entries - kept)
        throw new Error(
          `Invariant violated: ${removed} entries were removed, not ${verified.entries - kept}`,
        );
      return { month, chains: slices.length, removed, kept, sha256: fileSha256 };
    });
  } catch (error) {
    if (!isRefusedRight(error)) throw error;
    throw new AuditMonthRefused(
      `The role ${await readRole(owner)} may not remove entries of the audit log. Set DATABASE_OWNER_URL to a URL with the role that owns the ` +
        "tables. Nothing was removed.",
      { cause: error },
    );
  }
}

async function summarizeKept(
  tx: Database,
  slice: ListedSlice,
): Promise<Pick<DetachedSlice, "kept" | "keptSha256">> {
  const entries = new KeptEntries();
  for (let after = slice.first - 1, isOver = false; !isOver;) {
    const batch = await listKept(tx, slice, after, BATCH);
    for (const entry of batch) entries.add(entry);
    after = batch.at(-1)?.sequence ?? after;
    isOver = batch.length < BATCH;
  }
  return { kept: entries.count, keptSha256: entries.digest() };
}

async function remove(
  tx: Database,
  slices: readonly ListedSlice[],
  onProgress: (done: number, total: number) => void,
): Promise<number> {
  const total = slices.reduce((sum, { first, last }) => sum + last - first + 1, 0);
  let [removed, done] = [0, 0];
  for (const { chain, first, last } of slices)
    for (let from = first; from <= last; from += BATCH) {
      const to = Math.min(last, from + BATCH - 1);
      removed += await deleteEntries(tx, chain, from, to);
      done += to - from + 1;
      onProgress(done, total);
      await failpoint("audit.after_detach_batch");
    }
  return removed;
}
