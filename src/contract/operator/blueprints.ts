import { Type } from "#lib/type.ts";
import { limits } from "#domain/limits.ts";
import { RUN_STATUSES } from "#domain/run.ts";
import { absent, graph, inForce, listed, versionOperations } from "./config.ts";
import { closed, count, oneOf, orNull, page, text, time } from "./fields.ts";
import { operationsOf } from "./operation.ts";

const TAG = "Blueprints";
const defineOperation = operationsOf(TAG);
const ONE = "/accounts/{account}/blueprints/{blueprintKey}";

const seen = {
  key: text("The Blueprint's key."),
  name: text("Its name."),
  ...inForce,
  last_run: orNull(
    closed({
      id: text("The last run's id."),
      status: oneOf(RUN_STATUSES, "Its status."),
      progress_step: text("The step within the status."),
      created_at: time("When it was triggered."),
    }),
  ),
  recent_runs: closed({
    completed: count("Those of its newest 20 runs that completed."),
    failed: count("Those of its newest 20 runs that failed."),
  }),
};

export const listBlueprints = defineOperation({
  id: "listBlueprints",
  method: "get",
  path: "/blueprints",
  summary: "List Blueprints, by account and key",
  permission: "config.read",
  accounts: "own",
  query: listed,
  answer: page("Blueprints", closed(seen, { title: "Blueprint" })),
});

export const readBlueprint = defineOperation({
  id: "readBlueprint",
  method: "get",
  path: ONE,
  summary: "Read a Blueprint",
  description: "The current version: its inputs, its graph and its document.",
  permission: "config.read",
  answer: closed(
    {
      ...seen,
      hosts: Type.Array(text("An origin to which it may send requests without a credential.")),
      timeout_ms: count("How long a run may take."),
      retention_ms: orNull(count("How long its data is kept; `null`: the account's retention.")),
      credentials: Type.Array(
        closed({ slot: text("The slot's name in the Blueprint."), strategy: text("`strat_...`") }),
      ),
      metadata: Type.Array(
        closed({
          name: text("Its key in a trigger."),
          label: orNull(text("The display name.")),
          is_required: Type.Boolean({ description: "Whether a trigger must have it." }),
        }),
      ),
      inputs: Type.Array(
        closed({
          ref_key: text("Its key in a trigger."),
          name: orNull(text("The display name.")),
          accepts: oneOf(["text", "json", "file", "any"], "The kind of value that it takes."),
          is_required: Type.Boolean({ description: "Whether a trigger must have it." }),
          schema: Type.Unknown({ description: "The JSON Schema of its value; `null`: none." }),
        }),
      ),
      graph,
      yaml: text("The document."),
    },
    { title: "BlueprintDetail" },
  ),
  failures: absent("Blueprint"),
});

const health = {
  runs: count("Runs that were triggered."),
  completed: count("Those that completed."),
  failed: count("Those that failed."),
  cancelled: count("Those that were cancelled."),
  p50_ms: orNull(count("The median duration of completed runs, from start to end; `null`: none completed.")),
  p95_ms: orNull(count("The 95th percentile of these durations.")),
  records: count("Records of the results of completed runs."),
};

export const readBlueprintHealth = defineOperation({
  id: "readBlueprintHealth",
  method: "get",
  path: `${ONE}/health`,
  summary: "Read how the runs of a Blueprint went",
  description: "The newest 5,000 runs of the last days, in total and by day in UTC, newest first.",
  permission: "config.read",
  query: closed({
    days: Type.Optional(Type.Integer({ minimum: 1, maximum: 90, description: "How many days; default 30." })),
  }),
  answer: closed(
    {
      ...health,
      since: orNull(time("When there were more runs: the earliest that is counted; `null`: all are.")),
      by_day: Type.Array(closed({ at: time("The start of the day."), ...health })),
    },
    { title: "BlueprintHealth" },
  ),
  failures: absent("Blueprint"),
});

export const {
  list: listBlueprintVersions,
  read: readBlueprintVersion,
  publish: publishBlueprintVersion,
  retire: retireBlueprint,
  restore: restoreBlueprint,
} = versionOperations(
  { tag: TAG, path: ONE, name: "Blueprint", noun: "Blueprint" },
  {
    publish:
      "Publishes it as a new version, checked as by `apply`: documents that it refers to may no longer exist.",
    retire: "New triggers get 404; runs in progress continue.",
  },
);

const texts = (description: string) => Type.Record(Type.String(), Type.String(), { description });

export const startRun = defineOperation({
  id: "startRun",
  method: "post",
  path: `${ONE}/runs`,
  summary: "Try a Blueprint",
  description:
    "Starts a run as a trigger does, recorded as started by this operator. Its writes are real, so a Blueprint that writes requires a second factor given within the last thirty minutes. The errors are those of a trigger.",
  permission: "run.try",
  body: closed({
    run_name: Type.Optional(Type.String({ maxLength: 255, description: "A display name for the run." })),
    credential_ids: Type.Optional(
      Type.Array(Type.String({ maxLength: 100 }), {
        maxItems: 50,
        description: "`cred_...` of the account.",
      }),
    ),
    metadata: Type.Optional(texts("Values by name.")),
    inputs: Type.Optional(texts("Values by key, as text; JSON for an input that takes JSON.")),
  }),
  bodyBytesMax: limits.triggerJsonBytesMax,
  status: 201,
  answer: closed({ id: text("The run's id."), run_key: text("Its key, a UUID.") }, { title: "StartedRun" }),
  failures: absent("Blueprint"),
});
