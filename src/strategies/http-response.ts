import { findMiss as findMissOf, withJsonBody } from "#answers/expectation.ts";
import { readPage, type PageQuery } from "#answers/page-reader.ts";
import { shorten } from "#domain/config-problem.ts";
import type { OutboundResponse } from "#domain/http-exchange.ts";
import type { Json, JsonObject } from "#domain/json.ts";
import { LoginFailure, type LoginContext } from "./define-login.ts";
import type { ExpectConfig, ExtractConfig } from "./http-schema.ts";
import { evaluateAt, isTrueAt, type Variables } from "./login-expressions.ts";
import { openJar } from "./session-jar.ts";

/** What the response misses of what was expected, in one phrase; null when it misses nothing. */
export async function findMiss(
  context: LoginContext,
  expect: ExpectConfig | undefined,
  response: OutboundResponse,
  variables: Variables,
  place: string,
): Promise<string | null> {
  const miss = await findMissOf(
    {
      ...answerTools(context, place),
      isTrue: async (condition, root) =>
        await isTrueAt(context.expressions, `${place}: expect.json`, condition, { ...root, variables }),
    },
    expect,
    response,
  );
  if (miss === null) return null;
  return miss.kind === "content" ? miss.phrase : explainStatus(miss.listed, miss.status);
}

const answerTools = ({ signal }: LoginContext, place: string) => ({
  signal,
  place,
  fail: (message: string) => new LoginFailure(message),
});

function explainStatus(listed: readonly number[] | null, got: number): string {
  const wanted = listed === null ? "200 to 299" : listed.join(", ").replace(/, (\d+)$/, " or $1");
  const isRedirect = listed === null && got >= 300 && got <= 399;
  return `expected status ${wanted}, got ${got}${isRedirect ? " (a redirect: list it in `expect.status`, or set `follow: true`)" : ""}`;
}

/** The values that a step extracts; those that are not required and not there are left out. */
export async function extractAll(
  context: LoginContext,
  extracts: readonly (readonly [name: string, extract: ExtractConfig])[],
  response: OutboundResponse,
  variables: Variables,
  { place, rejected }: { readonly place: string; readonly rejected: boolean },
): Promise<Variables> {
  const found: { [name: string]: Json } = {};
  const pageAnswers = await readPageQueries(context, extracts, response, place);
  for (const [name, extract] of extracts) {
    const value = pageAnswers.has(name)
      ? pageAnswers.get(name)
      : await extractOne(context, extract, response, variables, `${place}: extract ${name}`);
    if (value !== undefined && value !== null) {
      found[name] = value;
      if (extract.secret !== false) context.steps?.read(leavesOf(value));
    } else if (extract.required !== false)
      throw new LoginFailure(`${place}: extract ${name} found nothing (${describeExtract(extract)})`, {
        rejected,
      });
  }
  return found;
}

/** The texts and numbers in a value. */
export function leavesOf(value: Json): readonly string[] {
  if (typeof value === "string" || typeof value === "number") return [String(value)];
  return typeof value === "object" && value !== null
    ? Object.values(value as JsonObject).flatMap(leavesOf)
    : [];
}

/** HTML and regular expressions are read in a thread with a time limit: what the target sends may be built to stall. */
async function readPageQueries(
  context: LoginContext,
  extracts: readonly (readonly [name: string, extract: ExtractConfig])[],
  response: OutboundResponse,
  place: string,
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
    context.signal,
  );
  if (answers === null)
    throw new LoginFailure(`${place}: the response could not be read within the limits of time and memory`);
  return new Map(queries.map(([name], index) => [name, answers[index] ?? null]));
}

async function extractOne(
  context: LoginContext,
  extract: ExtractConfig,
  response: OutboundResponse,
  variables: Variables,
  place: string,
): Promise<Json | undefined> {
  if (extract.header !== undefined) return response.headers.get(extract.header.toLowerCase());
  if (extract.cookie !== undefined) return openJar(context.cookies()).value(extract.cookie, response.url);
  const { json: source } = extract;
  if (source === undefined) return undefined;
  return await withJsonBody(answerTools(context, place), response, async (root) =>
    root === undefined
      ? undefined
      : await evaluateAt(context.expressions, place, source, { ...root, variables }),
  );
}

function describeExtract(extract: ExtractConfig): string {
  const kind = (["css", "json", "regex", "header", "cookie"] as const).find(
    (key) => extract[key] !== undefined,
  );
  return kind === undefined
    ? "it says nothing"
    : `${kind} \`${shorten(String(extract[kind]), 100)}\`${extract.attr === undefined ? "" : `, attr \`${shorten(extract.attr)}\``}`;
}
