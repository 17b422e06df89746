import { Type, type Static } from "typebox";
import { isSelector } from "#answers/is-selector.ts";
import { EXPRESSION, NoJson, type BoundExpressions, type Scope } from "#domain/expression.ts";
import type { Json } from "#domain/json.ts";
import { takeJsonRoom } from "#domain/json-room.ts";
import { readRoot } from "#domain/read-json.ts";
import { must } from "#lib/assert.ts";
import type { RecordBatches } from "#domain/record.ts";
import { decodeChunks, decodeHtml, decodeWhole, decodeXml } from "./decode-text.ts";
import { NodeFailure, type ConfigFinding } from "./define-node.ts";
import { valueOf } from "./expression-value.ts";
import { readCsv } from "./read-csv.ts";
import { readNdjson } from "./read-ndjson.ts";
import { compileRows, groupsOf } from "./match-rows.ts";
import { readColumn, readMarkup, readPdf, readXlsx } from "./read-parsed.ts";
import { lookAtMissing, type TellMissing } from "./missing-records.ts";
import { batchesFromJson } from "./record-flow.ts";
import { streamList, type ListPath } from "./stream-json.ts";

/** The keys of a `parse` node, and of `parse` in an `http` node. */
export const parseSchema = Type.Object(
  {
    format: Type.Enum(["json", "ndjson", "csv", "xlsx", "html", "xml", "pdf"], {
      description: "What the text or the file is.",
    }),
    records: Type.Optional(
      Type.String({
        minLength: 1,
        [EXPRESSION]: "response",
        description: "json: an expression over it that gives a list of objects, or one. Default: the whole.",
      }),
    ),
    rows: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          "html, xml: a CSS selector; every element that it finds is a record. pdf: a regular expression with named groups; every match on a page is a record of them.",
      }),
    ),
    columns: Type.Optional(
      Type.Record(Type.String(), Type.String({ minLength: 1 }), {
        minProperties: 1,
        description:
          "html, xml: field to `css` (trimmed text of the first match in the row), `css@attr`, or `@attr` of the row itself.",
      }),
    ),
    within: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          "html, xml: a CSS selector of the list or table that holds the rows. Where it is there without rows, there are none; a page without it fails the node.",
      }),
    ),
    empty: Type.Optional(
      Type.Object(
        {
          css: Type.Optional(
            Type.String({ minLength: 1, description: "An element that only a page without rows has." }),
          ),
          text: Type.Optional(
            Type.String({ minLength: 1, description: "A text that only a page without rows has." }),
          ),
        },
        {
          additionalProperties: false,
          minProperties: 1,
          description:
            "html: how a page without rows says so. A page without rows, `within` and this fails the node: it may have changed.",
        },
      ),
    ),
    delimiter: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1,
        default: ",",
        description: "csv: what stands between two values.",
      }),
    ),
    sheet: Type.Optional(
      Type.Union([Type.String({ minLength: 1 }), Type.Integer({ minimum: 1 })], {
        default: 1,
        description: "xlsx: the sheet, by its name or its number.",
      }),
    ),
  },
  {
    additionalProperties: false,
    description: "The keys of a `parse` node: how the text or the file is read.",
  },
);

export type ParseConfig = Static<typeof parseSchema>;

/** What a text comes as. `charset`: what its content type says, or null. */
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
  /** Begins every message: `The response`, `The file`. */
  readonly place: string;
  /** Begins those about what JSON gives as records, if another one does. */
  readonly recordsPlace?: string;
  /** Told where records are missing. */
  readonly missing?: TellMissing | undefined;
}

const KEYS_OF_FORMAT: Readonly<Record<ParseConfig["format"], readonly string[]>> = {
  json: ["records"],
  ndjson: [],
  csv: ["delimiter"],
  xlsx: ["sheet"],
  html: ["rows", "columns", "within", "empty"],
  xml: ["rows", "columns", "within"],
  pdf: ["rows"],
};

/** Formats of which a text is not what its bytes are: packed, or in a charset that the content itself says. */
export const isPacked = (format: unknown): boolean =>
  format === "xlsx" || format === "pdf" || format === "html" || format === "xml";

