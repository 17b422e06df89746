import { defineStep } from "#answers/browser/define-step.ts";
import { describeLocator, locatorFindings, type LocatorConfig } from "#answers/browser/locator.ts";
import { readFields, readRows } from "#answers/browser/read-rows.ts";
import { columnFindings } from "#answers/browser/columns.ts";
import type { ConfigFinding } from "#domain/config-problem.ts";
import type { JsonObject } from "#domain/json.ts";
import { Type } from "#lib/type.ts";

interface ExtractConfig {
  readonly rows?: LocatorConfig;
  readonly columns?: Readonly<Record<string, string>>;
  readonly empty?: LocatorConfig;
  readonly fields?: Readonly<Record<string, string>>;
}

const COLUMN = "`css` (the trimmed text of the first match), `css@attr`, or `@attr` of the element itself";

export const extract = defineStep<ExtractConfig>({
  kind: "extract",
  description: "Reads the page: `rows` and `columns` as records, or single `fields` as one record.",
  only: "node",
  example: `- extract:
    rows: { css: "table#invoices tbody tr" }
    columns: { number: td.no, total: td.total, pdf: "a.pdf@href" }`,
  more: "It waits until there is at least one row, or `empty` is visible; if neither happens in time, the page has changed, and the node fails.",
  schema: (terms) => {
    const columns = (description: string) =>
      Type.Optional(
        Type.Record(Type.String(), Type.String({ minLength: 1, maxLength: 1_000 }), {
          minProperties: 1,
          description,
        }),
      );
    return Type.Object(
      {
        rows: Type.Optional(terms.locator("Every match is a record.")),
        columns: columns(`With \`rows\`: fields, each with ${COLUMN}.`),
        empty: Type.Optional(terms.locator("With `rows`: what the page shows when there are none.")),
        fields: columns(`Fields of one record, each with ${COLUMN}.`),
      },
      { additionalProperties: false },
    );
  },
  check({ rows, columns, empty, fields }, path) {
    const findings: ConfigFinding[] = [];
    const refuse = (key: string, message: string): void =>
      void findings.push({ path: [...path, key], at: "key", message });
    if (rows === undefined && fields === undefined)
      findings.push({ path, message: "an `extract` needs `rows` and `columns`, or `fields`; add them" });
    if (rows !== undefined && columns === undefined)
      findings.push({ path, message: "`rows` need `columns`; add them" });
    if (rows !== undefined && fields !== undefined)
      refuse("fields", "an `extract` has either `rows` or `fields`; use two steps");
    for (const [key, value] of Object.entries({ columns, empty }))
      if (value !== undefined && rows === undefined) refuse(key, `\`${key}\` needs \`rows\``);
    for (const [key, locator] of Object.entries({ rows, empty }))
      if (locator !== undefined)
        findings.push(...locatorFindings(locator as unknown as JsonObject, [...path, key]));
    return [
      ...findings,
      ...columnFindings(columns, [...path, "columns"]),
      ...columnFindings(fields, [...path, "fields"]),
    ];
  },
  describe: ({ rows, fields }) =>
    rows === undefined ? `fields ${Object.keys(fields ?? {}).join(", ")}` : describeLocator(rows),
  async run(run, { rows, columns = {}, empty, fields }) {
    if (rows !== undefined) run.sink.rows(await readRows(run, rows, columns, empty));
    if (fields !== undefined) run.sink.fields(await readFields(run, fields));
  },
});
