import { matchesSchema } from "#domain/matches-schema.ts";
import { isJsonObject, type JsonObject } from "#domain/json.ts";
import { defineLogin, type LoginContext, type LoginSession } from "#strategies/define-login.ts";
import { checkHttpConfig, warnOfHttpLogin } from "#strategies/http/http-check-config.ts";
import { httpSchema, keptHttpSchema } from "#strategies/http/http-schema.ts";
import { LOGIN_BEGIN, runCheck, runStep } from "#strategies/http/http-steps.ts";
import { renderAt } from "#strategies/login-expressions.ts";
import { sessionHeaders } from "#strategies/login-headers.ts";
import { readConfig } from "#domain/read-config.ts";

/** docs/logins/http.md. */
export const login = defineLogin({
  type: "http",
  description:
    "A sequence of requests with a cookie jar. The session consists of the cookies and `session.headers`.",
  schema: httpSchema,
  check: (config) => (matchesSchema(httpSchema, config) ? checkHttpConfig(config) : []),
  warn: (config, isCached) => warnOfHttpLogin(readConfig(httpSchema, config), isCached),
  extracts: extractNames,
  login: runLogin,
  checkSession,
});

function extractNames({ steps }: JsonObject): readonly string[] {
  const extracts = (Array.isArray(steps) ? steps : []).map((step: unknown) =>
    isJsonObject(step) ? step["extract"] : undefined,
  );
  return [...new Set(extracts.flatMap((extract) => (isJsonObject(extract) ? Object.keys(extract) : [])))];
}

async function runLogin(context: LoginContext, config: JsonObject): Promise<LoginSession> {
  const read = readConfig(keptHttpSchema, config);
  let progress = LOGIN_BEGIN;
  for (const [index, step] of read.steps.entries())
    progress = await runStep(context, step, index + 1, progress);
  const { variables, extracted } = progress;
  const place = "login: session.headers";
  const rendered = await renderAt(context.expressions, place, read.session?.headers ?? {}, { variables });
  const headers = sessionHeaders(rendered, place);
  // The same check is used for cached sessions, which have no variables of the steps, so it gets none here either.
  await runCheck(context, read.check, headers);
  return { headers, cookies: context.cookies(), extracted };
}

/** Tests a cached session with the login's `check`. Throws LoginFailure if it is no longer logged in. */
export async function checkSession(context: LoginContext, config: JsonObject): Promise<void> {
  await runCheck(context, readConfig(keptHttpSchema, config).check, {});
}
