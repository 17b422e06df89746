/**
 * The records of the bench, about 1 kB of JSON each: the same bytes for the target, for the limits and at every size. Most of a
 * record is taken from some thousands made beforehand, so that making a gigabyte costs little beside what is measured.
 */
import { createHash } from "node:crypto";

export type DataFormat = "json" | "ndjson" | "csv";

export interface SourceRecord {
  readonly id: string;
  readonly number: string;
  readonly supplier: { readonly name: string; readonly country: string };
  readonly total: string;
  readonly currency: string;
  readonly due_date: string;
  readonly paid: boolean;
  readonly note: string;
}

/** They come again after some 20 MB, far outside of Brotli's window of 4 MB: data that repeats within it would cost next to nothing. */
const MADE = 20_000;
const WORDS = 2_000;
const NOTE_CHARACTERS = 780;
const ID_DIGITS = 10;
const CHUNK_BYTES = 262_144;

/** One record in 200 breaks a rule: its total is negative. */
const INVALID_EVERY = 200;

/** The same numbers each time, spread over 32 bits. */
function* numbers(): Generator<number, never> {
  for (let turn = 0; ; turn++) {
    const hash = createHash("sha256").update(`data ${turn}`).digest();
    for (let at = 0; at < hash.length; at += 4) yield hash.readUInt32LE(at);
  }
}

function makeRecords(): readonly Omit<SourceRecord, "id">[] {
  const random = numbers();
  const next = (below: number): number => random.next().value % below;
  const words = Array.from({ length: WORDS }, () =>
    Array.from(
      { length: 3 + next(8) },
      () => "etaoinshrdlucmfwypvbgkjqxz"[next(26) % (1 + next(26))] ?? "e",
    ).join(""),
  );
  return Array.from({ length: MADE }, (_, index) => {
    const note: string[] = [];
    for (let length = 0; length < NOTE_CHARACTERS; length += (note.at(-1)?.length ?? 0) + 1)
      note.push(words[next(WORDS)] ?? "");
    return {
      number: `2026-${100_000 + next(900_000)}`,
      supplier: {
        name: `${words[next(WORDS)]} ${words[next(WORDS)]} GmbH`,
        country: ["DE", "FR", "NL"][next(3)] ?? "DE",
      },
      total: `${index % INVALID_EVERY === 0 ? "-" : ""}${1 + next(9_999)}.${10 + next(90)}`,
      currency: ["EUR", "USD", "GBP"][next(3)] ?? "EUR",
      due_date: `202${next(7)}-0${1 + next(9)}-1${next(10)}`,
      paid: next(2) === 0,
      note: note.join(" "),
    };
  });
}

/** A record's bytes without its id, which stands between the two. */
interface Halves {
  readonly before: Buffer;
  readonly after: Buffer;
}

function halvesOf(format: DataFormat): readonly Halves[] {
  const separator = format === "json" ? "," : "\n";
  return makeRecords().map((record) => {
    const text =
      format === "csv" ? csvRow({ id: "@", ...record }) : `${JSON.stringify({ id: "@", ...record })}`;
    const [before = "", after = ""] = text.split("@", 2);
    return { before: Buffer.from(before), after: Buffer.from(after + separator) };
  });
}

const CSV_HEADER = "id,number,supplier,country,total,currency,due_date,paid,note\n";

function csvRow({ supplier, ...record }: SourceRecord): string {
  const { id, number, total, currency, due_date: due, paid, note } = record;
  return [id, number, supplier.name, supplier.country, total, currency, due, paid, note].join(",");
}

/** The whole document in chunks. */
export function* documentOf(format: DataFormat, records: number): Generator<Buffer> {
  if (format === "json") yield Buffer.from('{"items":[');
  if (format === "csv") yield Buffer.from(CSV_HEADER);
  const halves = halvesOf(format);
  let chunks: Buffer[] = [];
  let bytes = 0;
  for (let index = 0; index < records; index++) {
    const { before, after } = halves[index % MADE] ?? { before: Buffer.alloc(0), after: Buffer.alloc(0) };
    const end = format === "json" && index === records - 1 ? after.subarray(0, -1) : after;
    chunks.push(before, Buffer.from(String(index).padStart(ID_DIGITS, "0")), end);
    bytes += before.length + ID_DIGITS + end.length;
    if (bytes < CHUNK_BYTES) continue;
    yield Buffer.concat(chunks);
    chunks = [];
    bytes = 0;
  }
  if (chunks.length > 0) yield Buffer.concat(chunks);
  if (format === "json") yield Buffer.from("]}");
}

/** The mapping of the Blueprint, by field. `simple`: paths and common calls; `full`: also what only JSONata itself can do. */
export const MAPPINGS = {
  simple: {
    number: "number",
    supplier: "supplier.name",
    country: "supplier.country",
    total: "$number(total)",
    currency: "currency",
    due: "due_date",
    open: "$not(paid)",
    label: '"Invoice " & number & " of " & supplier.name',
    note: "note",
    id: "id",
  },
  full: {
    number: "number",
    supplier: "$uppercase(supplier.name)",
    country: '$lookup({"DE": "Germany", "FR": "France", "NL": "Netherlands"}, supplier.country)',
    total: "$round($number(total) * 1.19, 2)",
    currency: "currency",
    due: '$fromMillis($toMillis(due_date), "[D].[M].[Y]")',
    open: "$not(paid)",
    words: '$count($split(note, " "))',
    note: "note",
    id: "id",
  },
} as const satisfies Readonly<Record<string, Readonly<Record<string, string>>>>;

export type Mapping = keyof typeof MAPPINGS;

/** The simple mapping as a plain function. */
export function mapPlainly(record: SourceRecord): Record<string, unknown> {
  return {
    number: record.number,
    supplier: record.supplier.name,
    country: record.supplier.country,
    total: Number(record.total),
    currency: record.currency,
    due: record.due_date,
    open: !record.paid,
    label: `Invoice ${record.number} of ${record.supplier.name}`,
    note: record.note,
    id: record.id,
  };
}
