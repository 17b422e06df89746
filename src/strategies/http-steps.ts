import type { Strategy } from "#domain/strategy.ts";
import { LoginFailure, type LoginContext, type LoginSession } from "./define-login.ts";
import { buildRequest, describeRequest } from "./http-request.ts";
import { extractAll, findMiss } from "./http-response.ts";
import type { HttpLogin, RequestConfig, StepConfig } from "./http-schema.ts";
import { isTrueAt, type Variables } from "./login-expressions.ts";

/** Does one step. Gives the variables that the next one sees. Throws LoginFailure. */
export async function runStep(
  context: LoginContext,
  step: StepConfig,
  number: number,
  variables: Variables,
): Promise<Variables> {
  const place = `login step ${number} (${describeRequest(step.request)})`;
  if (
    step.when !== undefined &&
    !(await isTrueAt(context.expressions, `${place}: when`, step.when, { variables }))
  )
    return variables;
  const send = async () =>
    context.send(await buildRequest(context, step.request, variables, step.follow === true, place));
  let response = await send();
  let miss = await findMiss(context, step.expect, response, variables, place);
  if (miss !== null && usesOneTimeCode(step.request, context.strategy)) {
    // Design, page 6, 5.7: one retry with the next time step after a rejection. Rendering again takes a fresh code.
    response = await send();
    miss = await findMiss(context, step.expect, response, variables, place);
  }
  if (miss !== null) throw new LoginFailure(`${place}: ${miss}`);
  return {
    ...variables,
    ...(await extractAll(context, Object.entries(step.extract ?? {}), response, variables, place)),
  };
}

/** Whether a request sends `$credential.<field>.code`. */
function usesOneTimeCode(request: RequestConfig, strategy: Strategy): boolean {
  const text = JSON.stringify(request);
  return strategy.fields
    .filter((field) => field.type === "totp_secret")
    .some(({ key }) =>
      new RegExp(`\\$credential\\s*\\.\\s*\`?${key.replace(/\W/g, "\\$&")}\`?\\s*\\.\\s*\`?code\\b`).test(
        text,
      ),
    );
}

/**
 * Sends the `check` of a login, if it has one, with these headers of the session (cookies go along by themselves). Throws
 * LoginFailure when the answer isn't what a logged-in session gets.
 */
export async function runCheck(
  context: LoginContext,
  { check }: HttpLogin,
  headers: LoginSession["headers"],
): Promise<void> {
  if (check === undefined) return;
  const place = `login check (${describeRequest(check.request)})`;
  const request = await buildRequest(context, check.request, {}, false, place);
  const own = (request.headers ?? []).filter(([name]) => !Object.hasOwn(headers, name.toLowerCase()));
  const response = await context.send({ ...request, headers: [...own, ...Object.entries(headers)] });
  const miss = await findMiss(context, check.expect, response, {}, place);
  if (miss !== null) throw new LoginFailure(`${place}: ${miss}`);
}
