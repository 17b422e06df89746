import { Type } from "#lib/type.ts";
import { limits } from "#domain/limits.ts";
import { closed, conflict, missing, ofAccount, oneOf, orNull, text, time } from "./fields.ts";
import { operationsOf } from "./operation.ts";

const defineOperation = operationsOf("Account secrets");

const warnings = Type.Array(
  text(
    "A current strategy whose secret is missing or may not be sent to the strategy's origins, with the remedy.",
  ),
);

export const listSecrets = defineOperation({
  id: "listSecrets",
  method: "get",
  path: "/secrets",
  summary: "List account secrets, by account and name",
  description: "Values are never returned.",
  permission: "secret.read",
  accounts: "own",
  query: closed({ account: ofAccount }),
  answer: closed(
    {
      items: Type.Array(
        closed(
          {
            account: text("The account's name."),
            name: text("The secret's name in documents."),
            origins: Type.Array(text("An origin that the value may be sent to.")),
            strategies: Type.Array(text("A current strategy that uses it (`strat_...`).")),
            set_at: time("When the value was set."),
            set_by: orNull(text("The operator's email; `null`: the command line, or an operator token.")),
            created_at: time("When the name was first used."),
            is_overridden: Type.Boolean({
              description:
                "Whether the responding process uses a secret of this name from LATCHKEY_CLIENT_SECRETS_FILE instead.",
            }),
          },
          { title: "AccountSecret" },
        ),
      ),
      warnings,
      problems: Type.Array(
        closed(
          {
            account: text("The account's name."),
            strategy: text("The strategy's id (`strat_...`)."),
            name: text("The secret's name, or the variable's."),
            kind: oneOf(["missing_secret", "other_origin", "missing_variable", "variable"], "What is wrong."),
            origin: orNull(text("The origin of the token endpoint, if the document states it.")),
            message: text("What is wrong, in a sentence without the remedy."),
          },
          { title: "SecretProblem" },
        ),
        { description: "The warnings, part by part." },
      ),
    },
    { title: "AccountSecrets" },
  ),
});

export const setSecret = defineOperation({
  id: "setSecret",
  method: "post",
  path: "/secrets",
  summary: "Set an account secret",
  description:
    "The value is sealed together with its allowed origins, and no operation returns it. An existing secret of the same name is replaced together with its origins.",
  permission: "secret.manage",
  body: closed({
    account: Type.String({ minLength: 1, maxLength: 200, description: "The account's name." }),
    name: Type.String({
      minLength: 1,
      maxLength: 128,
      description: "Its name in documents: `client_secret: { secret: NAME }`.",
    }),
    origins: Type.Array(Type.String({ maxLength: 300 }), {
      minItems: 1,
      maxItems: limits.accountSecretOriginsMax,
      description: "The only origins that it may be sent to, such as `https://login.example.com`.",
    }),
    value: Type.String({
      minLength: 1,
      maxLength: limits.accountSecretCharactersMax,
      description: "The secret itself: one line.",
    }),
  }),
  answer: closed(
    { change: oneOf(["created", "replaced"], "Whether a secret of that name existed."), warnings },
    { title: "AccountSecretSet" },
  ),
  failures: [missing("account"), conflict("The account has the maximum number of secrets.")],
});

export const deleteSecret = defineOperation({
  id: "deleteSecret",
  method: "delete",
  path: "/secrets/{account}/{secret}",
  summary: "Delete an account secret",
  description: "Immediate and permanent.",
  permission: "secret.manage",
  query: closed({
    force: Type.Optional(
      Type.Boolean({
        description: "Delete it even if current strategies use it: their sign-ins and runs will fail.",
      }),
    ),
  }),
  failures: [missing("secret"), conflict("Current strategies use it.")],
});
