import {
  countOverdueEntries,
  findChainEnd,
  inSnapshot,
  listChained,
  listChains,
  listOpenEntries,
  type ChainEnd,
} from "#db/audit-entries.ts";
import type { Database } from "#db/connection/pool.ts";
import {
  entryBytes,
  GENESIS,
  hashEntry,
  placeBytes,
  type AuditCheckpoint,
  type ChainedEntry,
} from "#domain/audit.ts";
import type { AuditFault, AuditFinding } from "#domain/audit-finding.ts";
import { limits } from "#domain/limits.ts";
import type { AuditKeys } from "#lib/audit-keys.ts";
import { readCheckpoints } from "./checkpoint-audit.ts";
import { verifyDetached, type Detached } from "./verify-detached.ts";
import { requireAccount } from "#actions/operator-error.ts";

export interface VerifiedChain {
  readonly chain: string;
  /** Those in the database that have a number. */
  readonly entries: number;
  /** Months that were exported and are no longer in the database, such as `2026-08`. */
  readonly exported: readonly string[];
  /** Entries not chained yet, all genuine. */
  readonly open: number;
  /** The first fault of the chain, and all faults of unchained entries. Empty: no faults. */
  readonly findings: readonly AuditFinding[];
}

const BATCH = 1_000;

export interface VerifiedAudit {
  readonly chains: readonly (VerifiedChain & { readonly account: string | null })[];
  /** Lines of checkpoint files that this installation has not signed, as `file:line`. */
  readonly foreignCheckpoints: readonly string[];
}

/** Verifies all chains, or one account's, against checkpoint files, in one snapshot, so that workers can continue. */
export async function verifyAudit(
  db: Database,
  keys: AuditKeys,
  request: { readonly account: string | null; readonly checkpointFiles: readonly string[] },
): Promise<VerifiedAudit> {
  // Before the snapshot: later checkpoints would be beyond it.
  const read = await Promise.all(
    request.checkpointFiles.map(async (file) =>
      (await readCheckpoints(keys, file)).map((each) => ({ file, ...each })),
    ),
  );
  const checkpoints = read.flat().flatMap(({ checkpoint }) => checkpoint ?? []);
  const chains = await inSnapshot(db, async (tx) => {
    const wanted = await chainsToCheck(tx, request.account, checkpoints);
    const verified: (VerifiedChain & { account: string | null })[] = [];
    for (const { chain, account } of wanted) {
      const own = checkpoints.filter((each) => each.chain === chain);
      verified.push({ account, ...(await verifyChain(tx, keys, chain, own)) });
    }
    return verified;
  });
  const foreign = read.flat().filter(({ checkpoint }) => checkpoint === null);
  return { chains, foreignCheckpoints: foreign.map(({ file, line }) => `${file}:${line}`) };
}

/** Includes chains that only a checkpoint has: a whole chain may have been deleted. */
async function chainsToCheck(
  db: Database,
  account: string | null,
  checkpoints: readonly AuditCheckpoint[],
): Promise<readonly { readonly chain: string; readonly account: string | null }[]> {
  if (account !== null) return [{ chain: (await requireAccount(db, account)).id, account }];
  const present = await listChains(db);
  const known = new Set(present.map(({ chain }) => chain));
  const lost = new Set(checkpoints.map(({ chain }) => chain).filter((chain) => !known.has(chain)));
  return [...present, ...[...lost].map((chain) => ({ chain, account: null }))];
}

/** Verifies one chain completely, against the checkpoints too. Changes nothing. */
export async function verifyChain(
  db: Database,
  keys: AuditKeys,
  chain: string,
  checkpoints: readonly AuditCheckpoint[],
): Promise<VerifiedChain> {
  const end = await findChainEnd(db, chain);
  const detached = await verifyDetached(db, keys, chain, checkpoints);
  const start = placeAfter(detached);
  const walked = await walk(db, keys, chain, checkpoints, { start, limit: Infinity });
  const open = await checkOpen(db, keys, chain);
  const inPlace = detached.finding ?? walked.finding ?? checkEnd(walked, end, checkpoints);
  return {
    chain,
    entries: walked.count - start.sequence + detached.kept,
    exported: detached.months,
    open: open.genuine,
    findings: [...(inPlace ? [inPlace] : []), ...open.findings],
  };
}

