import { Type } from "#lib/type.ts";
import { closed, count, givenTime, ofAccount, oneOf, orNull, text, time, whole } from "./fields.ts";
import { operationsOf } from "./operation.ts";
import { listed } from "./runs.ts";

const defineOperation = operationsOf("Runs");

export const listFailures = defineOperation({
  id: "listFailures",
  method: "get",
  path: "/failures",
  summary: "List why runs failed, the most frequent reason first",
  description: "Of the newest 2,000 failures. Reasons that differ only in numbers are one group.",
  permission: "run.read",
  accounts: "own",
  query: closed({
    account: ofAccount,
    blueprint: Type.Optional(Type.String({ maxLength: 200, description: "The Blueprint's key." })),
    since: Type.Optional(givenTime("Triggered at this time or later.")),
  }),
  answer: whole(
    "Failures",
    closed(
      {
        account: text("The account's name."),
        blueprint: orNull(text("The Blueprint's key; `null`: a test login.")),
        failure: text("The kind of failure."),
        error: text("The reason, with `#` for numbers."),
        runs: count("Number of runs."),
        last_run_id: text("The last of these runs."),
        last_detail: orNull(text("The reason of the last one, redacted.")),
        last_at: time("When the last one was triggered."),
        customers: Type.Array(text("Whose run is among the newest 20 of them.")),
      },
      { title: "FailureGroup" },
    ),
  ),
});

export const search = defineOperation({
  id: "search",
  method: "get",
  path: "/search",
  summary: "Search runs, credentials, sessions, documents and accounts",
  description:
    "By part of a name, of a metadata value or of an id, in any case; at most six of each kind, only what the role may see.",
  permission: "run.read",
  accounts: "own",
  query: closed({
    q: Type.String({ minLength: 1, maxLength: 255, description: "The text." }),
  }),
  answer: closed(
    {
      runs: Type.Array(closed(listed, { title: "Run" })),
      others: Type.Array(
        closed(
          {
            kind: oneOf(["credential", "session", "blueprint", "strategy", "account"], "Its kind."),
            id: text("Its id; of a Blueprint its key, of an account its name in documents."),
            account: text("The account's name."),
            name: orNull(text("Its label.")),
            strategy: orNull(text("The strategy of a credential or session.")),
          },
          { title: "FoundThing" },
        ),
      ),
    },
    { title: "SearchResults" },
  ),
});
