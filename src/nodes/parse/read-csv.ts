import { pipeline } from "node:stream/promises";
import { setImmediate } from "node:timers/promises";
import { CsvError, parse } from "csv-parse";
import { limits } from "#domain/limits.ts";
import { validRecord, type DataRecord, type RecordBatches } from "#domain/record.ts";
import { columnNames } from "./column-names.ts";
import { NodeFailure } from "#nodes/define-node.ts";

const RECORD_CHARACTERS_MAX = 1_000_000;
/** A batch of long rows ends early, so that no batch is large. */
const BATCH_CHARACTERS_MAX = 1_000_000;
const SLICE_CHARACTERS = 65_536;

/** What is wrong, by csv-parse's code: its own messages quote the data. */
const PROBLEMS: Readonly<Record<string, string>> = {
  CSV_INVALID_CLOSING_QUOTE: "a quoted value goes on after its closing quote",
  INVALID_OPENING_QUOTE: "a value that doesn't begin with a quote has one inside",
  CSV_QUOTE_NOT_CLOSED: "a quoted value is never closed",
  CSV_MAX_RECORD_SIZE: `a row is longer than ${RECORD_CHARACTERS_MAX} characters (or a quote is never closed)`,
};

export interface CsvShape {
  readonly delimiter: string;
  /** Lines before the header. They are no CSV: a quote in one of them means nothing. */
  readonly skip: number;
}

/**
 * Rows of a CSV text as records, streamed. The first row names the columns (an empty name becomes `column_<n>`); values stay
 * texts; empty lines are skipped. Throws NodeFailure with the line for a text that isn't CSV or a row of the wrong length.
 */
export async function* readCsv(
  text: AsyncIterable<string>,
  { delimiter, skip }: CsvShape,
  { place, signal }: { readonly place: string; readonly signal: AbortSignal },
): RecordBatches {
  const parser = parse({
    bom: true,
    delimiter,
    info: true,
    max_record_size: RECORD_CHARACTERS_MAX,
    // Ragged rows are counted here, to say what the row has and what it needs.
    relax_column_count: true,
    record_delimiter: ["\r\n", "\n", "\r"],
    skip_empty_lines: true,
  });
  // Whatever fails destroys the parser with that error, and the loop below throws it.
  const flowing = pipeline(slices(skipLines(text, skip, place)), parser, { signal }).catch(() => undefined);
  try {
    yield* batchesOf(parser, place, skip);
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const line: unknown = error["lines"];
    throw new NodeFailure(
      `${place}, line ${typeof line === "number" ? line + skip : "?"}: ${PROBLEMS[error.code] ?? `is not CSV (${error.code})`}.`,
    );
  } finally {
    parser.destroy();
    await flowing;
  }
}

interface Row {
  readonly record: readonly string[];
  /** Where the row ends. */
  readonly info: { readonly lines: number };
}

async function* batchesOf(rows: AsyncIterable<Row>, place: string, skip: number): RecordBatches {
  let header: readonly string[] | null = null;
  let batch: DataRecord[] = [];
  let characters = 0;
  for await (const { record: row, info } of rows) {
    if (header === null) {
      header = columnNames(row, `${place}, line ${info.lines + skip}`);
      continue;
    }
    if (row.length !== header.length) {
      throw new NodeFailure(
        `${place}, line ${info.lines + skip}: the row has ${row.length} values, and the header names ${header.length} columns.`,
      );
    }
    batch.push(validRecord(Object.fromEntries(header.map((name, index) => [name, row[index] ?? ""]))));
    characters += row.reduce((sum, value) => sum + value.length, 0);
    if (batch.length < limits.recordBatchSizeMax && characters < BATCH_CHARACTERS_MAX) continue;
    yield batch;
    batch = [];
    characters = 0;
  }
  if (batch.length > 0) yield batch;
}

/** The text behind so many lines. Throws NodeFailure when it has fewer; an empty text has none, and stays empty. */
async function* skipLines(text: AsyncIterable<string>, skip: number, place: string): AsyncIterable<string> {
  let left = skip;
  let isBegun = false;
  let afterReturn = false;
  for await (const given of text) {
    let piece = given;
    isBegun ||= piece !== "";
    // A line break of two characters may stand in two pieces.
    if (afterReturn && piece !== "") {
      if (piece.startsWith("\n")) piece = piece.slice(1);
      afterReturn = false;
    }
    while (left > 0 && piece !== "") {
      const end = /\r\n?|\n/.exec(piece);
      if (end === null) {
        piece = "";
        break;
      }
      piece = piece.slice(end.index + end[0].length);
      left -= 1;
      afterReturn = piece === "" && end[0] === "\r";
    }
    if (left === 0 && piece !== "") yield piece;
  }
  if (left > 0 && isBegun)
    throw new NodeFailure(
      `${place} has fewer than the ${skip} lines that \`skip\` passes over: there is no header.`,
    );
}

/** Short pieces, with a turn of the event loop between them: a long text in memory would keep it from everything else. */
async function* slices(text: AsyncIterable<string>): AsyncIterable<string> {
  for await (const piece of text) {
    for (let start = 0; start < piece.length; start += SLICE_CHARACTERS) {
      yield piece.slice(start, start + SLICE_CHARACTERS);
      await setImmediate();
    }
  }
}
