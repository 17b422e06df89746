import { Type } from "#lib/type.ts";
import { SIGN_IN_WAYS } from "#domain/operator.ts";
import { closed, conflict, missing, oneOf, orNull, role, text, time, whole, count } from "./fields.ts";
import { operationsOf } from "./operation.ts";

const defineOperation = operationsOf("Sign-in");

const signedInBy = oneOf(
  SIGN_IN_WAYS,
  "How the session was opened; `oidc`: through the single sign-on provider.",
);

export const me = closed(
  {
    id: text("The operator's id (`op_...`)."),
    email: text("The email to sign in with."),
    role,
    accounts: orNull(
      Type.Array(text("An account's name."), {
        description: "The accounts that the operator is limited to; `null`: not limited.",
      }),
    ),
    has_second_factor: Type.Boolean({ description: "Whether signing in requires a code." }),
    is_stepped_up: Type.Boolean({
      description:
        "Whether the second factor was given, or the provider authenticated the operator, within the last five minutes.",
    }),
    signed_in_by: signedInBy,
    needs: orNull(
      oneOf(
        ["password", "second_factor", "code"],
        "A step required before anything else: change a generated password, set up a second factor, or enter a code.",
      ),
    ),
    step_up_by: Type.Array(
      oneOf(["code", "oidc"], "`POST /session/step-up`, or `POST /session/step-up/oidc/begin`."),
      { description: "The ways to confirm dangerous actions." },
    ),
    permissions: Type.Array(text("A permission of the role.")),
    session_id: text("This session's id (`ops_...`)."),
    session_expires_at: time("When this session expires at the latest."),
    recovery_codes_left: count("Unused recovery codes."),
    csrf_token: text(
      "Must be sent in the header `X-CSRF-Token` of every request that changes something. It changes after each sign-in and step-up.",
    ),
  },
  { title: "Me" },
);

const code = Type.String({
  minLength: 6,
  maxLength: 40,
  description: "A six-digit code from the authenticator app, or a recovery code.",
});
const password = (description: string) => Type.String({ minLength: 1, maxLength: 1_024, description });

export const signIn = defineOperation({
  id: "signIn",
  method: "post",
  path: "/session",
  summary: "Sign in",
  description:
    "Sets the session's cookie. If the operator has a second factor and `code` is missing, the answer is 401 with the detail code `second_factor_required`; after too many attempts it is 429 with the same code, and password and code together are still accepted. A generated password is valid for seven days; after that the answer is 401 with `password_expired`. The header `X-CSRF-Token` must be present, with any value.",
  permission: "open",
  body: closed({
    email: Type.String({ minLength: 1, maxLength: 320, description: "The email." }),
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
  summary: "Read the signed-in operator",
  permission: "self.manage",
  accounts: "none",
  answer: me,
});

export const signOut = defineOperation({
  id: "signOut",
  method: "delete",
  path: "/session",
  summary: "Sign out",
  permission: "self.manage",
  accounts: "none",
});

export const stepUp = defineOperation({
  id: "stepUp",
  method: "post",
  path: "/session/step-up",
  summary: "Confirm the second factor (step-up)",
  description: "Sets a new cookie and invalidates the old one.",
  permission: "self.manage",
  accounts: "none",
  body: closed({ code }),
  answer: me,
});

export const listOwnSessions = defineOperation({
  id: "listOwnSessions",
  method: "get",
  path: "/me/sessions",
  summary: "List your own sessions",
  permission: "self.manage",
  accounts: "none",
  answer: whole(
    "OperatorSessions",
    closed(
      {
        id: text("The session's id (`ops_...`)."),
        is_this: Type.Boolean({ description: "Whether it is the session of this request." }),
        created_at: time("When it was opened."),
        seen_at: time("When it was last used, to the minute."),
        expires_at: time("When it expires at the latest."),
        address: text("The address that it was opened from."),
        user_agent: text("The browser's User-Agent."),
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
  summary: "End one of your own sessions",
  permission: "self.manage",
  accounts: "none",
  failures: [missing("session of yours")],
});

export const changePassword = defineOperation({
  id: "changePassword",
  method: "post",
  path: "/me/password",
  summary: "Change your own password",
  description: "Ends the other sessions.",
  permission: "self.manage",
  accounts: "none",
  body: closed({
    current_password: password("The current password."),
    new_password: password("12 to 256 characters."),
  }),
  answer: me,
  failures: [conflict("Another request has just changed the sign-in.")],
});

export const beginSecondFactor = defineOperation({
  id: "beginSecondFactor",
  method: "post",
  path: "/me/second-factor",
  summary: "Begin to set up an authenticator app",
  permission: "self.manage",
  accounts: "none",
  body: closed({
    current_password: Type.Optional(
      password("The password; optional within five minutes of a sign-in at the provider."),
    ),
  }),
  answer: closed(
    {
      secret: text("The key to type into an app, in base32."),
      uri: text("The URI to show as a QR code (`otpauth://totp/...`)."),
    },
    { title: "SecondFactorSetUp" },
  ),
  failures: [conflict("A second factor is already set up.")],
});

const recoveryCodes = Type.Array(text("A code for one sign-in."), {
  description: "They are shown only once.",
});

export const confirmSecondFactor = defineOperation({
  id: "confirmSecondFactor",
  method: "post",
  path: "/me/second-factor/confirm",
  summary: "Confirm an authenticator app with its first code",
  description: "From now on, signing in requires a code. Ends the other sessions.",
  permission: "self.manage",
  accounts: "none",
  body: closed({ code }),
  answer: closed({ recovery_codes: recoveryCodes, me }, { title: "SecondFactor" }),
  failures: [conflict("A second factor is already set up, or its setup was not begun.")],
});

export const renewRecoveryCodes = defineOperation({
  id: "renewRecoveryCodes",
  method: "post",
  path: "/me/recovery-codes",
  summary: "Replace the recovery codes",
  description: "Needs a second factor given within the last five minutes.",
  permission: "self.manage",
  accounts: "none",
  body: closed({ current_password: password("The password.") }),
  answer: closed({ recovery_codes: recoveryCodes }, { title: "RecoveryCodes" }),
});
