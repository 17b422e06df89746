import { Type } from "#lib/type.ts";
import { REVIEW_STEP_UPS } from "#domain/account.ts";
import { applied } from "./config.ts";
import { closed, count, missing, oneOf, orNull, text, time, whole } from "./fields.ts";
import { operationsOf } from "./operation.ts";

const defineOperation = operationsOf("Accounts");

const account = {
  account: text("The account's name in its document."),
  id: text("The account's id (`acct_...`)."),
  name: text("The display name."),
  created_at: time("When it was created."),
  updated_at: time("When its document was last applied."),
};

export const listAccounts = defineOperation({
  id: "listAccounts",
  method: "get",
  path: "/accounts",
  summary: "List accounts, by name",
  permission: "config.read",
  accounts: "own",
  answer: whole("Accounts", closed(account, { title: "Account" })),
});

const branding = {
  name: orNull(text("The name that end users see; `null`: the account's name.")),
  accent_color: orNull(text("The colour of buttons and links, such as `#3355ff`.")),
  support_url: orNull(text("Where end users get help: https:// or mailto:.")),
  logo_url: orNull(text("The logo, as a `data:` URI.")),
};

export const readAccount = defineOperation({
  id: "readAccount",
  method: "get",
  path: "/accounts/{account}",
  summary: "Read an account",
  permission: "config.read",
  answer: closed(
    {
      ...account,
      allowed_origins: Type.Array(text("An origin that a `return_url` may have.")),
      embed_origins: orNull(
        Type.Array(text("An origin of pages that may frame the embedded flow; `null`: `allowed_origins`.")),
      ),
      session_lifetime_ms: count("How long a credential session lasts."),
      retention_ms: count("How long the data of ended runs is kept."),
      concurrency: count("Runs that may execute at the same time."),
      rate_limit: orNull(
        closed({
          per_second: count("Requests per second of each API key."),
          burst: count("Requests allowed in a burst."),
        }),
      ),
      review_step_up: oneOf(REVIEW_STEP_UPS, "The decisions on reviews that require a second factor."),
      two_person: Type.Boolean({
        description: "Whether changes to where its credentials go need two admins.",
      }),
      branding: closed(branding),
      yaml: text("The document."),
    },
    { title: "AccountDetail" },
  ),
  failures: [missing("account")],
});

const given = (description: string) => Type.Optional(orNull(Type.String({ maxLength: 60_000, description })));
const number = (description: string) => Type.Optional(Type.Integer({ minimum: 1, description }));

export const changeAccount = defineOperation({
  id: "changeAccount",
  method: "post",
  path: "/accounts/{account}",
  summary: "Change an account",
  description:
    "Omitted keys keep their values. The document is checked as by `apply`: invalid input is answered with 422 and a detail for each problem, and nothing is changed.",
  permission: "config.apply",
  body: closed({
    name: Type.Optional(Type.String({ maxLength: 255, description: "The display name." })),
    allowed_origins: Type.Optional(
      Type.Array(Type.String({ maxLength: 300 }), {
        maxItems: 100,
        description: "Origins that a `return_url` may have.",
      }),
    ),
    embed_origins: Type.Optional(
      orNull(
        Type.Array(Type.String({ maxLength: 300 }), {
          maxItems: 100,
          description: "Origins of pages that may frame the embedded flow; `null`: `allowed_origins`.",
        }),
      ),
    ),
    session_lifetime: Type.Optional(Type.String({ maxLength: 20, description: "A duration such as `7d`." })),
    retention: Type.Optional(Type.String({ maxLength: 20, description: "A duration such as `30d`." })),
    concurrency: number("Runs that may execute at the same time."),
    rate_limit: Type.Optional(
      orNull(closed({ per_second: Type.Integer({ minimum: 1 }), burst: Type.Integer({ minimum: 1 }) })),
    ),
    review_step_up: Type.Optional(
      oneOf(REVIEW_STEP_UPS, "The decisions on reviews that require a second factor."),
    ),
    two_person: Type.Optional(
      Type.Boolean({ description: "Whether changes to where its credentials go need two admins." }),
    ),
    branding: Type.Optional(
      closed({
        name: given("`null`: the account's name."),
        accent_color: given("A colour such as `#3355ff`; `null`: none."),
        support_url: given("https:// or mailto:; `null`: none."),
        logo_url: given("The logo, as a `data:` URI; `null`: none."),
      }),
    ),
  }),
  answer: applied,
  failures: [missing("account")],
});
