import type { Static, TSchema } from "typebox";
import { Type } from "#lib/type.ts";
import { SECRET_NAME } from "#domain/account-secret.ts";
import { SAYS } from "#domain/schema-notes.ts";
import { TEMPLATE } from "#domain/expression.ts";

export const GRANTS = ["authorization_code", "client_credentials", "password"] as const;
const TOKEN_AUTHS = ["client_secret_basic", "client_secret_post", "none"] as const;

const template = (description: string) => Type.String({ minLength: 1, [TEMPLATE]: "login", description });
const optional = <Schema extends TSchema>(schema: Schema) => Type.Optional(schema);

/** docs/logins/oauth2.md. */
export const oauthSchema = Type.Object(
  {
    grant: optional(Type.Enum([...GRANTS], { description: "Default: authorization_code." })),
    issuer: optional(
      template(
        "The server's issuer, from which its endpoints are discovered and with which `iss` is compared.",
      ),
    ),
    authorization_url: optional(template("Where the end user logs in and gives consent.")),
    token_url: optional(template("Where tokens are issued and refreshed.")),
    client_id: template("Id of the client that is registered at the target."),
    client_secret_env: optional(
      Type.String({
        pattern: "^[A-Za-z_][A-Za-z0-9_]{0,127}$",
        [SAYS]: "the name of an environment variable: letters, digits and `_`",
        description: "Refused in new documents: write `client_secret: { secret: NAME }`.",
      }),
    ),
    client_secret: optional(
      Type.Union(
        [
          Type.String({ minLength: 1, [TEMPLATE]: "login" }),
          Type.Object(
            {
              secret: Type.String({
                pattern: SECRET_NAME,
                [SAYS]: "a name: letters, digits and `_`",
                description: "The name of an account secret: `latchkey secrets set`.",
              }),
            },
            { additionalProperties: false },
          ),
        ],
        {
          [SAYS]: "`{ secret: NAME }`, or a template with a field",
          description:
            "The client's secret: an account secret, `{ secret: NAME }`, or a template with a field that the end user fills in.",
        },
      ),
    ),
    token_auth: optional(
      Type.Enum([...TOKEN_AUTHS], {
        description: "How the client authenticates. Default: a method that the issuer supports.",
      }),
    ),
    scopes: optional(
      Type.Array(
        Type.String({
          pattern: "^[\\x21\\x23-\\x5B\\x5D-\\x7E]{1,255}$",
          [SAYS]: "one scope: visible characters without spaces, quotes and backslashes",
        }),
        { maxItems: 200, description: "The scopes to request." },
      ),
    ),
    extra_params: optional(
      Type.Record(Type.String(), Type.String(), {
        [TEMPLATE]: "login",
        maxProperties: 50,
        description:
          "Additional parameters for the authorization request or, with the other grants, for the token request.",
      }),
    ),
    username: optional(
      Type.String({ minLength: 1, description: "The key of the field with the user name." }),
    ),
    password: optional(Type.String({ minLength: 1, description: "The key of the field with the password." })),
  },
  { additionalProperties: false },
);

export type OAuthConfig = Static<typeof oauthSchema>;
export type Grant = (typeof GRANTS)[number];

export const grantOf = (config: { readonly grant?: Grant }): Grant => config.grant ?? "authorization_code";
