import { NotJson, type BoundExpressions, type Scope } from "#domain/expression.ts";
import type { Json } from "#domain/json.ts";
import { reserveJsonMemory } from "#domain/json-room.ts";
import { limits } from "#domain/limits.ts";
import { readRoot } from "#domain/read-json.ts";
import { must } from "#lib/assert.ts";
import type { DataRecord, RecordBatches } from "#domain/record.ts";
import { decodeChunks, decodeHtml, decodeWhole, decodeXml } from "./decode-text.ts";
import { NodeFailure } from "#nodes/define-node.ts";
import { valueOf } from "#nodes/records/expression-value.ts";
import { readCsv } from "./read-csv.ts";
import { readNdjson } from "./read-ndjson.ts";
import type { ParseConfig } from "./parse-config.ts";
import { readCalendar, readMarkup, readPdf, readXlsx } from "./read-parsed.ts";
import { readWholeText } from "./read-text.ts";
import { findMissing, type ReportMissing } from "./missing-records.ts";
import { batchesFromJson } from "#nodes/records/record-flow.ts";
import { streamList, type ListPath } from "./stream-json.ts";

/** The source of text to parse. `charset`: from its content type, or null. */
export type ParseSource =
  | { readonly form: "json"; readonly json: Json }
  | { readonly form: "text"; readonly text: string }
  | {
      readonly form: "bytes";
      readonly open: () => AsyncIterable<Uint8Array>;
      readonly charset: string | null;
    };

export interface ParseTools {
  readonly expressions: BoundExpressions;
  readonly signal: AbortSignal;
  /** The beginning of every message: `The response`, `The file`. */
  readonly place: string;
  /** The beginning of messages about records in JSON, if it differs. */
  readonly recordsPlace?: string;
  /** Called if records are missing. */
  readonly missing?: ReportMissing | undefined;
}

/** The records in the source, in batches. Throws NodeFailure if it does not match the config. */
export async function* parseRecords(
  given: ParseSource,
  config: ParseConfig,
  tools: ParseTools,
): RecordBatches {
  // The document's charset takes precedence over the content type's.
  const source = given.form === "bytes" ? { ...given, charset: config.charset ?? given.charset } : given;
  if (config.format === "json") {
    yield* jsonRecords(source, config.records, tools);
    return;
  }
  if (source.form === "json") {
    throw new NodeFailure(
      `${tools.place} is already JSON; the format ${config.format} needs text or a file. Use \`format: json\`.`,
    );
  }
  const { format } = config;
  if (format === "text") {
    yield* readWholeText(textOf(source, tools), config.field ?? "text", tools.place);
    return;
  }
  if (format === "csv" || format === "ndjson") {
    const text = textOf(source, tools);
    yield* format === "csv"
      ? readCsv(text, { delimiter: config.delimiter ?? ",", skip: config.skip ?? 0 }, tools)
      : readNdjson(text, tools.place, tools.signal);
    return;
  }
  if (format === "icalendar" || format === "vcard") {
    const text = await wholeTextOf(source, decodeWhole, tools);
    yield* readCalendar({ format, text, component: config.component }, tools);
    return;
  }
  if (format === "html" || format === "xml") {
    const text = await wholeTextOf(source, format === "html" ? decodeHtml : decodeXml, tools);
    const { rows, columns, within = null, empty = null } = config;
    const markup = { format, rows: must(rows, "rows"), columns: must(columns, "columns"), within, empty };
    yield* readMarkup(text, markup, tools);
    return;
  }
  if (source.form === "text")
    throw new NodeFailure(`${tools.place} is text; the format ${format} needs a file.`);
  const bytes = await collect(source.open(), tools.place);
  yield* format === "xlsx"
    ? readXlsx(bytes, config.sheet ?? 1, tools)
    : readPdf(bytes, config.rows ?? null, tools);
}

const textOf = (
  source: Exclude<ParseSource, { form: "json" }>,
  { place }: ParseTools,
): AsyncIterable<string> =>
  source.form === "text" ? one(source.text) : decodeChunks(source.open(), source.charset, place);

const wholeTextOf = async (
  source: Exclude<ParseSource, { form: "json" }>,
  decode: typeof decodeWhole,
  { place }: ParseTools,
): Promise<string> =>
  source.form === "text" ? source.text : decode(await collect(source.open(), place), source.charset, place);

