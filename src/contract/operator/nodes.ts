import { Type } from "#lib/type.ts";
import { closed, count, missing, orNull, paging, record, text, time } from "./fields.ts";
import { operationsOf } from "./operation.ts";

const defineOperation = operationsOf("Runs");

export const compareRun = defineOperation({
  id: "compareRun",
  method: "get",
  path: "/runs/{runId}/comparison",
  summary: "Compare a run with the last good one",
  description:
    "The number of records of each node, in this run and in the last completed run of the Blueprint that was triggered before it.",
  permission: "run.read",
  answer: closed(
    {
      with: orNull(
        closed({
          id: text("The other run's id."),
          name: orNull(text("Its name.")),
          created_at: time("When it was triggered."),
          blueprint_version: orNull(count("The version that it executed.")),
        }),
      ),
      nodes: Type.Array(
        closed({
          node: text("The node's id."),
          records: orNull(count("Records of its output in this run; `null`: not known.")),
          records_before: orNull(count("The same in the other run.")),
          errors: orNull(count("Records with errors in this run.")),
          errors_before: orNull(count("The same in the other run.")),
        }),
      ),
    },
    { title: "RunComparison" },
  ),
  failures: [missing("run")],
});

export const readNodeSample = defineOperation({
  id: "readNodeSample",
  method: "get",
  path: "/runs/{runId}/nodes/{node}/records",
  summary: "Read the first records of a node",
  description: "Of nodes that send requests, of reviews and of outputs; those of other nodes are not stored.",
  permission: "run.results",
  query: closed({
    limit: paging.limit,
    invalid: Type.Optional(Type.Boolean({ description: "Only records with errors." })),
  }),
  answer: closed(
    {
      is_stored: Type.Boolean({ description: "Whether the node's records are stored." }),
      items: Type.Array(record("NodeRecord")),
    },
    { title: "NodeSample" },
  ),
  failures: [missing("run")],
});

export const readRunInput = defineOperation({
  id: "readRunInput",
  method: "get",
  path: "/runs/{runId}/inputs/{refKey}",
  summary: "Read the beginning of an input",
  permission: "run.results",
  answer: closed(
    {
      kind: text("text, json or file."),
      filename: orNull(text("The file's name.")),
      content_type: orNull(text("The file's type.")),
      size_bytes: count("Its size."),
      text: orNull(text("Its first 64 KB; `null`: it is not text.")),
      is_cut: Type.Boolean({ description: "Whether it is longer." }),
    },
    { title: "ShownInput" },
  ),
  failures: [missing("run or input")],
});
