import { shorten } from "#domain/config-problem.ts";
import { NoJson, type Scope } from "#domain/expression.ts";
import type { OutboundResponse } from "#domain/http-exchange.ts";
import type { Json } from "#domain/json.ts";
import { takeJsonRoom } from "#domain/json-room.ts";
import { readRoot } from "#domain/read-json.ts";
import { LoginFailure, type LoginContext } from "./define-login.ts";
import type { ExpectConfig, ExtractConfig } from "./http-schema.ts";
import { evaluateAt, isTrueAt, type Variables } from "./login-expressions.ts";
import { readPage, type PageQuery } from "./page-reader.ts";
import { openJar } from "./session-jar.ts";

/** What the response misses of what was expected, in one phrase; null when it misses nothing. */
export async function findMiss(
  context: LoginContext,
  expect: ExpectConfig | undefined,
  response: OutboundResponse,
  variables: Variables,
  place: string,
): Promise<string | null> {
  const { status } = response;
  const listed = expect?.status;
  // Design, page 3, Defaults: 200 to 299.
  if (listed === undefined ? status < 200 || status > 299 : !listed.includes(status))
    return explainStatus(listed, status);
  if (expect?.url !== undefined && !addressOf(response).includes(expect.url))
    return `expected an address with \`${shorten(expect.url)}\``;
  if (expect?.text !== undefined && !response.text().includes(expect.text))
    return `expected text \`${shorten(expect.text)}\` is not in the response`;
  if (expect?.not_text !== undefined && response.text().includes(expect.not_text))
    return `the response contains \`${shorten(expect.not_text)}\``;
  if (expect?.json !== undefined) {
    const { json: condition } = expect;
    const isMet = await withJson(context, response, place, async (root) =>
      root === undefined
        ? null
        : await isTrueAt(context.expressions, `${place}: expect.json`, condition, { ...root, variables }),
    );
    if (isMet === null) return "expected a JSON response";
    if (!isMet) return `expected \`${shorten(expect.json, 200)}\` to be true`;
  }
  return null;
}

/** Where the response came from, or where it leads. It is not shown: a target may write a token into it. */
function addressOf({ status, headers, url }: OutboundResponse): string {
  const location = status >= 300 && status <= 399 ? headers.get("location") : undefined;
  return location !== undefined && URL.canParse(location, url) ? new URL(location, url).href : url;
}

function explainStatus(listed: readonly number[] | undefined, got: number): string {
  const wanted = listed === undefined ? "200 to 299" : listed.join(", ").replace(/, (\d+)$/, " or $1");
  const isRedirect = listed === undefined && got >= 300 && got <= 399;
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
    if (value !== undefined && value !== null) found[name] = value;
    else if (extract.required !== false)
      throw new LoginFailure(`${place}: extract ${name} found nothing (${describeExtract(extract)})`, {
        rejected,
      });
  }
  return found;
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
  return await withJson(context, response, place, async (root) =>
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

/**
 * Works on the body as JSON while there is room for it; undefined when it is none, or nested so deeply that handling it would overflow
 * (page 6, finding 10). Throws LoginFailure for JSON of too many values.
 */
async function withJson<T>(
  { signal }: LoginContext,
  response: OutboundResponse,
  place: string,
  work: (root: Pick<Scope, "root" | "rootText"> | undefined) => Promise<T>,
): Promise<T> {
  const release = await takeJsonRoom(response.body, signal);
  try {
    const read = readRoot(response.text());
    if (!read.ok && read.isTooMuch) throw new LoginFailure(`${place}: the response ${read.problem}`);
    return await work(read.ok ? read.root : undefined);
  } catch (error) {
    if (error instanceof NoJson) return await work(undefined);
    throw error;
  } finally {
    release();
  }
}
