import { title, type TemplateNames } from "./strategy-template.ts";

/** The nodes that read a source and output records with the id \`rows\`, by the kind of source. */
const SOURCE_NODES: Readonly<Record<string, (request: string, credential: string) => string>> = {
  http: (
    request,
    credential,
  ) => `  # A JSON API, page by page: \`next\` of one answer is \`cursor\` of the next request.
  - id: rows
    type: http${credential}
    milestone: reading
    request: { url: ${request}/api/items }
    paginate: { cursor: next, param: cursor, max_pages: 200 }
    records: items
`,
  csv: parsed("/export.csv", "format: csv"),
  ndjson: parsed("/export.ndjson", "format: ndjson"),
  xlsx: saved("/export.xlsx", "format: xlsx, sheet: 1"),
  html: parsed(
    "/items",
    'format: html, rows: table tbody tr, columns: { number: "td:nth-child(1)", total: "td:nth-child(2)" }',
  ),
  xml: parsed("/items.xml", "format: xml, rows: item, columns: { number: number, total: total }"),
  pdf: saved("/statement.pdf", 'format: pdf, rows: "(?P<number>INV-[0-9]+) +(?P<total>[0-9.]+)"'),
  file: () => `  # A CSV file that comes with the trigger.
  - { id: upload, type: input, refKey: upload, accepts: file, required: true }
  - { id: rows, type: parse, from: upload, format: csv }
`,
};

export const SOURCES: readonly string[] = Object.keys(SOURCE_NODES);

/** Text is parsed directly. */
function parsed(path: string, parse: string) {
  return (request: string, credential: string): string => `  # The answer becomes one record a row.
  - id: rows
    type: http${credential}
    milestone: reading
    request: { url: ${request}${path} }
    parse: { ${parse} }
`;
}

/** A binary file is saved first and then parsed by a separate node. */
function saved(path: string, parse: string) {
  return (request: string, credential: string): string => `  - id: download
    type: http${credential}
    milestone: reading
    request: { url: ${request}${path} }
    save: file
  - { id: rows, type: parse, from: download, ${parse} }
`;
}

export function blueprintTemplate(from: string, { name, account, strategy }: TemplateNames): string {
  const isRequested = from !== "file";
  const head = !isRequested
    ? ""
    : strategy === null
      ? "# Origins that nodes without a credential may send requests to.\nhosts: [https://data.example.com]\n"
      : `credentials:\n  it: { strategy: ${strategy} }\n`;
  // With a credential a path is enough: it is resolved against the strategy's first host.
  const nodes = SOURCE_NODES[from]?.(
    strategy === null ? "https://data.example.com" : "",
    strategy === null ? "" : "\n    credential: it",
  );
  return `blueprint: ${name}
account: ${account}
name: ${title(name)}
description: What it does, for people
${head}timeout: 10m
nodes:
${nodes ?? ""}
  # The fields of your records: names to expressions (JSONata) over what was read.
  - id: lines
    type: map
    from: rows
    fields:
      number: number
      total: $number(total)

  - id: checked
    type: validate
    from: lines
    schema:
      type: object
      required: [number, total]
      properties: { total: { type: number, minimum: 0 } }

  - { id: out, type: output, refKey: items, from: checked }
`;
}
