import { makeKnownBrowser } from "#actions/operators/known-browser.ts";
import { authenticateOperator } from "#actions/operators/operator-caller.ts";
import { endOwnSession, stepUp } from "#actions/operators/own-session.ts";
import {
  beginSecondFactor,
  changePassword,
  confirmSecondFactor,
  renewRecoveryCodes,
} from "#actions/operators/own-sign-in.ts";
import { listOwnSessions } from "#actions/operators/list-own-sessions.ts";
import { readMe } from "#actions/operators/read-me.ts";
import { signIn } from "#actions/operators/sign-in.ts";
import { normaliseOperatorName } from "#domain/operator.ts";
import type * as contract from "#contract/operator/session.ts";
import type { Handler, OpenContext } from "./context.ts";
import {
  clearSessionCookie,
  readKnownBrowsers,
  readSessionToken,
  setKnownBrowserCookie,
  setSessionCookie,
} from "./cookie.ts";

/** Continues the session with another token: the browser gets the token, and the page gets its new CSRF value. */
export async function continueSession({ services, reply }: OpenContext, token: string) {
  setSessionCookie(reply, services, token);
  return await readMe(services, await authenticateOperator(services, token), token);
}

/** From now on, failed attempts of strangers with this operator's name don't affect this browser. */
export function rememberBrowser({ services, request, reply }: OpenContext, email: string): void {
  const keys = services.signing.operators;
  const name = normaliseOperatorName(email);
  const known = makeKnownBrowser(keys, name, readKnownBrowsers(request, services));
  setKnownBrowserCookie(reply, services, known);
}

export const postSession: Handler<typeof contract.signIn, OpenContext> = async (context, { body }) => {
  const { services, request } = context;
  const token = await signIn(services, {
    email: body.email,
    password: body.password,
    code: body.code ?? null,
    address: services.clientOf(request.raw),
    userAgent: request.headers["user-agent"] ?? "",
    oldToken: readSessionToken(request, services) || null,
    knownBrowsers: readKnownBrowsers(request, services),
  });
  const me = await continueSession(context, token);
  rememberBrowser(context, me.email);
  return me;
};

export const deleteSession: Handler<typeof contract.signOut> = async ({ services, caller, reply }) => {
  await endOwnSession(services, caller, caller.sessionId);
  clearSessionCookie(reply, services);
};

export const postStepUp: Handler<typeof contract.stepUp> = async (context, { body }) =>
  await continueSession(context, await stepUp(context.services, context.caller, body.code));

export const getMe: Handler<typeof contract.readMe> = async ({ services, caller, token }) =>
  await readMe(services, caller, token);

export const getOwnSessions: Handler<typeof contract.listOwnSessions> = async ({ services, caller }) => ({
  items: await listOwnSessions(services, caller),
});

export const deleteOwnSession: Handler<typeof contract.endOwnSession> = async (context, { params }) => {
  const { services, caller, reply } = context;
  const id = params["sessionId"] ?? "";
  await endOwnSession(services, caller, id);
  if (id === caller.sessionId) clearSessionCookie(reply, services);
};

export const postPassword: Handler<typeof contract.changePassword> = async (context, { body }) =>
  await continueSession(
    context,
    await changePassword(context.services, context.caller, {
      currentPassword: body.current_password,
      newPassword: body.new_password,
    }),
  );

export const postSecondFactor: Handler<typeof contract.beginSecondFactor> = async (context, { body }) =>
  await beginSecondFactor(context.services, context.caller, body.current_password ?? null);

export const postConfirmation: Handler<typeof contract.confirmSecondFactor> = async (context, { body }) => {
  const { token, recoveryCodes } = await confirmSecondFactor(context.services, context.caller, body.code);
  return { recovery_codes: [...recoveryCodes], me: await continueSession(context, token) };
};

export const postRecoveryCodes: Handler<typeof contract.renewRecoveryCodes> = async (context, { body }) => ({
  recovery_codes: [...(await renewRecoveryCodes(context.services, context.caller, body.current_password))],
});
