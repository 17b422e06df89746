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

/** docs/logins/basic.md. RFC 7617, with UTF-8. */
export const login = withCheck({
  type: "basic",
  description: "HTTP Basic: the user name and the password in the Authorization header.",
  schema,
  check: (config, { fieldKeys }) =>
    matchesSchema(schema, config)
      ? (["username", "password"] as const).flatMap((key) => checkFieldKey(config[key], [key], fieldKeys))
      : [],
  login(context, config) {
    const keys = readConfig(schema, config);
    // Many services take an API key as user name or as password, and nothing as the other.
    const username = context.field(keys.username) ?? "";
    const password = context.field(keys.password) ?? "";
    if (username === "" && password === "")
      throw new LoginFailure(`login (basic): the fields ${keys.username} and ${keys.password} are empty`);
    if (username.includes(":"))
      throw new LoginFailure(
        `login (basic): the field ${keys.username} holds a colon, which HTTP Basic can't carry`,
      );
    const token = Buffer.from(`${username}:${password}`, "utf8").toString("base64");
    return Promise.resolve({ headers: { authorization: `Basic ${token}` }, cookies: null });
  },
});
