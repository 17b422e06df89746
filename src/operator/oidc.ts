import { beginOidcSignIn, finishOidcSignIn } from "#actions/operators/oidc-sign-in.ts";
import { beginOidcStepUp, finishOidcStepUp } from "#actions/operators/oidc-step-up.ts";
import type * as contract from "#contract/operator/oidc.ts";
import type { Handler, OpenContext } from "./context.ts";
import {
  clearOidcCookie,
  readKnownBrowsers,
  readSessionToken,
  readTripCookie,
  setOidcCookie,
} from "./cookie.ts";
import { continueSession, rememberBrowser } from "./session.ts";

export const getMethods: Handler<typeof contract.readSignInMethods, OpenContext> = async ({ services }) => {
  const { byPassword, oidc } = services.operatorSignIn;
  return { password: byPassword, oidc: oidc && { label: oidc.label } };
};

export const postBegin: Handler<typeof contract.beginOidcSignIn, OpenContext> = async (
  { services, request, reply },
  { body },
) => {
  const redirect = await beginOidcSignIn(
    services,
    { address: services.clientOf(request.raw), knownBrowsers: readKnownBrowsers(request, services) },
    body.return_to ?? "/",
  );
  setOidcCookie(reply, services, redirect);
  return { url: redirect.url };
};

const callbackOf = ({ services, request }: OpenContext, query: string) => ({
  query,
  cookieOf: (state: string) => readTripCookie(request, services, state),
});

export const postFinish: Handler<typeof contract.finishOidcSignIn, OpenContext> = async (
  context,
  { body },
) => {
  const { services, request, reply } = context;
  const { token, state, returnTo } = await finishOidcSignIn(services, callbackOf(context, body.query), {
    address: services.clientOf(request.raw),
    userAgent: request.headers["user-agent"] ?? "",
    oldToken: readSessionToken(request, services) || null,
  });
  const me = await continueSession(context, token);
  clearOidcCookie(reply, services, state);
  rememberBrowser(context, me.email);
  return { me, return_to: returnTo };
};

export const postBeginStepUp: Handler<typeof contract.beginOidcStepUp> = async ({
  services,
  caller,
  reply,
}) => {
  const redirect = await beginOidcStepUp(services, caller);
  setOidcCookie(reply, services, redirect);
  return { url: redirect.url };
};

export const postFinishStepUp: Handler<typeof contract.finishOidcStepUp> = async (context, { body }) => {
  const { services, caller, reply } = context;
  const callback = callbackOf(context, body.query);
  const { token, state } = await finishOidcStepUp(services, caller, callback);
  const me = await continueSession(context, token);
  clearOidcCookie(reply, services, state);
  return me;
};
