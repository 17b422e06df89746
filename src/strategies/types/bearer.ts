import { Type } from "#lib/type.ts";
import { matchesSchema } from "#domain/matches-schema.ts";
import { LoginFailure } from "#strategies/define-login.ts";
import { checkFieldKey } from "#strategies/login-headers.ts";
import { readConfig } from "#domain/read-config.ts";
import { withCheck } from "#strategies/http/with-check.ts";

const schema = Type.Object(
  { token: Type.String({ minLength: 1, description: "The key of the field that holds the token." }) },
  { additionalProperties: false },
);

/** docs/logins/bearer.md. */
export const login = withCheck({
  type: "bearer",
  description: "A token in the Authorization header.",
  schema,
  check: (config, { fieldKeys }) =>
    matchesSchema(schema, config) ? checkFieldKey(config.token, ["token"], fieldKeys) : [],
  login(context, config) {
    const key = readConfig(schema, config).token;
    // A pasted token often ends in a line break.
    const token = context.field(key)?.trim() ?? "";
    if (token === "") throw new LoginFailure(`login (bearer): the field ${key} is empty`);
    if (!/^[\x21-\x7e]+$/.test(token))
      throw new LoginFailure(`login (bearer): the field ${key} has characters that no token has`);
    return Promise.resolve({ headers: { authorization: `Bearer ${token}` }, cookies: null });
  },
});
