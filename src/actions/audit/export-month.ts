import { createHash } from "node:crypto";
import { basename, dirname } from "node:path";
import { inSnapshot, listChained } from "#db/audit-entries.ts";
import {
  allowWholeMonth,
  isDetached,
  listSlices,
  readMonthState,
  type ListedSlice,
} from "#db/audit-months.ts";
import type { Database } from "#db/connection/pool.ts";
import { monthBytes } from "#domain/audit.ts";
import { readAuditMonth, type AuditMonth } from "#domain/audit-month.ts";
import { limits } from "#domain/limits.ts";
import { must } from "#lib/assert.ts";
import type { AuditKeys } from "#lib/audit-keys.ts";
import { ExplainedError } from "#lib/explained-error.ts";
import { fileErrorCode, openNewFile } from "#lib/new-file.ts";
import { lineOf, type ExportLine } from "./export-audit.ts";
import { checkEntry } from "./verify-audit.ts";

/** A month can't be exported, verified or detached. The message says why and what to do. */
export class AuditMonthRefused extends ExplainedError {}

/** The format of the last line, which signs the others. */
export const MONTH_FORMAT = "latchkey.audit.month.v1";

export interface ExportedMonth {
  readonly month: string;
  readonly chains: number;
  readonly entries: number;
  /** Of all lines before the last one, hexadecimal. */
  readonly sha256: string;
}

const BATCH = 1_000;
const PIECE_BYTES = 65_536;

/** Of a month that is over, and all of whose entries are chained. Throws AuditMonthRefused. */
export async function requireClosed(db: Database, name: string): Promise<AuditMonth> {
  const month = readAuditMonth(name);
  if (month === undefined) throw new AuditMonthRefused(`"${name}" is not a month. Give one as 2026-08.`);
  const { isOver, isChained } = await readMonthState(db, month, limits.auditMonthClosesAfterMs);
  if (!isOver)
    throw new AuditMonthRefused(
      `${name} is not over: a month can be exported from one hour after its end, at ${month.endsAt.slice(0, 10)} 01:00 UTC.`,
    );
  if (!isChained)
    throw new AuditMonthRefused(
      `Entries of ${name} do not have their numbers yet. Start a worker, which numbers them within a second, and try again.`,
    );
  return month;
}

/**
 * Writes the entries of a closed month, of all chains, into a new file, and signs it. Each entry is verified on the way. The file appears when
 * it is complete and on disk. Throws AuditMonthRefused.
 */
export async function exportMonth(
  db: Database,
  keys: AuditKeys,
  request: { readonly month: string; readonly file: string },
  onProgress: (done: number, total: number) => void = () => {},
): Promise<ExportedMonth> {
  const month = await requireClosed(db, request.month);
  const { file } = request;
  const opened = await openNewFile(file).catch((error: unknown) => {
    throw explainDisk(error, file);
  });
  if (opened === undefined)
    throw new AuditMonthRefused(`${file} already exists. Name a new file; nothing was written.`);
  try {
    const written = await inSnapshot(db, async (tx) => {
      await allowWholeMonth(tx);
      const slices = await listSlices(tx, month);
      if (slices.length === 0) throw await explainEmpty(tx, month.name);
      return await write(
        tx,
        keys,
        { month, slices },
        { onProgress, append: (text) => opened.handle.appendFile(text) },
      );
    });
    await opened.complete();
    return written;
  } catch (error) {
    await opened.discard();
    throw explainDisk(error, file);
  }
}

/** Why a month has no entries in the database. */
export async function explainEmpty(db: Database, month: string): Promise<AuditMonthRefused> {
  return new AuditMonthRefused(
    (await isDetached(db, month))
      ? `The entries of ${month} were detached before: they are in the file that was exported then.`
      : `The audit log has no entries of ${month}.`,
  );
}

async function write(
  tx: Database,
  keys: AuditKeys,
  { month, slices }: { readonly month: AuditMonth; readonly slices: readonly ListedSlice[] },
  to: { readonly onProgress: (done: number, total: number) => void; append(text: string): Promise<void> },
): Promise<ExportedMonth> {
  const total = slices.reduce((sum, { first, last }) => sum + last - first + 1, 0);
  const hash = createHash("sha256");
  let [entries, piece] = [0, ""];
  const append = async (line: ExportLine): Promise<void> => {
    piece += `${JSON.stringify(line)}\n`;
    if (piece.length >= PIECE_BYTES) await flush();
  };
  const flush = async (): Promise<void> => {
    hash.update(piece);
    await to.append(piece);
    piece = "";
    to.onProgress(entries, total);
  };
  for (const slice of slices) {
    const { chain, account, first, last, previous, head } = slice;
    const { publicKey } = keys;
    await append({
      format: "latchkey.audit.v1",
      chain,
      account,
      public_key: publicKey,
      month: month.name,
      first,
      count: last,
      previous,
      head,
    });
    for await (const line of sliceLines(tx, keys, slice)) {
      entries++;
      await append(line);
    }
  }
  await flush();
  const digest = hash.digest();
  const exported = { month: month.name, chains: slices.length, entries, sha256: digest.toString("hex") };
  const signature = keys.sign(monthBytes(month.name, digest));
  await to.append(lastLine({ ...exported, publicKey: keys.publicKey, signature }));
  return exported;
}

/** The line that signs the others. */
export function lastLine({
  month,
  publicKey,
  chains,
  entries,
  sha256,
  signature,
}: ExportedMonth & { readonly publicKey: string; readonly signature: Buffer }): string {
  const line = { format: MONTH_FORMAT, month, public_key: publicKey, chains, entries, sha256 };
  return `${JSON.stringify({ ...line, signature: signature.toString("base64url") })}\n`;
}

/** The entries of a part, each of which must follow the one before it and be genuine. */
async function* sliceLines(tx: Database, keys: AuditKeys, slice: ListedSlice): AsyncGenerator<ExportLine> {
  const { chain, account, first, last } = slice;
  let previous: Uint8Array = Buffer.from(slice.previous, "hex");
  let [expected, after] = [first, { sequence: first, id: "" }];
  while (expected <= last) {
    const entries = await listChained(tx, chain, after, BATCH);
    for (const entry of entries) {
      if (entry.sequence > last) break;
      const finding = checkEntry(keys, entry, expected, previous, undefined);
      if (finding) throw tampered(account ?? chain, finding.message);
      yield lineOf(entry, previous);
      [previous, after, expected] = [entry.hash, entry, expected + 1];
    }
    if (entries.length === 0 || must(entries.at(-1), "a last entry").sequence > last) break;
  }
  if (expected <= last) throw tampered(account ?? chain, `entry ${expected} is missing`);
}

const tampered = (chain: string, message: string): AuditMonthRefused =>
  new AuditMonthRefused(
    `${chain}: ${message}. The audit log has been tampered with: run \`latchkey audit verify\`. Nothing was written.`,
  );

function explainDisk(error: unknown, file: string): unknown {
  const code = fileErrorCode(error);
  if (code === null) return error;
  return new AuditMonthRefused(
    `The month could not be written to ${dirname(file)} as ${basename(file)} (${code}). Check the folder and its free space; nothing was kept.`,
  );
}
