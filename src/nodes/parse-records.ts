import { Type, type Static } from "typebox";
import { EXPRESSION, type BoundExpressions } from "#domain/expression.ts";
import type { Json } from "#domain/json.ts";
import { must } from "#lib/assert.ts";
import type { RecordBatches } from "#domain/record.ts";
import { decodeChunks, decodeHtml, decodeWhole } from "./decode-text.ts";
import { NodeFailure, type ConfigFinding } from "./define-node.ts";
import { valueOf } from "./expression-value.ts";
import { readCsv } from "./read-csv.ts";
import { isSelector, readColumn, readHtml } from "./read-html.ts";
import { readJson } from "./read-json.ts";
import { inBatches, recordsFromJson } from "./record-flow.ts";

const UNBUILT_FORMATS = ["ndjson", "xlsx", "xml", "pdf"] as const;

/** The keys of a `parse` node, and of `parse` in an `http` node. */
export const parseSchema = Type.Object(
  {
    format: Type.Enum(["json", "csv", "html", ...UNBUILT_FORMATS], {
      description: "What the text is. Built: json, csv, html.",
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
        description: "html: a CSS selector; every element that it finds is a record.",
      }),
    ),
    columns: Type.Optional(
      Type.Record(Type.String(), Type.String({ minLength: 1 }), {
        minProperties: 1,
        description:
          "html: field to `css` (trimmed text of the first match in the row), `css@attr`, or `@attr` of the row itself.",
      }),
    ),
    delimiter: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1,
        default: ",",
        description: "csv: what stands between two values.",
      }),
    ),
    sheet: Type.Optional(Type.Unsafe<Json>({ description: "xlsx. Not built yet." })),
  },
  { additionalProperties: false },
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
}

const KEYS_OF_FORMAT: Readonly<Record<string, readonly string[]>> = {
  json: ["records"],
  csv: ["delimiter"],
  html: ["rows", "columns"],
};

/** Mistakes that the schema can't express. */
export function parseFindings(config: ParseConfig): readonly ConfigFinding[] {
  const unbuilt = UNBUILT_FORMATS.find((format) => format === config.format);
  if (unbuilt !== undefined)
    return [{ path: ["format"], message: `the format ${unbuilt} is not built yet; json, csv and html are` }];
  const findings: ConfigFinding[] = [];
  const own = KEYS_OF_FORMAT[config.format] ?? [];
  for (const key of Object.keys(config)) {
    if (key === "sheet") findings.push({ path: [key], message: "`sheet` is not built yet" });
    else if (key !== "format" && !own.includes(key))
      findings.push({ path: [key], message: `\`${key}\` is not a key of the format ${config.format}` });
  }
  if (config.delimiter !== undefined && /["\r\n]/.test(config.delimiter)) {
    findings.push({ path: ["delimiter"], message: "a delimiter can't be a quote or a line break" });
  }
  if (config.format === "html") findings.push(...selectorFindings(config));
  return findings;
}

function selectorFindings(config: ParseConfig): readonly ConfigFinding[] {
  if (config.rows === undefined || config.columns === undefined)
    return [{ path: [], message: "the format html needs `rows` and `columns`" }];
  const columns = Object.entries(config.columns).map(([name, text]) => ({
    path: ["columns", name],
    css: readColumn(name, text).css,
  }));
  return [{ path: ["rows"], css: config.rows }, ...columns].flatMap(({ path, css }) =>
    css === null || isSelector(css) ? [] : [{ path, message: `\`${css}\` is not a CSS selector` }],
  );
}

/** The records of a text, in batches. Throws NodeFailure where the text is not what the config says. */
export async function* parseRecords(
  source: ParseSource,
  config: ParseConfig,
  tools: ParseTools,
): RecordBatches {
  if (config.format === "json") {
    yield* inBatches(await recordsOfJson(await jsonOf(source, tools.place), config.records, tools));
    return;
  }
  if (source.form === "json") {
    throw new NodeFailure(
      `${tools.place} is JSON already; the format ${config.format} takes a text or a file. Use \`format: json\`.`,
    );
  }
  if (config.format === "csv") {
    const text =
      source.form === "text" ? one(source.text) : decodeChunks(source.open(), source.charset, tools.place);
    yield* readCsv(text, config.delimiter ?? ",", tools.place, tools.signal);
    return;
  }
  const html =
    source.form === "text"
      ? source.text
      : decodeHtml(await collect(source.open()), source.charset, tools.place);
  yield* readHtml(
    html,
    must(config.rows, "rows"),
    must(config.columns, "columns"),
    tools.place,
    tools.signal,
  );
}

async function recordsOfJson(json: Json, expression: string | undefined, tools: ParseTools) {
  if (expression === undefined) return recordsFromJson(json, tools.place);
  const [outcomes] = await tools.expressions.evaluateBatch([expression], [{ root: json }]);
  const place = `${tools.place}: records`;
  return recordsFromJson(valueOf(outcomes?.[0], place), place);
}

async function jsonOf(source: ParseSource, place: string): Promise<Json> {
  if (source.form === "json") return source.json;
  const text =
    source.form === "text" ? source.text : decodeWhole(await collect(source.open()), source.charset, place);
  const read = readJson(text);
  if (!read.ok) throw new NodeFailure(`${place} ${read.problem}.`);
  return read.json;
}

async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  return Buffer.concat(await Array.fromAsync(chunks));
}

async function* one(text: string): AsyncIterable<string> {
  yield text;
}
