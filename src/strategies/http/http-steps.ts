import { buildSubmit, type SubmitTools } from "#answers/submit.ts";
import type { OutboundRequest, OutboundResponse } from "#domain/http-exchange.ts";
import { isReadMethod } from "#domain/http-methods.ts";
import type { Strategy } from "#domain/strategy.ts";
import { limits } from "#domain/limits.ts";
import { must } from "#lib/assert.ts";
import {
  LoginFailure,
  type ExtractedTexts,
  type LoginContext,
  type LoginSession,
} from "#strategies/define-login.ts";
import { buildRequest, describeRequest, describeStep } from "./http-request.ts";
import { extractOfStep, findMiss, leavesOf } from "./http-response.ts";
import type { CheckConfig, StepConfig } from "./http-schema.ts";
import { sendWithRetries } from "./send-with-retries.ts";
import { isTrueAt, renderAt, type Variables } from "#strategies/login-expressions.ts";

/** The state of a login in progress. */
export interface LoginProgress {
  /** The current values of extracted variables. */
  readonly variables: Variables;
  /** All extracted values, including those that a later step replaced under the same name. */
  readonly extracted: ExtractedTexts;
  /** The last response, in which a `submit` finds its form. */
  readonly page: OutboundResponse | null;
  /** Whether the target has received a part of the credential. From then on, its refusals count against the end user's account. */
  readonly sent: boolean;
}

export const LOGIN_BEGIN: LoginProgress = {
  variables: {},
  extracted: { secret: [], open: [] },
  page: null,
  sent: false,
};

/** Executes one step. Returns the state for the next one. Throws LoginFailure. */
export async function runStep(
  context: LoginContext,
  step: StepConfig,
  number: number,
  progress: LoginProgress,
): Promise<LoginProgress> {
  const { variables } = progress;
  const place = `login step ${number} (${describeStep(step)})`;
  context.steps?.begin(place);
  if (
    step.when !== undefined &&
    !(await isTrueAt(context.expressions, `${place}: when`, step.when, { variables }))
  ) {
    context.steps?.skip();
    return progress;
  }
  const sent = progress.sent || /\$credential\b/.test(JSON.stringify(step.request ?? step.submit));
  const send = async (pages: readonly OutboundResponse[]): Promise<OutboundResponse> =>
    await sendWithRetries(context, await requestOf(context, step, pages, variables, place), {
      isRepeatable: !sent,
      expected: step.expect?.status ?? [],
    });
  let response = await send(progress.page === null ? [] : [progress.page]);
  let miss = await findMiss(context, step.expect, response, variables, place);
  if (miss !== null && usesOneTimeCode(step, context.strategy)) {
    // docs/decisions/0021: one retry with the code of the next time step after a rejection. Rendering again uses a new code.
    const pages = [response, progress.page].filter((page) => page !== null);
    response = await send(pages);
    miss = await findMiss(context, step.expect, response, variables, place);
  }
  const rejected = sent && isVerdict(response);
  if (miss !== null) throw new LoginFailure(`${place}: ${miss}`, { rejected });
  const extracts = Object.entries(step.extract ?? {});
  const extracted = await extractOfStep(context, extracts, response, variables, { place, rejected });
  return {
    variables: { ...variables, ...extracted },
    extracted: withTexts(progress.extracted, step, extracted),
    page: response,
    sent,
  };
}

function withTexts(
  before: ExtractedTexts,
  { extract = {} }: StepConfig,
  extracted: Variables,
): ExtractedTexts {
  const textsOf = (secret: boolean): readonly string[] =>
    Object.entries(extracted)
      .filter(([name]) => (extract[name]?.secret !== false) === secret)
      .flatMap(([, value]) => leavesOf(value));
  return { secret: [...before.secret, ...textsOf(true)], open: [...before.open, ...textsOf(false)] };
}

async function requestOf(
  context: LoginContext,
  { request, submit, follow = false }: StepConfig,
  pages: readonly OutboundResponse[],
  variables: Variables,
  place: string,
): Promise<OutboundRequest> {
  if (submit !== undefined) {
    const tools: SubmitTools = {
      signal: context.signal,
      place,
      fail: (message) => new LoginFailure(message),
      render: async (template) =>
        await renderAt(context.expressions, `${place}: fields`, template, { variables }),
      isStrict: context.strategy.edition >= 2,
    };
    return { ...(await buildSubmit(tools, submit, pages)), redirectsMax: follow ? limits.redirectsMax : 0 };
  }
  return await buildRequest(context, must(request, "the step's request"), variables, follow, place);
}

/** Whether the answer is a decision about the login, and not an outage or a request to wait. */
function isVerdict({ status }: OutboundResponse): boolean {
  return status < 500 && ![408, 425, 429].includes(status);
}

/** Whether a step sends `$credential.<field>.code`. */
function usesOneTimeCode({ request, submit }: StepConfig, strategy: Strategy): boolean {
  const text = JSON.stringify(request ?? submit);
  return strategy.fields
    .filter((field) => field.type === "totp_secret")
    .some(({ key }) =>
      new RegExp(`\\$credential\\s*\\.\\s*\`?${key.replace(/\W/g, "\\$&")}\`?\\s*\\.\\s*\`?code\\b`).test(
        text,
      ),
    );
}

/**
 * Sends the `check` of a login, if it has one, with these headers of the session (cookies are added automatically). Throws
 * LoginFailure if the answer is not that for a logged-in session.
 */
export async function runCheck(
  context: LoginContext,
  check: CheckConfig | undefined,
  headers: LoginSession["headers"],
): Promise<void> {
  if (check === undefined) return;
  const place = `login check (${describeRequest(check.request)})`;
  context.steps?.begin(place);
  const request = await buildRequest(context, check.request, {}, false, place);
  const own = (request.headers ?? []).filter(([name]) => !Object.hasOwn(headers, name.toLowerCase()));
  const asked = { ...request, headers: [...own, ...Object.entries(headers)] };
  const response = await sendWithRetries(context, asked, {
    isRepeatable: isReadMethod(request.method),
    expected: check.expect?.status ?? [],
  });
  const miss = await findMiss(context, check.expect, response, {}, place);
  if (miss !== null) throw new LoginFailure(`${place}: ${miss}`, { rejected: isVerdict(response) });
}
