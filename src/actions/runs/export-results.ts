import { pipeline, Readable } from "node:stream";
import { createBrotliDecompress } from "node:zlib";
import { BlobMissing, type BlobStore } from "#blobs/store.ts";
import type { Database } from "#db/connection/pool.ts";
import { listResults } from "#db/runs/run-results.ts";
import { findRun, findRunOfAnyAccount } from "#db/runs/runs.ts";
import { csvLine } from "#domain/csv-line.ts";
import { readRunReference } from "#domain/ids.ts";
import { limits } from "#domain/limits.ts";
import { cellsOf, fieldsOf, tableColumns, type Cell, type TableColumns } from "#domain/result-table.ts";
import type { StoredResult } from "#domain/run-results.ts";
import { must } from "#lib/assert.ts";
import { NumberText, parseJsonText, type JsonTree } from "#lib/json-text.ts";
import { splitJsonItems } from "#lib/split-json-items.ts";
import { OperatorError } from "#actions/operator-error.ts";

export const EXPORT_FORMATS = ["ndjson", "csv", "xlsx"] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** An operator's request. */
export interface WantedExport {
  /** `run_…` or a run key, of any account. */
  readonly run: string;
  /** null: the run has only one result key. */
  readonly key: string | null;
  readonly format: ExportFormat;
  /** Whether to begin with a byte order mark, by which Excel recognises UTF-8. */
  readonly bom: boolean;
}

export interface ResultExport {
  readonly filename: string;
  readonly contentType: string;
  readonly totalRecords: number;
  /** Throws OperatorError when the data is purged in the meantime. */
  readonly bytes: AsyncIterable<Uint8Array>;
}

interface Stored {
  readonly db: Database;
  readonly blobs: Pick<BlobStore, "open">;
}

/**
 * Streams the records of one result key as a file: memory does not grow with their number. A table needs all columns before its
 * first row, so its records are read twice. Throws OperatorError.
 */
export async function exportResults(stored: Stored, wanted: WantedExport): Promise<ResultExport> {
  const { run, result } = await findResult(stored.db, wanted);
  const read = (): AsyncIterable<readonly Buffer[]> =>
    splitJsonItems(contentOf(stored.blobs, result, wanted.run));
  const base = { filename: `${run.id}-${result.key}.${wanted.format}`, totalRecords: result.totalRecords };
  switch (wanted.format) {
    case "ndjson":
      return { ...base, contentType: "application/x-ndjson", bytes: writeLines(read()) };
    case "csv":
      return { ...base, contentType: "text/csv; charset=utf-8", bytes: writeCsv(read, wanted.bom) };
    case "xlsx":
      return {
        ...base,
        contentType: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        bytes: writeSheets(read),
      };
  }
}

/** The result under a key of a run of any account. Throws OperatorError. */
export async function findResult(db: Database, wanted: Pick<WantedExport, "run" | "key">) {
  const reference = readRunReference(wanted.run);
  const found = reference && (await findRunOfAnyAccount(db, reference));
  if (!found) throw new OperatorError(`There is no run ${wanted.run}.`, "missing");
  const run = must(await findRun(db, found.accountId, { id: found.id }), "the run");
  if (run.purgedAt !== null) throw purged(wanted.run);
  if (run.status !== "completed")
    throw new OperatorError(`The run is ${run.status}; results exist once it is completed.`);
  const results = await listResults(db, run.id);
  const keys = results.map(({ key }) => key);
  if (wanted.key === null && results.length !== 1)
    throw new OperatorError(
      `The run has ${results.length} results. Choose one with --key: ${keys.join(", ")}.`,
    );
  const result = results.find(({ key }) => wanted.key === null || key === wanted.key);
  if (!result)
    throw new OperatorError(`The run has no result ${wanted.key}. It has: ${keys.join(", ")}.`, "missing");
  return { run, result };
}

