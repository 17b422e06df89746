import type { Static } from "typebox";
import { Type } from "#lib/type.ts";
import { RE2JS } from "re2js";
import { quote, quoteList, shorten, type ConfigFinding } from "#domain/config-problem.ts";
import { EXPRESSION, type ExpressionScopeKind, type Scope } from "#domain/expression.ts";
import type { OutboundResponse } from "#domain/http-exchange.ts";
import type { Json } from "#domain/json.ts";
import { withJsonBody } from "./expectation.ts";
import { isSelector } from "./is-selector.ts";
import { readPage, type PageQuery } from "./page-reader.ts";

/** Where a value is found in an answer: the keys of an `extract`, the same for logins and nodes. */
export const extractKeys = (scope: ExpressionScopeKind) => ({
  css: Type.Optional(
    Type.String({ minLength: 1, description: "The first element of the HTML body that matches." }),
  ),
  attr: Type.Optional(
    Type.String({
      minLength: 1,
      description: "With `css`: the attribute to read; default: the element's text.",
    }),
  ),
  json: Type.Optional(
    Type.String({ minLength: 1, [EXPRESSION]: scope, description: "An expression over the JSON body." }),
  ),
  regex: Type.Optional(
    Type.String({ minLength: 1, maxLength: 1000, description: "The first match in the body, RE2 syntax." }),
  ),
  group: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 99,
      description: "With `regex`: the group; default: the first, or the whole match if there is none.",
    }),
  ),
  header: Type.Optional(Type.String({ minLength: 1, description: "A header of the response." })),
  required: Type.Optional(
    Type.Boolean({ description: "If true, the default, it is an error when nothing is found." }),
  ),
});

const shape = Type.Object({ ...extractKeys("response"), cookie: Type.Optional(Type.String()) });
export type ExtractConfig = Static<typeof shape>;
export type Extracts = readonly (readonly [name: string, extract: ExtractConfig])[];

/** The functions for finding values. */
export interface ExtractTools {
  readonly signal: AbortSignal;
  /** The beginning of messages. */
  readonly place: string;
  /** Creates the error to throw when the answer can't be read. */
  readonly fail: (message: string) => Error;
  /** Creates the error to throw when a required value is missing. */
  readonly failMissing: (message: string) => Error;
  readonly evaluate: (
    source: string,
    root: Pick<Scope, "root" | "rootText">,
    place: string,
  ) => Promise<Json | undefined>;
  /** Reads a cookie of the session. Only logins have it. */
  readonly cookie?: (name: string) => string | undefined;
  /** Called with each value before the next one is searched for. */
  readonly found?: (name: string, value: Json) => void;
}

/** The extracted values by name. Missing values that are not required are left out. */
export async function extractAll(
  tools: ExtractTools,
  extracts: Extracts,
  response: OutboundResponse,
): Promise<{ readonly [name: string]: Json }> {
  const found: { [name: string]: Json } = {};
  const pageAnswers = await readPageQueries(tools, extracts, response);
  for (const [name, extract] of extracts) {
    const place = `${tools.place}: extract ${name}`;
    const value = pageAnswers.has(name)
      ? pageAnswers.get(name)
      : await extractOne(tools, extract, response, place);
    if (value !== undefined && value !== null) {
      found[name] = value;
      tools.found?.(name, value);
    } else if (extract.required !== false)
      throw tools.failMissing(`${place} found nothing (${describeExtract(extract)})`);
  }
  return found;
}

/** HTML and regular expressions are processed in a thread with a time limit, because a target may send input that is designed to stall. */
async function readPageQueries(
  { place, signal, fail }: ExtractTools,
  extracts: Extracts,
  response: OutboundResponse,
): Promise<ReadonlyMap<string, string | null>> {
  const queries = extracts.flatMap(([name, extract]): readonly (readonly [string, PageQuery])[] => {
    if (extract.css !== undefined)
      return [[name, { kind: "css", css: extract.css, attr: extract.attr ?? null }]];
    if (extract.regex !== undefined)
      return [[name, { kind: "regex", regex: extract.regex, group: extract.group ?? null }]];
    return [];
  });
  if (queries.length === 0) return new Map();
  const answers = await readPage(
    response.text(),
    queries.map(([, query]) => query),
    signal,
  );
  if (answers === null)
    throw fail(`${place}: the response could not be read within the limits of time and memory`);
  return new Map(queries.map(([name], index) => [name, answers[index] ?? null]));
}

async function extractOne(
  tools: ExtractTools,
  extract: ExtractConfig,
  response: OutboundResponse,
  place: string,
): Promise<Json | undefined> {
  if (extract.header !== undefined) return response.headers.get(extract.header.toLowerCase());
  if (extract.cookie !== undefined) return tools.cookie?.(extract.cookie);
  const { json: source } = extract;
  if (source === undefined) return undefined;
  return await withJsonBody({ ...tools, place }, response, async (root) =>
    root === undefined ? undefined : await tools.evaluate(source, root, place),
  );
}

function describeExtract(extract: ExtractConfig): string {
  const kind = (["css", "json", "regex", "header", "cookie"] as const).find(
    (key) => extract[key] !== undefined,
  );
  return kind === undefined
    ? "it is empty"
    : `${kind} \`${shorten(String(extract[kind]), 100)}\`${extract.attr === undefined ? "" : `, attr \`${shorten(extract.attr)}\``}`;
}

/** Mistakes that the schema can't express. `kinds`: the kinds of places that are allowed here. */
export function extractFindings(
  extract: ExtractConfig,
  kinds: readonly ("css" | "json" | "regex" | "header" | "cookie")[],
  path: ConfigFinding["path"],
): readonly ConfigFinding[] {
  const named = kinds.filter((kind) => extract[kind] !== undefined);
  if (named.length !== 1)
    return [{ path, message: `an extract must have exactly one of ${quoteList(kinds)}` }];
  const findings: ConfigFinding[] = [];
  if (extract.attr !== undefined && extract.css === undefined)
    findings.push({ path: [...path, "attr"], at: "key", message: "`attr` needs `css`" });
  if (extract.group !== undefined && extract.regex === undefined)
    findings.push({ path: [...path, "group"], at: "key", message: "`group` needs `regex`" });
  if (extract.css !== undefined && !isSelector(extract.css))
    findings.push({ path: [...path, "css"], message: `${quote(extract.css)} is not a CSS selector` });
  if (extract.regex !== undefined) findings.push(...regexFindings(extract.regex, extract.group ?? 0, path));
  return findings;
}

function regexFindings(regex: string, group: number, path: ConfigFinding["path"]): readonly ConfigFinding[] {
  let groups: number;
  try {
    groups = RE2JS.compile(regex).groupCount();
  } catch (error) {
    // RE2 supports neither look-around nor back-references, which can make a regular expression hang.
    const reason = error instanceof Error ? error.message : "it does not compile";
    return [
      { path: [...path, "regex"], message: `${quote(regex)} is not an RE2 regular expression (${reason})` },
    ];
  }
  if (group <= groups) return [];
  const message = `the regular expression has ${groups} ${groups === 1 ? "group" : "groups"}`;
  return [{ path: [...path, "group"], message }];
}
