import Type from "typebox";
import { SIGN_IN_WAYS } from "#domain/operator.ts";
import { closed, conflict, missing, oneOf, orNull, role, text, time, whole, count } from "./fields.ts";
import { defineOperation } from "./operation.ts";

const TAG = "Sign-in";

const signedInBy = oneOf(
  SIGN_IN_WAYS,
  "How the session was opened; `oidc`: at the provider of single sign-on.",
);

export const me = closed(
  {
    id: text("The operator's id (`op_...`)."),
    email: text("The sign-in name."),
    role,
    has_second_factor: Type.Boolean({ description: "Whether a sign-in wants a code." }),
    is_stepped_up: Type.Boolean({
      description:
        "Whether the second factor was given, or the provider has asked, within the last five minutes.",
    }),
    signed_in_by: signedInBy,
    needs: orNull(
      oneOf(
        ["password", "second_factor", "code"],
        "What must be done before anything else: change a password that was made for one, set up a second factor, or give a code of it.",
      ),
    ),
    step_up_by: Type.Array(
      oneOf(["code", "oidc"], "`POST /session/step-up`, or `POST /session/step-up/oidc/begin`."),
      { description: "How what is dangerous can be confirmed." },
    ),
    permissions: Type.Array(text("What the role may do.")),
    session_id: text("This session's id (`ops_...`)."),
    session_expires_at: time("When this session ends at the latest."),
    recovery_codes_left: count("Recovery codes that were not used yet."),
    csrf_token: text(
      "Goes back in the header `X-CSRF-Token` of everything that changes something. Another one after each sign-in and step-up.",
    ),
  },
  { title: "Me" },
);

const code = Type.String({
  minLength: 6,
  maxLength: 40,
  description: "Six digits of the authenticator app, or a recovery code.",
});
const password = (description: string) => Type.String({ minLength: 1, maxLength: 1_024, description });

export const signIn = defineOperation({
  id: "signIn",
  method: "post",
  path: "/session",
  tag: TAG,
  summary: "Sign in",
  description:
    "Sets the session's cookie. With a second factor and no `code` the answer is 401 with the detail code `second_factor_required`; after too many attempts it is 429 with the same one, and password and code together are taken all the same. A password that was made for somebody counts for seven days; then the answer is 401 with `password_expired`. The header `X-CSRF-Token` must be there, with any value.",
  permission: "open",
  body: closed({
    email: Type.String({ minLength: 1, maxLength: 320, description: "The sign-in name." }),
    password: password("The password."),
    code: Type.Optional(code),
  }),
  status: 201,
  answer: me,
});

export const readMe = defineOperation({
  id: "readMe",
  method: "get",
  path: "/me",
  tag: TAG,
  summary: "Read who is signed in",
  permission: "self.manage",
  status: 200,
  answer: me,
});

export const signOut = defineOperation({
  id: "signOut",
  method: "delete",
  path: "/session",
  tag: TAG,
  summary: "Sign out",
  permission: "self.manage",
  status: 204,
});

export const stepUp = defineOperation({
  id: "stepUp",
  method: "post",
  path: "/session/step-up",
  tag: TAG,
  summary: "Give the second factor again",
  description: "Sets another cookie; the one before is worth nothing any more.",
  permission: "self.manage",
  body: closed({ code }),
  status: 200,
  answer: me,
});

export const listOwnSessions = defineOperation({
  id: "listOwnSessions",
  method: "get",
  path: "/me/sessions",
  tag: TAG,
  summary: "List one's own sessions",
  permission: "self.manage",
  status: 200,
  answer: whole(
    "OperatorSessions",
    closed(
      {
        id: text("The session's id (`ops_...`)."),
        is_this: Type.Boolean({ description: "The one that asks." }),
        created_at: time("When it was opened."),
        seen_at: time("When it was last used, to the minute."),
        expires_at: time("When it ends at the latest."),
        address: text("The address that it was opened from."),
        user_agent: text("What the browser called itself."),
        signed_in_by: signedInBy,
      },
      { title: "OperatorSession" },
    ),
  ),
});

export const endOwnSession = defineOperation({
  id: "endOwnSession",
  method: "delete",
  path: "/me/sessions/{sessionId}",
  tag: TAG,
  summary: "End one of one's own sessions",
  permission: "self.manage",
  status: 204,
  failures: [missing("session of one's own")],
});

export const changePassword = defineOperation({
  id: "changePassword",
  method: "post",
  path: "/me/password",
  tag: TAG,
  summary: "Change one's own password",
  description: "Ends the other sessions.",
  permission: "self.manage",
  body: closed({
    current_password: password("The current one."),
    new_password: password("12 to 256 characters."),
  }),
  status: 200,
  answer: me,
  failures: [conflict("The sign-in was changed by another request just now.")],
});

export const beginSecondFactor = defineOperation({
  id: "beginSecondFactor",
  method: "post",
  path: "/me/second-factor",
  tag: TAG,
  summary: "Begin to set up an authenticator app",
  permission: "self.manage",
  body: closed({
    current_password: Type.Optional(
      password("The password; may be left out within five minutes of a sign-in at the provider."),
    ),
  }),
  status: 200,
  answer: closed(
    {
      secret: text("To be typed into an app, base32."),
      uri: text("To be shown as a QR code (`otpauth://totp/...`)."),
    },
    { title: "SecondFactorSetUp" },
  ),
  failures: [conflict("There is a second factor already.")],
});

const recoveryCodes = Type.Array(text("Each is good for one sign-in."), {
  description: "Shown this once.",
});

export const confirmSecondFactor = defineOperation({
  id: "confirmSecondFactor",
  method: "post",
  path: "/me/second-factor/confirm",
  tag: TAG,
  summary: "Confirm an authenticator app by its first code",
  description: "From now on a sign-in wants a code. Ends the other sessions.",
  permission: "self.manage",
  body: closed({ code }),
  status: 200,
  answer: closed({ recovery_codes: recoveryCodes, me }, { title: "SecondFactor" }),
  failures: [conflict("There is a second factor already, or none was begun.")],
});

export const renewRecoveryCodes = defineOperation({
  id: "renewRecoveryCodes",
  method: "post",
  path: "/me/recovery-codes",
  tag: TAG,
  summary: "Make new recovery codes in the place of the old ones",
  description: "With a second factor given within the last five minutes.",
  permission: "self.manage",
  body: closed({ current_password: password("The password.") }),
  status: 200,
  answer: closed({ recovery_codes: recoveryCodes }, { title: "RecoveryCodes" }),
});
