import { Type } from "#lib/type.ts";
import { limits } from "#domain/limits.ts";
import { closed, conflict, missing, oneOf, orNull, role, text, time } from "./fields.ts";
import { operationsOf } from "./operation.ts";

const defineOperation = operationsOf("Sign-in");

const SECOND_MS = 1_000;

const gone = missing("command line that waits: its code is unknown, has expired, or was already used");

export const beginDeviceSignIn = defineOperation({
  id: "beginDeviceSignIn",
  method: "post",
  path: "/session/device",
  summary: "Ask to be signed in as a command line",
  description:
    "As in RFC 8628: an operator enters the user code in the dashboard, and approves. The header `X-CSRF-Token` must be present, with any value.",
  permission: "open",
  body: closed({
    name: Type.String({
      minLength: 1,
      maxLength: 255,
      description: "What the command line says of itself, such as `ana@laptop`; the token's name.",
    }),
  }),
  status: 201,
  answer: closed(
    {
      device_code: text("The secret with which the command line asks for its token."),
      user_code: text("The code that the operator compares, such as `WDJB-MJHT`."),
      verification_url: text("The page of the dashboard on which the operator enters the code."),
      verification_url_complete: text("The same page, with the code."),
      expires_in_seconds: Type.Integer({ description: "How long the code can be approved." }),
      interval_seconds: Type.Integer({ description: "How long to wait between two requests for the token." }),
    },
    { title: "NewDeviceSignIn" },
  ),
});

export const pollDeviceSignIn = defineOperation({
  id: "pollDeviceSignIn",
  method: "post",
  path: "/session/device/token",
  summary: "Ask for the token of an approved command line",
  description:
    "A decision is answered once. The header `X-CSRF-Token` must be present, with any value. Too many requests are answered with 429.",
  permission: "open",
  body: closed({ device_code: Type.String({ maxLength: 200, description: "The device code." }) }),
  answer: closed(
    {
      status: oneOf(["pending", "approved", "denied"], "What the operator has decided."),
      grant: orNull(
        closed(
          {
            token: text("The operator token. It is shown only once."),
            token_id: text("The token's id (`tok_...`)."),
            operator: text("The email of the operator for whom it acts."),
            role,
            is_limited: Type.Boolean({ description: "Whether it is limited to some accounts." }),
            expires_at: time("When it expires."),
          },
          { title: "DeviceGrant" },
        ),
      ),
    },
    { title: "DeviceSignInState" },
  ),
  failures: [gone],
});

export const readDeviceSignIn = defineOperation({
  id: "readDeviceSignIn",
  method: "get",
  path: "/device-sign-ins/{userCode}",
  summary: "Read which command line waits with a code",
  permission: "device.review",
  accounts: "none",
  answer: closed(
    {
      user_code: text("The code, such as `WDJB-MJHT`."),
      name: text("What the command line says of itself."),
      address: text("The address from which it asked."),
      created_at: time("When it asked."),
      expires_at: time("Until when it can be approved."),
      roles: Type.Array(role, { description: "The roles that the operator can give it." }),
      lifetime_seconds_max: Type.Integer({ description: "The longest life of its token." }),
    },
    { title: "DeviceSignIn" },
  ),
  failures: [gone],
});

export const approveDeviceSignIn = defineOperation({
  id: "approveDeviceSignIn",
  method: "post",
  path: "/device-sign-ins/{userCode}/approve",
  summary: "Sign in a command line",
  description:
    "Creates an operator token that acts for the operator: it ends when they are disabled, or no longer have a role that covers the token's.",
  permission: "device.approve",
  accounts: "none",
  body: closed({
    role,
    lifetime_seconds: Type.Integer({
      minimum: 60,
      maximum: limits.deviceTokenMsMax / SECOND_MS,
      description: "How long the token works, in seconds.",
    }),
  }),
  answer: closed(
    { token_id: text("The token's id (`tok_...`)."), expires_at: time("When it expires.") },
    { title: "ApprovedDeviceSignIn" },
  ),
  failures: [gone, conflict("The operator's role does not cover the token's.")],
});

export const denyDeviceSignIn = defineOperation({
  id: "denyDeviceSignIn",
  method: "post",
  path: "/device-sign-ins/{userCode}/deny",
  summary: "Refuse to sign in a command line",
  permission: "device.review",
  accounts: "none",
  failures: [gone],
});
