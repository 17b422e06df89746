import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { hashEntry, monthBytes, placeBytes, type AuditEntry } from "#domain/audit.ts";
import { readAuditMonth, type AuditSlice } from "#domain/audit-month.ts";
import type { AuditVerifier } from "#lib/audit-keys.ts";
import { fileErrorCode } from "#lib/new-file.ts";
import { AuditMonthRefused, lastLine, MONTH_FORMAT, type ExportedMonth } from "./export-month.ts";

export interface VerifiedMonth extends ExportedMonth {
  readonly slices: readonly AuditSlice[];
}

/** An entry has at most 64 KiB of detail. */
const LINE_BYTES_MAX = 1_048_576;
const NEWLINE = 0x0a;

type Line = Readonly<Record<string, unknown>>;

/** One chain, as far as it was read. */
interface Reading extends AuditSlice {
  sequence: number;
  hash: string;
  signature: string;
}

/**
 * Verifies the file of an exported month with nothing but the public key: its signature, and that each entry follows the one before it. Throws
 * AuditMonthRefused with the first line that is wrong.
 */
export async function verifyMonthFile(file: string, verifier: AuditVerifier): Promise<VerifiedMonth> {
  const reader = new MonthReader(verifier);
  let number = 0;
  for await (const bytes of readLines(file)) {
    number++;
    const problem = reader.read(bytes);
    if (problem !== null) throw wrong(`${file}, line ${number}: ${problem}`);
  }
  const { verified } = reader;
  if (verified === null) throw wrong(`${file} ends before the line with its signature`);
  return verified;
}

const wrong = (problem: string): AuditMonthRefused =>
  new AuditMonthRefused(`${problem}. The file was changed, or is no exported month.`);

/** Reads a file line by line. */
class MonthReader {
  readonly #verifier: AuditVerifier;
  readonly #hash = createHash("sha256");
  readonly #slices: AuditSlice[] = [];
  #month: string | null = null;
  #entries = 0;
  #reading: Reading | null = null;
  /** null: the line with the signature has not been read. */
  verified: VerifiedMonth | null = null;

  constructor(verifier: AuditVerifier) {
    this.#verifier = verifier;
  }

  /** Returns what is wrong with a line; null: nothing. */
  read(bytes: Buffer): string | null {
    if (this.verified !== null) return "it comes after the signature";
    const line = parse(bytes);
    if (line === undefined) return "it is not a JSON object";
    if (line["format"] === undefined) {
      this.#hash.update(bytes);
      this.#entries++;
      return this.#reading === null
        ? "it belongs to no chain"
        : follow(this.#reading, line, this.#month ?? "");
    }
    const unfinished = this.#endSlice();
    if (unfinished !== null) return unfinished;
    if (line["format"] === MONTH_FORMAT) return this.#sign(line, bytes);
    this.#hash.update(bytes);
    this.#reading = openSlice(line);
    this.#month ??= String(line["month"]);
    return this.#reading === null || line["month"] !== this.#month
      ? "it is not the beginning of a chain of this month"
      : null;
  }

  #endSlice(): string | null {
    if (this.#reading === null) return null;
    const { chain, sequence, first, last, previous, hash, head, signature } = this.#reading;
    if (sequence !== last || hash !== head) return `the entries of ${chain} do not end at ${last}`;
    // It covers all entries before it.
    const place = placeBytes(chain, last, Buffer.from(head, "hex"));
    if (!this.#verifier.isSigned(place, Buffer.from(signature, "base64url")))
      return `entry ${last} of ${chain}, before it, is not signed with the key ${this.#verifier.publicKey}`;
    this.#slices.push({ chain, first, last, previous, head });
    this.#reading = null;
    return null;
  }

  #sign(line: Line, bytes: Buffer): string | null {
    const month = this.#month ?? "";
    const digest = this.#hash.digest();
    const [chains, entries, slices] = [this.#slices.length, this.#entries, this.#slices];
    const sha256 = digest.toString("hex");
    if (line["sha256"] !== sha256) return "the lines before it have another digest";
    const signature = Buffer.from(String(line["signature"]), "base64url");
    if (!this.#verifier.isSigned(monthBytes(month, digest), signature))
      return `it is not signed with the key ${this.#verifier.publicKey}`;
    const { publicKey } = this.#verifier;
    // Nothing else covers this line.
    if (lastLine({ month, publicKey, chains, entries, sha256, signature }) !== bytes.toString("utf8"))
      return "it has another month, key, or numbers of chains and entries";
    this.verified = { month, chains, entries, sha256, slices };
    return null;
  }
}

function openSlice(line: Line): Reading | null {
  const { format, chain, first, count, previous, head } = line;
  if (format !== "latchkey.audit.v1" || typeof chain !== "string" || typeof first !== "number") return null;
  if (typeof count !== "number" || !isHash(previous) || !isHash(head)) return null;
  return { chain, first, last: count, previous, head, sequence: first - 1, hash: previous, signature: "" };
}

const isHash = (value: unknown): value is string => typeof value === "string" && /^[0-9a-f]{64}$/.test(value);

/** Moves on by one entry. Returns why it is not the next one; null: it is. */
function follow(reading: Reading, line: Line, month: string): string | null {
  const { sequence } = line;
  if (
    line["chain"] !== reading.chain ||
    sequence !== reading.sequence + 1 ||
    line["previous"] !== reading.hash
  )
    return `it does not follow entry ${reading.sequence} of ${reading.chain}`;
  const entry = entryOf(line);
  if (entry === undefined) return "it is not an entry";
  const hash = hashEntry(Buffer.from(reading.hash, "hex"), sequence, entry).toString("hex");
  if (hash !== line["hash"]) return `entry ${sequence} of ${reading.chain} was changed`;
  const { endsAt } = readAuditMonth(month) ?? { endsAt: "" };
  if (entry.occurredAt >= endsAt) return `entry ${sequence} of ${reading.chain} is of a later month`;
  Object.assign(reading, { sequence, hash, signature: String(line["signature"]) });
  return null;
}

function entryOf(line: Line): AuditEntry | undefined {
  const text = (name: string): string => String(line[name]);
  const orNull = (name: string): string | null => (line[name] === null ? null : text(name));
  if (typeof line["occurred_at"] !== "string" || typeof line["detail"] !== "string") return undefined;
  return {
    chain: text("chain"),
    id: text("id"),
    occurredAt: line["occurred_at"],
    actorKind: text("actor_kind"),
    actorId: orNull("actor_id"),
    action: text("action"),
    subjectId: text("subject_id"),
    runId: orNull("run_id"),
    detail: line["detail"],
  };
}

function parse(bytes: Buffer): Line | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString("utf8"));
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Line) : undefined;
  } catch {
    return undefined;
  }
}

/** The lines of a file with the bytes of their ends. */
async function* readLines(file: string): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0);
  try {
    for await (const piece of createReadStream(file) as AsyncIterable<Buffer>) {
      let bytes = rest.length === 0 ? piece : Buffer.concat([rest, piece]);
      for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE)) {
        yield bytes.subarray(0, end + 1);
        bytes = bytes.subarray(end + 1);
      }
      if (bytes.length > LINE_BYTES_MAX)
        throw new AuditMonthRefused(`${file} is no exported month: a line is too long.`);
      rest = bytes;
    }
  } catch (error) {
    const code = fileErrorCode(error);
    if (code === null) throw error;
    throw new AuditMonthRefused(
      `The file ${file} can't be read (${code}). Name the file of an exported month.`,
    );
  }
  if (rest.length > 0) yield rest;
}
