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
import { limits } from "#domain/limits.ts";
import type { AuditKeys } from "#lib/audit-keys.ts";
import { readCheckpoints } from "./checkpoint-audit.ts";
import { requireAccount } from "#actions/operator-error.ts";

export type AuditFault =
  /** The content is not what was written. */
  | "changed"
  /** An entry that was there is not there any more. */
  | "missing"
  /** An entry that this installation has never written. */
  | "inserted"
  /** A genuine entry in a place that is not its own. */
  | "moved"
  /** The end of the chain is gone. */
  | "truncated"
  /** Written, and not chained for longer than a worker takes. */
  | "unchained";

export interface AuditFinding {
  readonly fault: AuditFault;
  /** The first place where the chain is not what it was; null for an entry that has no place yet. */
  readonly sequence: number | null;
  readonly message: string;
}

export interface VerifiedChain {
  readonly chain: string;
  readonly entries: number;
  /** Without a place yet, all genuine. */
  readonly open: number;
  /** Empty: in order. The first place that is wrong; and everything that is wrong with entries without one. */
  readonly findings: readonly AuditFinding[];
}

const BATCH = 1_000;

export interface VerifiedAudit {
  readonly chains: readonly (VerifiedChain & { readonly account: string | null })[];
  /** Lines of checkpoint files that this installation has not signed, as `file:line`. */
  readonly foreignCheckpoints: readonly string[];
}

/** Checks all chains, or that of one account, against the checkpoints of files. One snapshot: a worker may go on meanwhile. */
export async function verifyAudit(
  db: Database,
  keys: AuditKeys,
  request: { readonly account: string | null; readonly checkpointFiles: readonly string[] },
): Promise<VerifiedAudit> {
  // Before the snapshot: what a worker writes down meanwhile would lie beyond it.
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

/** Also those that only a checkpoint knows: all of a chain may have been deleted. */
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

/** Checks one chain from its first entry to its end, against the checkpoints too. Changes nothing. */
export async function verifyChain(
  db: Database,
  keys: AuditKeys,
  chain: string,
  checkpoints: readonly AuditCheckpoint[],
): Promise<VerifiedChain> {
  const end = await findChainEnd(db, chain);
  const walked = await walk(db, keys, chain, checkpoints);
  const open = await checkOpen(db, keys, chain);
  const inPlace = walked.finding ?? checkEnd(walked, end, checkpoints);
  return {
    chain,
    entries: walked.count,
    open: open.genuine,
    findings: [...(inPlace ? [inPlace] : []), ...open.findings],
  };
}

/** How far a chain was checked: its last entry. A number may stand there twice: the id says which of them it was. */
export interface AuditPlace {
  readonly sequence: number;
  readonly id: string;
  readonly hash: Uint8Array;
}

/** The next entries of a chain after a place, at most `limit`; with the last ones also its end and what has no place yet. */
export async function verifyPart(
  db: Database,
  keys: AuditKeys,
  chain: string,
  start: AuditPlace | null,
  limit: number,
): Promise<{
  readonly checked: number;
  /** Where the next part begins; null: this was the last one, or something is wrong. */
  readonly next: AuditPlace | null;
  readonly findings: readonly AuditFinding[];
}> {
  return await inSnapshot(db, async (tx) => {
    const before = start?.sequence ?? 0;
    const walked = await walk(tx, keys, chain, [], { start, limit });
    const checked = walked.count - before;
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
  /** Entries up to the first that is wrong. */
  readonly count: number;
  readonly head: Uint8Array;
  /** Of the last entry. */
  readonly lastId: string;
  readonly finding: AuditFinding | null;
}

async function walk(
  db: Database,
  keys: AuditKeys,
  chain: string,
  checkpoints: readonly AuditCheckpoint[],
  { start, limit }: { readonly start: AuditPlace | null; readonly limit: number } = {
    start: null,
    limit: Infinity,
  },
): Promise<Walked> {
  const expectedAt = new Map(checkpoints.map(({ count, head }) => [count, head]));
  let [count, head, after]: [number, Uint8Array, { sequence: number; id: string }] = [
    start?.sequence ?? 0,
    start?.hash ?? GENESIS,
    { sequence: start?.sequence ?? Number.MIN_SAFE_INTEGER, id: start?.id ?? "" },
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

/** What is wrong with an entry that should be number `expected` and follow `previous`; null: nothing. */
function checkEntry(
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
  if (sequence > expected)
    return found("missing", expected, `is missing: ${sequence} is the next one there is`);
  if (sequence < expected)
    return found("inserted", sequence, `stands there more than once: ${entry.id} was inserted`);
  if (isGenuine && isPlaced && computed.equals(hash)) {
    if (checkpointed === undefined || checkpointed === computed.toString("hex")) return null;
    return found(
      "truncated",
      sequence,
      "is not the one that a checkpoint saw there: the chain was cut and grew anew",
    );
  }
  // Content and place are right, so one of the three proofs is not; or the content is nobody's.
  if (isPlaced || (isGenuine && computed.equals(hash)))
    return found("changed", sequence, `(${entry.id}) was changed in its proofs`);
  if (isGenuine) return found("moved", sequence, `(${entry.id}) is genuine but does not belong there`);
  if (keys.isSigned(placeBytes(chain, sequence, hash), entry.signature))
    return found("changed", sequence, `(${entry.id}) was changed`);
  return found(
    "inserted",
    sequence,
    `(${entry.id}) was never written by this installation, or all of it was changed`,
  );
}

/** Whether the chain goes as far as it once did. */
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
    return truncated(`entries ${sequence} to ${last.count} are gone: a checkpoint of ${last.at} saw them`);
  const told = end?.count ?? 0;
  if (told > count)
    return truncated(`entries ${sequence} to ${told} are gone: the chain's end knows of them`);
  if (told < count || (end && !end.head.equals(head)))
    return truncated(`the chain's end was changed: it says ${told} entries, and there are ${count}`);
  return null;
}

/** Entries without a place: each must be one of ours, and must not wait for long. */
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
