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

/** Problems by csv-parse's error code, because its own messages quote the data. */
const PROBLEMS: Readonly<Record<string, string>> = {
  CSV_INVALID_CLOSING_QUOTE: "a quoted value continues after its closing quote",
  INVALID_OPENING_QUOTE: "a value that doesn't begin with a quote contains one",
  CSV_QUOTE_NOT_CLOSED: "a quoted value is never closed",
  CSV_MAX_RECORD_SIZE: `a row is longer than ${RECORD_CHARACTERS_MAX} characters (or a quote is never closed)`,
};

export interface CsvShape {
  readonly delimiter: string;
  /** The number of lines before the header. They are not CSV: a quote in one of them has no meaning. */
  readonly skip: number;
}

/**
 * Streams the rows of a CSV text as records. The first row contains the column names (an empty one becomes `column_<n>`); values
 * remain strings; empty lines are skipped. Throws NodeFailure with the line number if the text isn't CSV or a row has the wrong
 * length.
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
    // Row lengths are checked here, so that the message can say how many values there are and how many are needed.
    relax_column_count: true,
    record_delimiter: ["\r\n", "\n", "\r"],
    skip_empty_lines: true,
  });
  // Any failure destroys the parser with its error, which the loop below throws.
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
        `${place}, line ${info.lines + skip}: the row has ${row.length} values, but the header has ${header.length} columns.`,
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

/** The text after this many lines. Throws NodeFailure if it has fewer; empty input remains empty. */
async function* skipLines(text: AsyncIterable<string>, skip: number, place: string): AsyncIterable<string> {
  let left = skip;
  let hasStarted = false;
  let afterReturn = false;
  for await (const given of text) {
    let piece = given;
    hasStarted ||= piece !== "";
    // A line break of two characters may be split between two pieces.
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
  if (left > 0 && hasStarted)
    throw new NodeFailure(`${place} has fewer lines than \`skip\` (${skip}), so there is no header.`);
}

/** Splits text into short pieces and yields to the event loop between them: a long text in memory would block it. */
async function* slices(text: AsyncIterable<string>): AsyncIterable<string> {
  for await (const piece of text) {
    for (let start = 0; start < piece.length; start += SLICE_CHARACTERS) {
      yield piece.slice(start, start + SLICE_CHARACTERS);
      await setImmediate();
    }
  }
}