/** The last verified entry of a chain. */
export interface AuditPlace {
  readonly sequence: number;
  /** Needed because a number may exist twice; null: of an entry that is no longer in the database. */
  readonly id: string | null;
  readonly hash: Uint8Array;
}

/** At most `limit` entries of a chain after a number; with the last ones also the chain's end and its unchained entries. */
export async function verifyPart(
  db: Database,
  keys: AuditKeys,
  chain: string,
  start: AuditPlace | null,
  limit: number,
): Promise<{
  readonly checked: number;
  /** Where the next part begins; null: this was the last one, or a fault was found. */
  readonly next: AuditPlace | null;
  readonly findings: readonly AuditFinding[];
}> {
  return await inSnapshot(db, async (tx) => {
    const detached = start === null ? await verifyDetached(tx, keys, chain, []) : null;
    if (detached?.finding) return { checked: 0, next: null, findings: [detached.finding] };
    const from = start ?? placeAfter(detached);
    const walked = await walk(tx, keys, chain, [], { start: from, limit });
    const checked = walked.count - from.sequence;
    if (walked.finding) return { checked, next: null, findings: [walked.finding] };
    if (checked >= limit)
      return {
        checked,
        next: { sequence: walked.count, id: walked.lastId, hash: walked.head },
        findings: [],
      };
    const atEnd = checkEnd(walked, await findChainEnd(tx, chain), []);
    const open = await checkOpen(tx, keys, chain);
    return { checked, next: null, findings: [...(atEnd ? [atEnd] : []), ...open.findings] };
  });
}

interface Walked {
  /** Entries up to the first fault. */
  readonly count: number;
  readonly head: Uint8Array;
  /** The id of the last entry. */
  readonly lastId: string;
  readonly finding: AuditFinding | null;
}

/** Where the entries begin that are in the database. */
const placeAfter = (detached: Detached | null): AuditPlace => ({
  sequence: detached?.last?.sequence ?? 0,
  id: null,
  hash: detached?.last?.hash ?? GENESIS,
});

async function walk(
  db: Database,
  keys: AuditKeys,
  chain: string,
  checkpoints: readonly AuditCheckpoint[],
  { start, limit }: { readonly start: AuditPlace; readonly limit: number },
): Promise<Walked> {
  const expectedAt = new Map(checkpoints.map(({ count, head }) => [count, head]));
  let [count, head, after]: [number, Uint8Array, { sequence: number; id: string }] = [
    start.sequence,
    start.hash,
    firstAfter(start),
  ];
  for (const last = count + limit; ;) {
    const entries = await listChained(db, chain, after, Math.min(BATCH, last - count));
    for (const entry of entries) {
      const finding = checkEntry(keys, entry, count + 1, head, expectedAt.get(count + 1));
      if (finding) return { count, head, lastId: after.id, finding };
      [count, head, after] = [entry.sequence, entry.hash, entry];
    }
    if (entries.length < BATCH || count >= last) return { count, head, lastId: after.id, finding: null };
  }
}

/** What `listChained` continues after. At the beginning of a chain, also entries are found whose numbers are too low. */
function firstAfter({ sequence, id }: AuditPlace): { readonly sequence: number; readonly id: string } {
  if (id !== null) return { sequence, id };
  // Entries with the last detached number and lower ones are those that are kept.
  return { sequence: sequence === 0 ? Number.MIN_SAFE_INTEGER : sequence + 1, id: "" };
}

