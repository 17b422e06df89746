import Type from "typebox";
import { limits } from "#domain/limits.ts";
import { RUN_STATUSES } from "#domain/run.ts";
import { absent, againstQuery, applied, graph, inForce, listed, versionAnswer, versions } from "./config.ts";
import { closed, count, oneOf, orNull, page, paging, text, time } from "./fields.ts";
import { defineOperation } from "./operation.ts";

const TAG = "Blueprints";
const ONE = "/accounts/{account}/blueprints/{blueprintKey}";

const seen = {
  key: text("The Blueprint's key."),
  name: text("Its name."),
  ...inForce,
  last_run: orNull(
    closed({
      id: text("The last run's id."),
      status: oneOf(RUN_STATUSES, "Its status."),
      created_at: time("When it was triggered."),
    }),
  ),
};

export const listBlueprints = defineOperation({
  id: "listBlueprints",
  method: "get",
  path: "/blueprints",
  tag: TAG,
  summary: "List Blueprints, by account and key",
  permission: "config.read",
  query: listed,
  status: 200,
  answer: page("Blueprints", closed(seen, { title: "Blueprint" })),
});

export const readBlueprint = defineOperation({
  id: "readBlueprint",
  method: "get",
  path: ONE,
  tag: TAG,
  summary: "Read a Blueprint",
  description: "The current version: its inputs, its graph and its document.",
  permission: "config.read",
  status: 200,
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
        }),
      ),
      graph,
      yaml: text("The document."),
    },
    { title: "BlueprintDetail" },
  ),
  failures: absent("Blueprint"),
});

export const listBlueprintVersions = defineOperation({
  id: "listBlueprintVersions",
  method: "get",
  path: `${ONE}/versions`,
  tag: TAG,
  summary: "List a Blueprint's versions, newest first",
  permission: "config.read",
  query: closed({ ...paging }),
  status: 200,
  answer: versions,
  failures: absent("Blueprint"),
});

export const readBlueprintVersion = defineOperation({
  id: "readBlueprintVersion",
  method: "get",
  path: `${ONE}/versions/{version}`,
  tag: TAG,
  summary: "Read a version and its differences from another one",
  permission: "config.read",
  query: againstQuery,
  status: 200,
  answer: versionAnswer,
  failures: absent("Blueprint"),
});

export const publishBlueprintVersion = defineOperation({
  id: "publishBlueprintVersion",
  method: "post",
  path: `${ONE}/versions/{version}/publish`,
  tag: TAG,
  summary: "Publish an earlier version's document again",
  description:
    "Publishes it as a new version, checked as by `apply`: documents that it refers to may no longer exist.",
  permission: "config.apply",
  status: 200,
  answer: applied,
  failures: absent("Blueprint"),
});

export const retireBlueprint = defineOperation({
  id: "retireBlueprint",
  method: "post",
  path: `${ONE}/retire`,
  tag: TAG,
  summary: "Retire a Blueprint",
  description: "New triggers get 404; runs in progress continue.",
  permission: "config.apply",
  status: 200,
  answer: applied,
  failures: absent("Blueprint"),
});

export const restoreBlueprint = defineOperation({
  id: "restoreBlueprint",
  method: "post",
  path: `${ONE}/restore`,
  tag: TAG,
  summary: "Restore a retired Blueprint",
  permission: "config.apply",
  status: 200,
  answer: applied,
  failures: absent("Blueprint"),
});

const texts = (description: string) => Type.Record(Type.String(), Type.String(), { description });

export const startRun = defineOperation({
  id: "startRun",
  method: "post",
  path: `${ONE}/runs`,
  tag: TAG,
  summary: "Try a Blueprint",
  description:
    "Starts a run as a trigger does, recorded as started by this operator. Its writes are real, so a Blueprint that writes requires a second factor given within the last thirty minutes. The errors are those of a trigger.",
  permission: "run.trigger",
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
