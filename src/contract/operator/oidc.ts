import Type from "typebox";
import { errorExample } from "#contract/failures.ts";
import type { Failure } from "#contract/operation.ts";
import { closed, conflict, orNull, text } from "./fields.ts";
import { defineOperation } from "./operation.ts";
import { me } from "./session.ts";

const TAG = "Sign-in";

const url = text("Where the browser goes.");
const query = Type.String({
  maxLength: 3_900,
  description: "The query that the provider has sent the browser back with, as it stands.",
});
const notSetUp = conflict(
  "There is no single sign-on here, or the provider does not answer for this session.",
);
const unavailable: Failure = {
  status: 502,
  description: "The provider can't be asked just now (`oidc_unavailable`).",
  examples: {
    unavailable: errorExample(
      "internal_error",
      "The provider of single sign-on can't be asked just now. Try again shortly, or sign in by password.",
    ),
  },
};

export const readSignInMethods = defineOperation({
  id: "readSignInMethods",
  method: "get",
  path: "/session/methods",
  formerPath: "/session/ways",
  tag: TAG,
  summary: "Read how one can sign in",
  permission: "open",
  status: 200,
  answer: closed(
    {
      password: Type.Boolean({ description: "Whether by password." }),
      oidc: orNull(closed({ label: text("What the button says.") }, { title: "SingleSignOn" })),
    },
    { title: "SignInMethods" },
  ),
});

export const beginOidcSignIn = defineOperation({
  id: "beginOidcSignIn",
  method: "post",
  path: "/session/oidc/begin",
  tag: TAG,
  summary: "Begin a single sign-on",
  description:
    "Sets a cookie that ties the way back to this browser. The header `X-CSRF-Token` must be there, with any value.",
  permission: "open",
  body: closed({
    return_to: Type.Optional(
      Type.String({
        pattern: "^/([^/\\\\\\u0000-\\u001f][^\\u0000-\\u001f]*)?$",
        maxLength: 2_000,
        description: "a page of the dashboard, such as /runs, that is given back at the end",
      }),
    ),
  }),
  status: 201,
  answer: closed({ url }, { title: "Departure" }),
  failures: [notSetUp, unavailable],
});

export const finishOidcSignIn = defineOperation({
  id: "finishOidcSignIn",
  method: "post",
  path: "/session/oidc",
  tag: TAG,
  summary: "Finish a single sign-on",
  description:
    "Sets the session's cookie. A refusal has the detail code `oidc_state`, `oidc_denied`, `oidc_failed`, `oidc_unverified`, `oidc_unknown`, `oidc_taken` or `oidc_disabled`.",
  permission: "open",
  body: closed({ query }),
  status: 201,
  answer: closed({ me, return_to: text("The page that was asked for.") }, { title: "SignedInByProvider" }),
  failures: [notSetUp, unavailable],
});

export const beginOidcStepUp = defineOperation({
  id: "beginOidcStepUp",
  method: "post",
  path: "/session/step-up/oidc/begin",
  tag: TAG,
  summary: "Begin to sign in at the provider again",
  description:
    "Of a session that was opened there. The provider is told to ask even if somebody is signed in there.",
  permission: "self.manage",
  status: 201,
  answer: closed({ url }, { title: "StepUpDeparture" }),
  failures: [notSetUp, unavailable],
});

export const finishOidcStepUp = defineOperation({
  id: "finishOidcStepUp",
  method: "post",
  path: "/session/step-up/oidc",
  tag: TAG,
  summary: "Finish to sign in at the provider again",
  description:
    "The same person, asked within the last five minutes. Sets another cookie; the one before is worth nothing any more.",
  permission: "self.manage",
  body: closed({ query }),
  status: 200,
  answer: me,
  failures: [notSetUp, unavailable],
});
