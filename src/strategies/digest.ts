import { Type } from "typebox";
import { matchesSchema } from "#domain/matches-schema.ts";
import { LoginFailure } from "./define-login.ts";
import { checkFieldKey } from "./login-headers.ts";
import { readConfig } from "#domain/read-config.ts";
import { withCheck } from "./with-check.ts";

const schema = Type.Object(
  {
    username: Type.String({ minLength: 1, description: "The key of the field that holds the user name." }),
    password: Type.String({ minLength: 1, description: "The key of the field that holds the password." }),
  },
  { additionalProperties: false },
);

/** docs/logins/digest.md. RFC 7616; the requests are answered by `engine/digest-session.ts`. */
export const login = withCheck({
  type: "digest",
  description: "HTTP Digest: each request carries a proof of the password, and never the password itself.",
  schema,
  check: (config, { fieldKeys }) =>
    matchesSchema(schema, config)
      ? (["username", "password"] as const).flatMap((key) => checkFieldKey(config[key], [key], fieldKeys))
      : [],
  login(context, config) {
    const keys = readConfig(schema, config);
    const username = context.field(keys.username) ?? "";
    const password = context.field(keys.password) ?? "";
    if (username === "" && password === "")
      throw new LoginFailure(`login (digest): the fields ${keys.username} and ${keys.password} are empty`);
    if (username.includes(":"))
      throw new LoginFailure(
        `login (digest): the field ${keys.username} holds a colon, which HTTP Digest can't carry`,
      );
    return Promise.resolve({ headers: {}, cookies: null, digest: { username, password } });
  },
});
