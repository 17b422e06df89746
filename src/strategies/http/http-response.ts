import { findMiss as findMissOf } from "#answers/expectation.ts";
import { extractAll, type ExtractConfig, type ExtractTools } from "#answers/extract.ts";
import type { OutboundResponse } from "#domain/http-exchange.ts";
import type { Json, JsonObject } from "#domain/json.ts";
import { LoginFailure, type LoginContext } from "#strategies/define-login.ts";
import type { ExpectConfig } from "./http-schema.ts";
import { evaluateAt, isTrueAt, type Variables } from "#strategies/login-expressions.ts";
import { openJar } from "./session-jar.ts";

/** How the response differs from the expectation, as a phrase; null if it doesn't. */
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

/** The strings and numbers in a value. */
export function leavesOf(value: Json): readonly string[] {
  if (typeof value === "string" || typeof value === "number") return [String(value)];
  return typeof value === "object" && value !== null
    ? Object.values(value as JsonObject).flatMap(leavesOf)
    : [];
}

/** The values that a step extracts. Missing values that are not required are left out. */
export async function extractOfStep(
  context: LoginContext,
  extracts: readonly (readonly [name: string, extract: ExtractConfig & { readonly secret?: boolean }])[],
  response: OutboundResponse,
  variables: Variables,
  { place, rejected }: { readonly place: string; readonly rejected: boolean },
): Promise<Variables> {
  const secrets = new Map(extracts.map(([name, { secret }]) => [name, secret !== false]));
  const tools: ExtractTools = {
    ...answerTools(context, place),
    failMissing: (message) => new LoginFailure(message, { rejected }),
    evaluate: async (source, root, at) =>
      await evaluateAt(context.expressions, at, source, { ...root, variables }),
    cookie: (name) => openJar(context.cookies()).value(name, response.url),
    found: (name, value) => {
      if (secrets.get(name) !== false) context.steps?.read(leavesOf(value));
    },
  };
  return await extractAll(tools, extracts, response);
}
