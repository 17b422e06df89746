import { Type } from "#lib/type.ts";
import { closed, conflict, count, missing, ofAccount, oneOf, orNull, text, time, whole } from "./fields.ts";
import { operationsOf } from "./operation.ts";

const defineOperation = operationsOf("Reviews");

export const listWrites = defineOperation({
  id: "listWrites",
  method: "get",
  path: "/writes",
  summary: "List uncertain writes, oldest first",
  description: "At most 1,000. Their runs wait for a decision or have ended.",
  permission: "review.read",
  accounts: "own",
  query: closed({
    account: ofAccount,
    blueprint: Type.Optional(
      Type.String({ maxLength: 200, description: "The Blueprint's key; together with `node`." }),
    ),
    node: Type.Optional(Type.String({ maxLength: 200, description: "Only writes of this node." })),
  }),
  answer: whole(
    "Writes",
    closed(
      {
        run_id: text("The run's id."),
        account: text("The account's name."),
        blueprint: text("The Blueprint's key."),
        node: text("The node that sent it."),
        record: count("The record's ordinal."),
        detail: orNull(text("Why the write is uncertain.")),
        sent: orNull(
          text(
            "The beginning of its request, redacted; `null`: not known, or for a role that may not see records.",
          ),
        ),
        started_at: time("When it was sent."),
        run_ended: orNull(oneOf(["failed", "cancelled"], "`null`: the run waits for the decision.")),
      },
      { title: "Write" },
    ),
  ),
});

export const decideWrite = defineOperation({
  id: "decideWrite",
  method: "post",
  path: "/runs/{runId}/writes/{node}/{record}/decide",
  summary: "Decide an uncertain write",
  description:
    "After the last decision, a waiting run continues: writes that happened are not sent again, the others are.",
  permission: "write.decide",
  body: closed({ happened: Type.Boolean({ description: "Whether the target has it." }) }),
  failures: [missing("write that waits for a decision"), conflict("Someone else has just decided it.")],
});

export const listWriteGroups = defineOperation({
  id: "listWriteGroups",
  method: "get",
  path: "/write-groups",
  summary: "List uncertain writes by node, oldest first",
  description: "At most 1,000 nodes. The uncertain writes of one node usually have the same cause.",
  permission: "review.read",
  accounts: "own",
  query: closed({ account: ofAccount }),
  answer: whole(
    "WriteGroups",
    closed(
      {
        account: text("The account's name."),
        blueprint: text("The Blueprint's key."),
        node: text("The node that sent them."),
        writes: count("Number of writes."),
        runs: count("Number of their runs."),
        since: time("When the first of them was sent."),
        detail: orNull(text("The reason that most of them have.")),
        sent: orNull(text("The beginning of the oldest one's request, as in the list of writes.")),
      },
      { title: "WriteGroup" },
    ),
  ),
});

export const decideWriteGroup = defineOperation({
  id: "decideWriteGroup",
  method: "post",
  path: "/write-groups/decide",
  summary: "Decide all uncertain writes of a node",
  description:
    "The same as deciding each write on its own, in all runs: waiting runs continue, and each decision is recorded with its run.",
  permission: "write.decide",
  body: closed({
    account: Type.String({ maxLength: 200, description: "The account's name." }),
    blueprint: Type.String({ maxLength: 200, description: "The Blueprint's key." }),
    node: Type.String({ maxLength: 200, description: "The node's id." }),
    happened: Type.Boolean({ description: "Whether the target has them." }),
  }),
  answer: closed(
    {
      writes: count("Number of writes decided."),
      runs: count("Number of their runs."),
      left: count(
        "Writes that were not decided, because their run is active at this moment or the database failed. Try again.",
      ),
    },
    { title: "DecidedWrites" },
  ),
  failures: [missing("write of the node that waits for a decision")],
});
