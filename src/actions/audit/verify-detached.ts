import { listChained } from "#db/audit-entries.ts";
import { listDetached } from "#db/audit-months.ts";
import type { Database } from "#db/connection/pool.ts";
import {
  detachedBytes,
  entryBytes,
  GENESIS,
  KeptEntries,
  placeBytes,
  type AuditCheckpoint,
  type ChainedEntry,
} from "#domain/audit.ts";
import type { AuditFinding } from "#domain/audit-finding.ts";
import type { DetachedSlice } from "#domain/audit-month.ts";
import { must } from "#lib/assert.ts";
import type { AuditKeys } from "#lib/audit-keys.ts";

/** The months of a chain that are no longer in the database. */
export interface Detached {
  readonly months: readonly string[];
  /** The last entry of the last one; null: all entries are in the database. */
  readonly last: { readonly sequence: number; readonly hash: Buffer } | null;
  /** How many of their entries are still in the database. */
  readonly kept: number;
  readonly finding: AuditFinding | null;
}

const BATCH = 1_000;

/**
 * Verifies what is left of detached months: that this installation signed it, that the months follow each other from the chain's beginning,
 * and that of their entries exactly those are in the database that were to be kept.
 */
export async function verifyDetached(
  db: Database,
  keys: AuditKeys,
  chain: string,
  checkpoints: readonly AuditCheckpoint[],
): Promise<Detached> {
  const slices = await listDetached(db, chain);
  const end = slices.at(-1);
  if (end === undefined) return { months: [], last: null, kept: 0, finding: null };
  const kept = slices.reduce((sum, each) => sum + each.kept, 0);
  const finding =
    checkSlices(keys, slices, checkpoints) ?? (await checkKept(db, keys, chain, slices, end.last));
  return {
    months: slices.map(({ month }) => month),
    last: { sequence: end.last, hash: Buffer.from(end.head, "hex") },
    kept,
    finding,
  };
}

function checkSlices(
  keys: AuditKeys,
  slices: readonly (DetachedSlice & { readonly signature: Buffer })[],
  checkpoints: readonly AuditCheckpoint[],
): AuditFinding | null {
  let [sequence, hash] = [0, GENESIS.toString("hex")];
  for (const slice of slices) {
    const { month, first, last, previous, head } = slice;
    if (!keys.isSigned(detachedBytes(slice), slice.signature))
      return missing(
        first,
        `entries ${first} to ${last} are missing, and this installation did not detach ${month}`,
      );
    if (first !== sequence + 1 || previous !== hash)
      return missing(sequence + 1, `the entries before ${first}, with which ${month} begins, are missing`);
    const checkpoint = checkpoints.find(({ count }) => count === last);
    if (checkpoint !== undefined && checkpoint.head !== head)
      return {
        fault: "truncated",
        sequence: last,
        message: `entry ${last} differs from the checkpoint: the chain was truncated and continued`,
      };
    [sequence, hash] = [last, head];
  }
  return null;
}

const missing = (sequence: number, message: string): AuditFinding => ({
  fault: "missing",
  sequence,
  message,
});

/** Entries of detached months that are in the database. */
async function checkKept(
  db: Database,
  keys: AuditKeys,
  chain: string,
  slices: readonly DetachedSlice[],
  end: number,
): Promise<AuditFinding | null> {
  const found = slices.map((slice) => ({ slice, entries: new KeptEntries() }));
  let after = { sequence: Number.MIN_SAFE_INTEGER, id: "" };
  for (let at = 0, isOver = false; !isOver;) {
    const entries = await listChained(db, chain, after, BATCH);
    for (const entry of entries) {
      if (entry.sequence > end) return compareKept(found);
      const fault = faultOfKept(keys, entry);
      if (fault !== null) return fault;
      while (entry.sequence > must(found[at], "a month of the entry").slice.last) at++;
      must(found[at], "a month of the entry").entries.add(entry);
    }
    after = entries.at(-1) ?? after;
    isOver = entries.length < BATCH;
  }
  return compareKept(found);
}

/** The hash before it is no longer known, so its content is proved by its seal, and its place by the signature. */
function faultOfKept(keys: AuditKeys, entry: ChainedEntry): AuditFinding | null {
  const { chain, sequence, hash, id } = entry;
  const isGenuine = keys.isSealed(entryBytes(entry), entry.seal);
  if (isGenuine && keys.isSigned(placeBytes(chain, sequence, hash), entry.signature)) return null;
  return { fault: "changed", sequence, message: `entry ${sequence} (${id}) was changed` };
}

function compareKept(
  found: readonly { readonly slice: DetachedSlice; readonly entries: KeptEntries }[],
): AuditFinding | null {
  for (const { slice, entries } of found) {
    if (entries.digest() === slice.keptSha256) continue;
    const { month, first, last, kept } = slice;
    return missing(
      first,
      `of entries ${first} to ${last} (${month}), the ${kept} that were kept should be in the database, but ${entries.count} or others are`,
    );
  }
  return null;
}
