import Type from "typebox";
import { applied } from "./config.ts";
import { closed, count, missing, orNull, text, time, whole } from "./fields.ts";
import { defineOperation } from "./operation.ts";

const TAG = "Accounts";

const account = {
  account: text("The account's name in its document."),
  id: text("Its id (`acct_...`), which other systems may know."),
  name: text("For people."),
  created_at: time("When it was made."),
  updated_at: time("When its document was last applied."),
};

export const listAccounts = defineOperation({
  id: "listAccounts",
  method: "get",
  path: "/accounts",
  tag: TAG,
  summary: "List accounts, by name",
  permission: "config.read",
  status: 200,
  answer: whole("Accounts", closed(account, { title: "Account" })),
});

const branding = {
  name: orNull(text("What end users read; `null`: the account's name.")),
  accent_color: orNull(text("The colour of buttons and links, like `#3355ff`.")),
  support_url: orNull(text("Where end users get help: https:// or mailto:.")),
  logo_url: orNull(text("A picture, as a `data:` URI.")),
};

export const readAccount = defineOperation({
  id: "readAccount",
  method: "get",
  path: "/accounts/{account}",
  tag: TAG,
  summary: "Read an account",
  permission: "config.read",
  status: 200,
  answer: closed(
    {
      ...account,
      allowed_origins: Type.Array(text("An origin that a `return_url` may have.")),
      session_lifetime_ms: count("How long a hosted form can be opened."),
      retention_ms: count("How long the data of ended runs is kept."),
      concurrency: count("Runs executing at once."),
      rate_limit: orNull(
        closed({ per_second: count("Requests a second of each API key."), burst: count("At once.") }),
      ),
      two_person: Type.Boolean({
        description: "Whether changes that decide where its credentials go need two admins.",
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
  tag: TAG,
  summary: "Change an account",
  description:
    "A key that is left out stays as it is. The document is checked as by `apply`: a mistake is 422 with a detail for each, and nothing is changed.",
  permission: "config.apply",
  body: closed({
    name: Type.Optional(Type.String({ maxLength: 255, description: "For people." })),
    allowed_origins: Type.Optional(
      Type.Array(Type.String({ maxLength: 300 }), {
        maxItems: 100,
        description: "Origins that a `return_url` may have.",
      }),
    ),
    session_lifetime: Type.Optional(Type.String({ maxLength: 20, description: "Like `7d`." })),
    retention: Type.Optional(Type.String({ maxLength: 20, description: "Like `30d`." })),
    concurrency: number("Runs executing at once."),
    rate_limit: Type.Optional(
      orNull(closed({ per_second: Type.Integer({ minimum: 1 }), burst: Type.Integer({ minimum: 1 }) })),
    ),
    branding: Type.Optional(
      closed({
        name: given("`null`: the account's name."),
        accent_color: given("Like `#3355ff`; `null`: none."),
        support_url: given("https:// or mailto:; `null`: none."),
        logo_url: given("A picture, as a `data:` URI; `null`: none."),
      }),
    ),
  }),
  status: 200,
  answer: applied,
  failures: [missing("account")],
});
