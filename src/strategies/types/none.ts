import { Type } from "#lib/type.ts";
import { defineLogin } from "#strategies/define-login.ts";

/** docs/logins/none.md. */
export const login = defineLogin({
  type: "none",
  description: "No login: the fields are only stored.",
  schema: Type.Object({}, { additionalProperties: false }),
  explainUntried: () =>
    'with the login type "none" nothing is ever sent, so there is nothing to try; remove `verify`',
  login: () => Promise.resolve({ headers: {}, cookies: null }),
});
