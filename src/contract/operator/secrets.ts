import Type from "typebox";
import { limits } from "#domain/limits.ts";
import { closed, conflict, missing, oneOf, orNull, text, time } from "./fields.ts";
import { defineOperation } from "./operation.ts";

const TAG = "Account secrets";

const warnings = Type.Array(
  text(
    "A strategy in force that has not the secret that it names, or may not send it where it would, with the remedy.",
  ),
);

export const listSecrets = defineOperation({
  id: "listSecrets",
  method: "get",
  path: "/secrets",
  tag: TAG,
  summary: "List account secrets, by account and name",
  description: "Never a value of one.",
  permission: "secret.read",
  query: closed({
    account: Type.Optional(Type.String({ maxLength: 200, description: "The account's name." })),
  }),
  status: 200,
  answer: closed(
    {
      items: Type.Array(
        closed(
          {
            account: text("The account's name."),
            name: text("The secret's name, which documents refer to."),
            origins: Type.Array(text("An origin that the value may be sent to.")),
            strategies: Type.Array(text("A strategy in force that names it (`strat_...`).")),
            set_at: time("When the value was set."),
            set_by: orNull(text("The operator's sign-in name; `null`: it was the command line.")),
            created_at: time("When the name was first used."),
            is_overridden: Type.Boolean({
              description:
                "LATCHKEY_CLIENT_SECRETS_FILE of the process that answers has one of this name, which it uses instead.",
            }),
          },
          { title: "AccountSecret" },
        ),
      ),
      warnings,
    },
    { title: "AccountSecrets" },
  ),
});

export const setSecret = defineOperation({
  id: "setSecret",
  method: "post",
  path: "/secrets",
  tag: TAG,
  summary: "Set an account secret",
  description:
    "Its value is sealed together with the origins that it may be sent to, and no operation gives it back. One of the same name is replaced, its origins included.",
  permission: "secret.manage",
  body: closed({
    account: Type.String({ minLength: 1, maxLength: 200, description: "The account's name." }),
    name: Type.String({
      minLength: 1,
      maxLength: 128,
      description: "What documents call it: `client_secret: { secret: NAME }`.",
    }),
    origins: Type.Array(Type.String({ maxLength: 300 }), {
      minItems: 1,
      maxItems: limits.accountSecretOriginsMax,
      description: "The only origins that it may be sent to, like `https://login.example.com`.",
    }),
    value: Type.String({
      minLength: 1,
      maxLength: limits.accountSecretCharactersMax,
      description: "The secret itself: one line.",
    }),
  }),
  status: 200,
  answer: closed(
    { change: oneOf(["created", "replaced"], "Whether there was one of that name."), warnings },
    { title: "AccountSecretSet" },
  ),
  failures: [missing("account"), conflict("The account has as many secrets as it may have.")],
});

export const deleteSecret = defineOperation({
  id: "deleteSecret",
  method: "delete",
  path: "/secrets/{account}/{secret}",
  tag: TAG,
  summary: "Delete an account secret",
  description: "At once and permanently.",
  permission: "secret.manage",
  query: closed({
    force: Type.Optional(
      Type.Boolean({
        description: "Also when strategies in force name it: their sign-ins and runs fail from then on.",
      }),
    ),
  }),
  status: 204,
  failures: [missing("secret"), conflict("Strategies in force name it.")],
});
