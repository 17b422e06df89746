import { isSelector } from "#answers/is-selector.ts";
import type { Static } from "typebox";
import { Type } from "#lib/type.ts";
import { EXPRESSION } from "#domain/expression.ts";
import { limits } from "#domain/limits.ts";
import { CHARSETS, isCharset } from "./decode-text.ts";
import type { ConfigFinding } from "#nodes/define-node.ts";
import { compileRows, groupsOf } from "./match-rows.ts";
import { readColumn } from "./read-parsed.ts";

/** The keys of a `parse` node, and of `parse` in an `http` node. */
export const parseSchema = Type.Object(
  {
    format: Type.Enum(["json", "ndjson", "csv", "xlsx", "html", "xml", "pdf", "icalendar", "vcard", "text"], {
      description: "The format of the text or file.",
    }),
    records: Type.Optional(
      Type.String({
        minLength: 1,
        [EXPRESSION]: "response",
        description: "json: an expression for a list of objects, or one object. Default: the whole value.",
      }),
    ),
    rows: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          "html, xml: a CSS selector; every matching element is a record. pdf: a regular expression with named groups; every match on a page is a record with the groups as fields.",
      }),
    ),
    columns: Type.Optional(
      Type.Record(Type.String(), Type.String({ minLength: 1 }), {
        minProperties: 1,
        description:
          "html, xml: fields, each with `css` (the trimmed text of the first match in the row), `css@attr`, or `@attr` of the row itself.",
      }),
    ),
    within: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          "html, xml: a CSS selector for the list or table that contains the rows. If it exists without rows, there are no records; if it doesn't exist, the node fails.",
      }),
    ),
    empty: Type.Optional(
      Type.Object(
        {
          css: Type.Optional(
            Type.String({
              minLength: 1,
              description: "A selector for an element that only a page without rows has.",
            }),
          ),
          text: Type.Optional(
            Type.String({ minLength: 1, description: "Text that only a page without rows has." }),
          ),
        },
        {
          additionalProperties: false,
          minProperties: 1,
          description:
            "html: how to recognise a page without rows. If a page has no rows and matches neither `within` nor this, the node fails, because the page may have changed.",
        },
      ),
    ),
    delimiter: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1,
        default: ",",
        description: "csv: the character between two values.",
      }),
    ),
    skip: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: limits.skippedLinesMax,
        default: 0,
        description: "csv: the number of lines before the header.",
      }),
    ),
    charset: Type.Optional(
      Type.String({
        minLength: 1,
        description:
          "For text: its charset, e.g. iso-8859-1. Overrides the content type and the text's own declaration.",
      }),
    ),
    field: Type.Optional(
      Type.String({
        minLength: 1,
        default: "text",
        description: "text: the field of the record that contains the whole text.",
      }),
    ),
    component: Type.Optional(
      Type.Enum(["VEVENT", "VTODO", "VJOURNAL", "VFREEBUSY"], {
        description: "icalendar: the components that become records. Default: all entries.",
      }),
    ),
    sheet: Type.Optional(
      Type.Union([Type.String({ minLength: 1 }), Type.Integer({ minimum: 1 })], {
        default: 1,
        description: "xlsx: the sheet, by name or number.",
      }),
    ),
  },
  {
    additionalProperties: false,
    description: "The keys of a `parse` node: how to parse the text or file.",
  },
);

export type ParseConfig = Static<typeof parseSchema>;

const KEYS_OF_FORMAT: Readonly<Record<ParseConfig["format"], readonly string[]>> = {
  text: ["field", "charset"],
  json: ["records", "charset"],
  ndjson: ["charset"],
  csv: ["delimiter", "skip", "charset"],
  xlsx: ["sheet"],
  html: ["rows", "columns", "within", "empty", "charset"],
  xml: ["rows", "columns", "within", "charset"],
  pdf: ["rows"],
  icalendar: ["component", "charset"],
  vcard: ["charset"],
};

const PACKED: ReadonlySet<unknown> = new Set(["xlsx", "pdf", "html", "xml", "icalendar", "vcard"]);

/**
 * Whether its records contain text that differs from the bytes as decoded by their content type: compressed, folded into lines,
 * or in a charset from the content or the document. Called with any config.
 */
export const isUnpacked = ({
  format,
  charset,
}: {
  readonly format?: unknown;
  readonly charset?: unknown;
}): boolean => PACKED.has(format) || charset !== undefined;

/** Mistakes that the schema can't express. */
export function parseFindings(config: ParseConfig): readonly ConfigFinding[] {
  const { format } = config;
  const own = KEYS_OF_FORMAT[format];
  const findings: ConfigFinding[] = Object.keys(config)
    .filter((key) => key !== "format" && !own.includes(key))
    .map((key) => ({ path: [key], message: `\`${key}\` is not a key of the format ${format}` }));
  if (config.delimiter !== undefined && /["\r\n]/.test(config.delimiter)) {
    findings.push({ path: ["delimiter"], message: "the delimiter can't be a quote or a line break" });
  }
  if (config.charset !== undefined && !isCharset(config.charset))
    findings.push({
      path: ["charset"],
      message: `\`${config.charset}\` is not a supported charset; the supported ones are ${CHARSETS.join(", ")}`,
    });
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
        message:
          "the expression has no named group; `(?<total>[0-9.]+)`, for example, becomes the field `total`",
      },
    ];
  } catch {
    const message =
      "not a supported regular expression (they run in linear time: no look-ahead, no back-references)";
    return [{ path: ["rows"], message }];
  }
}