/** The fault of an entry that should be number `expected` and follow `previous`; null: none. */
export function checkEntry(
  keys: AuditKeys,
  entry: ChainedEntry,
  expected: number,
  previous: Uint8Array,
  checkpointed: string | undefined,
): AuditFinding | null {
  const { chain, sequence, hash } = entry;
  const found = (fault: AuditFault, at: number, message: string): AuditFinding => ({
    fault,
    sequence: at,
    message: `entry ${at} ${message}`,
  });
  const isGenuine = keys.isSealed(entryBytes(entry), entry.seal);
  const computed = hashEntry(previous, sequence, entry);
  const isPlaced = keys.isSigned(placeBytes(chain, sequence, computed), entry.signature);
  if (sequence > expected) return found("missing", expected, `is missing: the next one is ${sequence}`);
  if (sequence < expected)
    return found("inserted", sequence, `exists more than once: ${entry.id} was inserted`);
  if (isGenuine && isPlaced && computed.equals(hash)) {
    if (checkpointed === undefined || checkpointed === computed.toString("hex")) return null;
    return found("truncated", sequence, "differs from the checkpoint: the chain was truncated and continued");
  }
  // Content and number match, so one of the three proofs is wrong; otherwise the content is forged.
  if (isPlaced || (isGenuine && computed.equals(hash)))
    return found("changed", sequence, `(${entry.id}) has changed proofs`);
  if (isGenuine) return found("moved", sequence, `(${entry.id}) is genuine but was moved`);
  if (keys.isSigned(placeBytes(chain, sequence, hash), entry.signature))
    return found("changed", sequence, `(${entry.id}) was changed`);
  return found(
    "inserted",
    sequence,
    `(${entry.id}) was not written by this installation, or was changed completely`,
  );
}

/** Whether the chain was truncated. */
function checkEnd(
  { count, head }: Walked,
  end: ChainEnd | undefined,
  checkpoints: readonly AuditCheckpoint[],
): AuditFinding | null {
  const sequence = count + 1;
  const truncated = (message: string): AuditFinding => ({ fault: "truncated", sequence, message });
  const last = checkpoints.reduce<AuditCheckpoint | null>(
    (most, each) => (each.count > (most?.count ?? 0) ? each : most),
    null,
  );
  if (last && last.count > count)
    return truncated(
      `entries ${sequence} to ${last.count} are missing: the checkpoint of ${last.at} has them`,
    );
  const recorded = end?.count ?? 0;
  if (recorded > count)
    return truncated(
      `entries ${sequence} to ${recorded} are missing: the end of the chain has a higher number`,
    );
  if (recorded < count || (end && !end.head.equals(head)))
    return truncated(`the end of the chain was changed: it says ${recorded} entries, but there are ${count}`);
  return null;
}

/** Unchained entries: each must be genuine, and must not wait for long. */
async function checkOpen(
  db: Database,
  keys: AuditKeys,
  chain: string,
): Promise<{ genuine: number; findings: readonly AuditFinding[] }> {
  const findings: AuditFinding[] = [];
  let genuine = 0;
  for (let afterId: string | null = ""; afterId !== null;) {
    const entries = await listOpenEntries(db, chain, afterId, BATCH);
    for (const entry of entries) {
      if (keys.isSealed(entryBytes(entry), entry.seal)) genuine++;
      else {
        const message = `${entry.id}, not chained yet, was changed or never written by this installation`;
        findings.push({ fault: "inserted", sequence: null, message });
      }
    }
    afterId = entries.length < BATCH ? null : (entries.at(-1)?.id ?? null);
  }
  const overdue = await countOverdueEntries(db, chain, limits.auditOverdueMs);
  if (overdue > findings.length) {
    const message = `${overdue - findings.length} entries are not chained after ${limits.auditOverdueMs / 1_000} s: does a worker run?`;
    findings.push({ fault: "unchained", sequence: null, message });
  }
  return { genuine, findings };
}