/**
 * A list at the top level or at a path of names is read as a stream; anything else is read completely, and the expression is
 * evaluated afterwards.
 */
async function* jsonRecords(
  source: ParseSource,
  expression: string | undefined,
  tools: ParseTools,
): RecordBatches {
  const path = listPath(expression);
  if (path === null || source.form !== "bytes" || !/^utf-?8$/.test(source.charset ?? "utf-8")) {
    yield* await recordsOfWhole(source, expression, tools);
    return;
  }
  const place = recordsPlace(expression, tools);
  const list = streamList(source.open(), path, tools.place);
  let step = await list.next();
  try {
    for (; step.done !== true; step = await list.next()) {
      tools.signal.throwIfAborted();
      yield* batchesFromJson(step.value.items, place, step.value.first);
    }
  } finally {
    await list.return(null);
  }
  if (step.value !== null) yield* await recordsOfRoot({ root: step.value.whole }, expression, tools);
}

const recordsPlace = (expression: string | undefined, tools: ParseTools): string =>
  tools.recordsPlace ?? (expression === undefined ? tools.place : `${tools.place}: records`);

const NAME = /^[A-Za-z][A-Za-z0-9_]*$/;
/** Words that have a special meaning in some places of an expression. */
const WORDS: ReadonlySet<string> = new Set(["and", "or", "in", "true", "false", "null", "function"]);

/** The names of an expression that is a plain path; null: it is not. Without an expression, the document is the list. */
export function listPath(expression: string | undefined): ListPath | null {
  const names = expression === undefined ? [] : expression.trim().split(".");
  return names.every((name) => NAME.test(name) && !WORDS.has(name)) ? names : null;
}

async function recordsOfRoot(
  root: Pick<Scope, "root" | "rootText">,
  expression: string | undefined,
  tools: ParseTools,
) {
  if (expression === undefined && root.root !== undefined)
    return batchesFromJson(root.root, recordsPlace(expression, tools));
  const [outcomes] = await tools.expressions.evaluateBatch([expression ?? "$"], [root]);
  const place = recordsPlace(expression, tools);
  const value = valueOf(outcomes?.[0], place);
  const path = listPath(expression);
  if ((value === undefined || value === null) && path !== null && tools.missing !== undefined)
    await findMissing(tools.expressions, root, path, tools.missing);
  return batchesFromJson(value, place);
}

/**
 * The records of JSON that is read completely, in batches. The room in the memory budget is released before the first record is read,
 * because the consumer may need room, too. Only the expression's result is kept until then.
 */
export async function recordsOfWhole(
  source: ParseSource,
  expression: string | undefined,
  tools: ParseTools,
): Promise<Iterable<readonly DataRecord[]>> {
  if (source.form === "json") return await recordsOfRoot({ root: source.json }, expression, tools);
  const content = source.form === "text" ? source.text : await collect(source.open(), tools.place);
  const release = await reserveJsonMemory(content, tools.signal);
  try {
    const text =
      source.form === "text" ? source.text : decodeWhole(content as Uint8Array, source.charset, tools.place);
    return await recordsOfRoot(readTextRoot(text, tools.place), expression, tools);
  } catch (error) {
    throw error instanceof NotJson ? new NodeFailure(`${tools.place} ${error.message}.`) : error;
  } finally {
    release();
  }
}

/** JSON text as the root of an expression. Throws NodeFailure. */
export function readTextRoot(text: string, place: string): Pick<Scope, "root" | "rootText"> {
  const read = readRoot(text);
  if (!read.ok) throw new NodeFailure(`${place} ${read.problem}.`);
  return read.root;
}

/** A streamed file may be far larger than what can be read at once. */
async function collect(chunks: AsyncIterable<Uint8Array>, place: string): Promise<Uint8Array> {
  const collected: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.byteLength;
    if (bytes > limits.wholeBytesMax)
      throw new NodeFailure(
        `${place} is larger than ${limits.wholeBytesMax} bytes, the most that this format reads.`,
      );
    collected.push(chunk);
  }
  return Buffer.concat(collected);
}

async function* one(text: string): AsyncIterable<string> {
  yield text;
}
