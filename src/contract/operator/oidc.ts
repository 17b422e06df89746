import { Type } from "#lib/type.ts";
import { errorExample } from "#contract/failures.ts";
import type { Failure } from "#contract/operation.ts";
import { closed, conflict, orNull, text } from "./fields.ts";
import { operationsOf } from "./operation.ts";
import { me } from "./session.ts";

const defineOperation = operationsOf("Sign-in");

const url = text("The URL to send the browser to.");
const query = Type.String({
  maxLength: 3_900,
  description: "The query with which the provider redirected the browser back, unchanged.",
});
const notSetUp = conflict(
  "Single sign-on is not configured, or this session was not opened through the provider.",
);
const unavailable: Failure = {
  status: 502,
  description: "The provider can't be reached (`oidc_unavailable`).",
  examples: {
    unavailable: errorExample(
      "internal_error",
      "The single sign-on provider can't be reached. Try again shortly, or sign in with your password.",
    ),
  },
};

export const readSignInMethods = defineOperation({
  id: "readSignInMethods",
  method: "get",
  path: "/session/methods",
  formerPath: "/session/ways",
  summary: "Read the sign-in methods",
  permission: "open",
  answer: closed(
    {
      password: Type.Boolean({ description: "Whether operators can sign in with a password." }),
      oidc: orNull(closed({ label: text("The button's label.") }, { title: "SingleSignOn" })),
    },
    { title: "SignInMethods" },
  ),
});

export const beginOidcSignIn = defineOperation({
  id: "beginOidcSignIn",
  method: "post",
  path: "/session/oidc/begin",
  summary: "Begin a single sign-on",
  description:
    "Sets a cookie that ties the flow to this browser. The header `X-CSRF-Token` must be present, with any value.",
  permission: "open",
  body: closed({
    return_to: Type.Optional(
      Type.String({
        pattern: "^/([^/\\\\\\u0000-\\u001f][^\\u0000-\\u001f]*)?$",
        maxLength: 2_000,
        description: "the page of the dashboard to return to, such as /runs",
      }),
    ),
  }),
  status: 201,
  answer: closed({ url }, { title: "AuthorizationUrl" }),
  failures: [notSetUp, unavailable],
});

export const finishOidcSignIn = defineOperation({
  id: "finishOidcSignIn",
  method: "post",
  path: "/session/oidc",
  summary: "Finish a single sign-on",
  description:
    "Sets the session's cookie. A refusal has the detail code `oidc_state`, `oidc_denied`, `oidc_failed`, `oidc_unverified`, `oidc_unknown`, `oidc_taken` or `oidc_disabled`.",
  permission: "open",
  body: closed({ query }),
  status: 201,
  answer: closed(
    { me, return_to: text("The `return_to` of the beginning.") },
    { title: "SignedInByProvider" },
  ),
  failures: [notSetUp, unavailable],
});

export const beginOidcStepUp = defineOperation({
  id: "beginOidcStepUp",
  method: "post",
  path: "/session/step-up/oidc/begin",
  summary: "Begin a step-up at the provider",
  description:
    "For a session that was opened through the provider. The provider must ask for credentials even if it has a session.",
  permission: "self.manage",
  accounts: "none",
  status: 201,
  answer: closed({ url }, { title: "StepUpAuthorizationUrl" }),
  failures: [notSetUp, unavailable],
});

export const finishOidcStepUp = defineOperation({
  id: "finishOidcStepUp",
  method: "post",
  path: "/session/step-up/oidc",
  summary: "Finish a step-up at the provider",
  description:
    "It must be the same person, authenticated within the last five minutes. Sets a new cookie and invalidates the old one.",
  permission: "self.manage",
  accounts: "none",
  body: closed({ query }),
  answer: me,
  failures: [notSetUp, unavailable],
});
