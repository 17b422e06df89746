import { Type } from "#lib/type.ts";
import type { JsonObject } from "#domain/json.ts";
import { matchesSchema } from "#domain/matches-schema.ts";
import { readConfig } from "#domain/read-config.ts";
import { LoginFailure, type ConfigFinding, type LoginContext } from "./define-login.ts";
import { checkFieldKey } from "./login-headers.ts";

/** The keys of the login types for HTTP authentication (RFC 7617, RFC 7616). */
export const userAndPassword = Type.Object(
  {
    username: Type.String({ minLength: 1, description: "The key of the field that holds the user name." }),
    password: Type.String({ minLength: 1, description: "The key of the field that holds the password." }),
  },
  { additionalProperties: false },
);

export function checkUserAndPassword(
  config: JsonObject,
  { fieldKeys }: { readonly fieldKeys: readonly string[] },
): readonly ConfigFinding[] {
  return matchesSchema(userAndPassword, config)
    ? (["username", "password"] as const).flatMap((key) => checkFieldKey(config[key], [key], fieldKeys))
    : [];
}

/** Reads what the end user entered. `scheme`: as written in HTTP. Throws LoginFailure. */
export function readUserAndPassword(
  context: LoginContext,
  config: JsonObject,
  scheme: "Basic" | "Digest",
): { readonly username: string; readonly password: string } {
  const keys = readConfig(userAndPassword, config);
  const place = `login (${scheme.toLowerCase()})`;
  // Many services accept an API key as user name or password, with the other one empty.
  const username = context.field(keys.username) ?? "";
  const password = context.field(keys.password) ?? "";
  if (username === "" && password === "")
    throw new LoginFailure(`${place}: the fields ${keys.username} and ${keys.password} are empty`);
  if (username.includes(":"))
    throw new LoginFailure(
      `${place}: the field ${keys.username} contains a colon, which HTTP ${scheme} can't transmit`,
    );
  return { username, password };
}