const purged = (run: string): OperatorError =>
  new OperatorError(`The data of ${run} has been purged; \`latchkey runs show\` says when.`);

/** The JSON as it was written, decompressed as it is read. Throws OperatorError if the data is purged in the meantime. */
export async function* contentOf(
  blobs: Pick<BlobStore, "open">,
  { content, blobKey }: StoredResult,
  run: string,
): AsyncIterable<Uint8Array> {
  if (content !== null) {
    yield content;
    return;
  }
  const compressed = Readable.from(blobs.open(must(blobKey, "a large result's object")));
  try {
    // Its failure is passed to the reader.
    yield* pipeline(compressed, createBrotliDecompress(), () => {}) as AsyncIterable<Uint8Array>;
  } catch (error) {
    if (error instanceof BlobMissing) throw purged(run);
    throw error;
  } finally {
    compressed.destroy();
  }
}

type Read = () => AsyncIterable<readonly Buffer[]>;

const NEWLINE = Buffer.from("\n");
const BOM = Buffer.from("\uFEFF");

/** Each record as it is stored, byte by byte. */
async function* writeLines(batches: AsyncIterable<readonly Buffer[]>): AsyncIterable<Uint8Array> {
  for await (const items of batches) yield Buffer.concat(items.flatMap((item) => [item, NEWLINE]));
}

async function* writeCsv(read: Read, bom: boolean): AsyncIterable<Uint8Array> {
  const columns = await readColumns(read);
  if (bom) yield BOM;
  yield Buffer.from(csvLine(columns.headings));
  for await (const items of read())
    yield Buffer.from(items.map((item) => csvLine(cellsOf(parseRecord(item), columns))).join(""));
}

async function* writeSheets(read: Read): AsyncIterable<Uint8Array> {
  const { writeXlsx, XLSX_COLUMNS_MAX } = await import("#lib/write-xlsx.ts");
  const columns = await readColumns(read);
  if (columns.headings.length > XLSX_COLUMNS_MAX)
    throw new OperatorError(
      `The records have more than ${XLSX_COLUMNS_MAX} columns: too many for Excel. Use csv.`,
    );
  yield* writeXlsx("records", columns.headings, sheetRows(read, columns));
}

async function* sheetRows(read: Read, columns: TableColumns) {
  const { XLSX_CELL_CHARACTERS_MAX } = await import("#lib/write-xlsx.ts");
  for await (const items of read())
    for (const item of items)
      yield cellsOf(parseRecord(item), columns).map((cell) => sheetCell(cell, XLSX_CELL_CHARACTERS_MAX));
}

/** A number that Excel would change is written as text; text that is too long for Excel is truncated. */
function sheetCell(cell: Cell, charactersMax: number): string | number | boolean | null {
  if (cell instanceof NumberText) {
    const digits = cell.text.replace(/e.*$/i, "").replace(/^-?0?\.?0*|[.-]/g, "");
    return digits.length <= EXCEL_DIGITS && Number.isFinite(Number(cell.text))
      ? Number(cell.text)
      : cell.text;
  }
  if (typeof cell === "string" && cell.length > charactersMax) return `${cell.slice(0, charactersMax - 1)}…`;
  return cell;
}

const EXCEL_DIGITS = 15;

async function readColumns(read: Read): Promise<TableColumns> {
  const fields = new Set<string>();
  for await (const items of read()) {
    for (const item of items) for (const field of fieldsOf(parseRecord(item))) fields.add(field);
    if (fields.size > limits.exportColumnsMax)
      throw new OperatorError(
        `The records have more than ${limits.exportColumnsMax} different keys: too many for a table. Use ndjson.`,
      );
  }
  return tableColumns(fields);
}

/** No limits apply, because the stored data was within them. */
const BOUNDS = { depthMax: limits.dataDepthMax + 10, valuesMax: Number.MAX_SAFE_INTEGER };

const parseRecord = (item: Buffer): JsonTree => parseJsonText(item.toString("utf8"), BOUNDS);
