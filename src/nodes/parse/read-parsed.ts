import { quote } from "#domain/config-problem.ts";
import type { JsonObject } from "#domain/json.ts";
import { validRecord, type RecordBatches } from "#domain/record.ts";
import { columnNames } from "./column-names.ts";
import type { ReportMissing } from "./missing-records.ts";
import type { CalendarJob, MarkupColumn, MarkupJob } from "./parse-jobs.ts";
import { inBatches } from "#nodes/records/record-flow.ts";
import { runParseJob } from "./run-parse-job.ts";

/** What a reader of a whole file gets in addition to the file. */
export interface ParsePlace {
  readonly place: string;
  readonly signal: AbortSignal;
}

/** How the rows of a page or an XML file are found. */
export interface MarkupRows extends Pick<MarkupJob, "format" | "rows" | "within" | "empty"> {
  readonly columns: Readonly<Record<string, string>>;
}

/** The rows of a page or an XML file as records. */
export async function* readMarkup(
  text: string,
  { columns, ...markup }: MarkupRows,
  { place, signal, missing }: ParsePlace & { readonly missing?: ReportMissing | undefined },
): RecordBatches {
  const { format } = markup;
  const read = Object.entries(columns).map(([name, column]) => readColumn(name, column, format));
  const job = { ...markup, text, columns: read };
  const reply = await runParseJob(job, `${place}: the ${format.toUpperCase()}`, signal);
  if (reply.missing !== undefined) missing?.(reply.missing, true);
  for (const [index, name] of reply.names.entries())
    if (reply.rows.length > 0 && reply.rows.every((row) => row[index] === null))
      missing?.(
        `none of ${reply.rows.length} rows has the column \`${name}\` (${quote(columns[name] ?? "")})`,
        false,
      );
  yield* recordsOf(reply.names, reply.rows);
}

/** As for csv, the first row contains the column names. Numbers, true and false keep their type; an empty cell becomes null. */
export async function* readXlsx(
  bytes: Uint8Array,
  sheet: string | number,
  { place, signal }: ParsePlace,
): RecordBatches {
  const reply = await runParseJob({ format: "xlsx", bytes, sheet }, `${place}: the XLSX`, signal);
  yield* recordsOf(columnNames(reply.names, `${place}, row 1`), reply.rows);
}

export async function* readPdf(
  bytes: Uint8Array,
  rows: string | null,
  { place, signal }: ParsePlace,
): RecordBatches {
  const reply = await runParseJob({ format: "pdf", bytes, rows }, `${place}: the PDF`, signal);
  yield* recordsOf(reply.names, reply.rows);
}

/** The entries of a calendar, or the cards of an address book. */
export async function* readCalendar(job: CalendarJob, { place, signal }: ParsePlace): RecordBatches {
  const what = job.format === "vcard" ? "vCard" : "iCalendar";
  const { records = [] } = await runParseJob(job, `${place}: the ${what}`, signal);
  for (const batch of inBatches(records)) yield batch.map(validRecord);
}

function* batchesOf(
  names: readonly string[],
  rows: readonly (readonly (string | number | boolean | null)[])[],
) {
  for (const batch of inBatches(rows)) {
    yield batch.map((values) => {
      const data: JsonObject = Object.fromEntries(names.map((name, index) => [name, values[index] ?? null]));
      return validRecord(data);
    });
  }
}

async function* recordsOf(...reply: Parameters<typeof batchesOf>): RecordBatches {
  yield* batchesOf(...reply);
}

/** docs/nodes/parse.md: `css` (its text, trimmed), `css@attr`, or `@attr` of the row itself. `:scope` also means the row itself. */
export function readColumn(name: string, text: string, format: "html" | "xml"): MarkupColumn {
  const match = /^(.*)@([A-Za-z_:][-A-Za-z0-9_:.]*)$/s.exec(text);
  const css = (match?.[1] ?? text).trim();
  const attribute = match?.[2] ?? null;
  return {
    name,
    css: css === "" || css === ":scope" ? null : css,
    // Names are case-insensitive in HTML, but not in XML.
    attribute: format === "html" ? (attribute?.toLowerCase() ?? null) : attribute,
  };
}