/** Mistakes that the schema can't express. */
export function parseFindings(config: ParseConfig): readonly ConfigFinding[] {
  const { format } = config;
  const own = KEYS_OF_FORMAT[format];
  const findings: ConfigFinding[] = Object.keys(config)
    .filter((key) => key !== "format" && !own.includes(key))
    .map((key) => ({ path: [key], message: `\`${key}\` is not a key of the format ${format}` }));
  if (config.delimiter !== undefined && /["\r\n]/.test(config.delimiter)) {
    findings.push({ path: ["delimiter"], message: "a delimiter can't be a quote or a line break" });
  }
  if (format === "html" || format === "xml") findings.push(...selectorFindings(config, format));
  if (format === "pdf" && config.rows !== undefined) findings.push(...patternFindings(config.rows));
  return findings;
}

function selectorFindings(config: ParseConfig, format: "html" | "xml"): readonly ConfigFinding[] {
  if (config.rows === undefined || config.columns === undefined)
    return [{ path: [], message: `the format ${format} needs \`rows\` and \`columns\`` }];
  const columns = Object.entries(config.columns).map(([name, text]) => ({
    path: ["columns", name],
    css: readColumn(name, text, format).css,
  }));
  const places = [
    { path: ["within"], css: config.within ?? null },
    { path: ["empty", "css"], css: config.empty?.css ?? null },
  ];
  return [{ path: ["rows"], css: config.rows }, ...places, ...columns].flatMap(({ path, css }) =>
    css === null || isSelector(css) ? [] : [{ path, message: `\`${css}\` is not a CSS selector` }],
  );
}

function patternFindings(rows: string): readonly ConfigFinding[] {
  try {
    if (groupsOf(compileRows(rows)).length > 0) return [];
    return [
      {
        path: ["rows"],
        message: "the expression has no named group: `(?<total>[0-9.]+)` gives a field `total`",
      },
    ];
  } catch {
    const message =
      "not a regular expression that can be used (they run in linear time: no look-ahead, no back-references)";
    return [{ path: ["rows"], message }];
  }
}

/** The records of a text, in batches. Throws NodeFailure where the text is not what the config says. */
export async function* parseRecords(
  source: ParseSource,
  config: ParseConfig,
  tools: ParseTools,
): RecordBatches {
  if (config.format === "json") {
    yield* jsonRecords(source, config.records, tools);
    return;
  }
  if (source.form === "json") {
    throw new NodeFailure(
      `${tools.place} is JSON already; the format ${config.format} takes a text or a file. Use \`format: json\`.`,
    );
  }
  const { format } = config;
  if (format === "csv" || format === "ndjson") {
    const text =
      source.form === "text" ? one(source.text) : decodeChunks(source.open(), source.charset, tools.place);
    yield* format === "csv"
      ? readCsv(text, config.delimiter ?? ",", tools.place, tools.signal)
      : readNdjson(text, tools.place, tools.signal);
    return;
  }
  if (format === "html" || format === "xml") {
    const decode = format === "html" ? decodeHtml : decodeXml;
    const text =
      source.form === "text"
        ? source.text
        : decode(await collect(source.open()), source.charset, tools.place);
    const { rows, columns, within = null, empty = null } = config;
    const markup = { format, rows: must(rows, "rows"), columns: must(columns, "columns"), within, empty };
    yield* readMarkup(text, markup, tools);
    return;
  }
  if (source.form === "text")
    throw new NodeFailure(`${tools.place} is a text; the format ${format} takes a file.`);
  const bytes = await collect(source.open());
  yield* format === "xlsx"
    ? readXlsx(bytes, config.sheet ?? 1, tools)
    : readPdf(bytes, config.rows ?? null, tools);
}

/** A list, or one that a path of names leads to, is read as a stream; anything else is read whole, and asked afterwards. */
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
/** Words that are more than a name in some place of an expression. */
const WORDS: ReadonlySet<string> = new Set(["and", "or", "in", "true", "false", "null", "function"]);

/** The names of an expression that is nothing but a path; null: it is more. Without an expression the document is the list. */
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
    await lookAtMissing(tools.expressions, root, path, tools.missing);
  return batchesFromJson(value, place);
}

/**
 * The room is given back before the first record is read: they are read when somebody asks for them, who may want room until then. What
 * is held so long is what the expression gave.
 */
async function recordsOfWhole(source: ParseSource, expression: string | undefined, tools: ParseTools) {
  if (source.form === "json") return await recordsOfRoot({ root: source.json }, expression, tools);
  const content = source.form === "text" ? source.text : await collect(source.open());
  const release = await takeJsonRoom(content, tools.signal);
  try {
    const text =
      source.form === "text" ? source.text : decodeWhole(content as Uint8Array, source.charset, tools.place);
    const read = readRoot(text);
    if (!read.ok) throw new NodeFailure(`${tools.place} ${read.problem}.`);
    return await recordsOfRoot(read.root, expression, tools);
  } catch (error) {
    throw error instanceof NoJson ? new NodeFailure(`${tools.place} ${error.message}.`) : error;
  } finally {
    release();
  }
}

async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  return Buffer.concat(await Array.fromAsync(chunks));
}

async function* one(text: string): AsyncIterable<string> {
  yield text;
}
