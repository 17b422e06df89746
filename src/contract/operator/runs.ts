import Type from "typebox";
import { RUN_STATUSES } from "#domain/run.ts";
import { graph } from "./config.ts";
import {
  closed,
  conflict,
  count,
  givenTime,
  missing,
  oneOf,
  orNull,
  page,
  paging,
  text,
  time,
} from "./fields.ts";
import { defineOperation } from "./operation.ts";

const TAG = "Runs";

const listed = {
  id: text("The run's id (`run_...`)."),
  run_key: text("Its key, a UUID."),
  account: text("The account's name."),
  blueprint: orNull(text("The Blueprint's key; `null`: a test login, which has none.")),
  blueprint_version: orNull(count("The version that it executes.")),
  name: orNull(text("The caller's `run_name`.")),
  status: oneOf(RUN_STATUSES, "Where it stands."),
  progress_step: text("The finer step."),
  created_at: time("When it was triggered."),
  started_at: orNull(time("When it began to run.")),
  ended_at: orNull(time("When it ended.")),
  failure: orNull(text("The kind of failure; `null` unless it failed.")),
  purged_at: orNull(time("When its data was taken away.")),
};

export const listRuns = defineOperation({
  id: "listRuns",
  method: "get",
  path: "/runs",
  tag: TAG,
  summary: "List runs, newest first",
  permission: "run.read",
  query: closed({
    ...paging,
    id: Type.Optional(Type.String({ maxLength: 100, description: "One run, by `run_...` or `run_key`." })),
    status: Type.Optional(oneOf(RUN_STATUSES, "Where runs stand.")),
    account: Type.Optional(Type.String({ maxLength: 200, description: "The account's name." })),
    blueprint: Type.Optional(Type.String({ maxLength: 200, description: "The Blueprint's key." })),
    run_name: Type.Optional(
      Type.String({ minLength: 1, maxLength: 255, description: "How the run's name begins." }),
    ),
    metadata: Type.Optional(
      Type.String({ minLength: 2, maxLength: 1_000, description: "`name=value`: runs with this metadata." }),
    ),
    since: Type.Optional(givenTime("Triggered at this time or later.")),
    until: Type.Optional(givenTime("Triggered before this time.")),
  }),
  status: 200,
  answer: page("Runs", closed(listed, { title: "Run" })),
});

const step = closed(
  {
    node: text("The node's id."),
    status: oneOf(["started", "done", "failed"], "How far it is."),
    attempts: count("How often it was tried."),
    started_at: time("When it began."),
    ended_at: orNull(time("When it ended.")),
    duration_ms: orNull(count("How long it took.")),
    output: orNull(text("What it gave: records, text, json, file or absent.")),
    records_total: orNull(count("Records that it gave.")),
    records_valid: orNull(count("Those without errors.")),
    records_usual: orNull(
      count("The median of what the node gave in the last completed runs before; `null`: there are none."),
    ),
    turns_begun: orNull(count("Of a loop: the records that it has come to.")),
    turns_total: orNull(count("Of a loop: the records that it goes through, where that is known.")),
    error: orNull(text("Why it failed, redacted.")),
    answer: orNull(
      closed(
        {
          status: count("Its status."),
          address: text("Where it came from, after redirects; of a query the names alone."),
          leads_to: orNull(text("Where a redirect that was not followed leads.")),
          content_type: orNull(text("Its content type.")),
          title: orNull(text("Of an HTML page.")),
          begins: text("Its first 500 characters; of an HTML page those that people read."),
        },
        { title: "ShownAnswer" },
      ),
    ),
    log: Type.Array(Type.Unknown(), { description: "What it wrote down, redacted." }),
  },
  { title: "RunStep" },
);

export const readRun = defineOperation({
  id: "readRun",
  method: "get",
  path: "/runs/{runId}",
  tag: TAG,
  summary: "Read a run",
  description: "Its steps, and the names and sizes of what it got and gave; never the content.",
  permission: "run.read",
  status: 200,
  answer: closed(
    {
      ...listed,
      failure_detail: orNull(text("Node, host and reason, redacted.")),
      api_key_id: orNull(
        text("The API key that triggered it; `null`: an operator did, or the command line."),
      ),
      started_by: orNull(text("The operator who started it by hand.")),
      again_of: orNull(text("The run that it repeats.")),
      reruns: Type.Array(text("A run that repeats it; the newest first, twenty at most.")),
      purge_reason: orNull(
        oneOf(["retention", "operator"], "Why: its time was over, or an operator did it."),
      ),
      waits_for: orNull(text("The credential that it waits for.")),
      parked_at: orNull(time("When it began to wait for a person.")),
      asks_again_at: orNull(
        time("When a node with `until` asks its target again, of a run that waits for that."),
      ),
      deadline_at: orNull(time("When its timeout is over.")),
      retries: count("Requests that were sent again."),
      lost_leases: count("Workers that it has lost."),
      metadata: Type.Record(Type.String(), Type.String(), { description: "As the caller gave it." }),
      ignored_keys: Type.Array(
        closed({
          name: text("A key of the trigger that the Blueprint does not know."),
          did_you_mean: orNull(text("The nearest one that it knows.")),
        }),
      ),
      steps: Type.Array(step),
      inputs: Type.Array(
        closed({
          ref_key: text("The input's key."),
          kind: text("text, json or file."),
          filename: orNull(text("Of a file.")),
          size_bytes: count("How large it is."),
        }),
      ),
      credentials: Type.Array(
        closed({
          slot: text("The Blueprint's name for it."),
          credential_id: text("`cred_...`; it may be deleted."),
          strategy: text("`strat_...`"),
          strategy_version: count("The strategy's version."),
        }),
      ),
      results: Type.Array(
        closed({
          key: text("The output's key."),
          total_records: count("Its records."),
          json_bytes: count("Its size as JSON."),
        }),
      ),
      reviews: Type.Array(
        closed({
          id: text("`rev_...`"),
          node: text("The node that asks."),
          status: text("open, approved, …"),
        }),
      ),
    },
    { title: "RunDetail" },
  ),
  failures: [missing("run")],
});

export const cancelRun = defineOperation({
  id: "cancelRun",
  method: "post",
  path: "/runs/{runId}/cancel",
  tag: TAG,
  summary: "Cancel a run",
  permission: "run.cancel",
  status: 204,
  failures: [missing("run"), conflict("The run has ended already.")],
});

export const purgeRun = defineOperation({
  id: "purgeRun",
  method: "post",
  path: "/runs/{runId}/purge",
  tag: TAG,
  summary: "Take a run's data away now",
  description: "Inputs, journal, reviews and results, before the retention is over. The run's row stays.",
  permission: "run.purge",
  status: 204,
  failures: [missing("run"), conflict("The run has not ended yet, or is purged already.")],
});

export const readRunAgain = defineOperation({
  id: "readRunAgain",
  method: "get",
  path: "/runs/{runId}/run-again",
  tag: TAG,
  summary: "Read what it would be to run it again",
  permission: "run.trigger",
  status: 200,
  answer: closed(
    {
      blueprint_version: orNull(count("The version in force, which would be executed.")),
      previous_version: orNull(count("The version that the run executed.")),
      writes: Type.Array(text("A node of the version in force that writes to another system.")),
      ignored_keys: Type.Array(text("An input or a metadata item that the version in force does not know.")),
      obstacle: orNull(text("Why it can't be run again; `null`: nothing is in the way.")),
    },
    { title: "RunAgain" },
  ),
  failures: [missing("run")],
});

export const runAgain = defineOperation({
  id: "runAgain",
  method: "post",
  path: "/runs/{runId}/run-again",
  tag: TAG,
  summary: "Run it again",
  description:
    "A new run with the same inputs, credentials, name and metadata, of the Blueprint's version in force. Its writes are made once more, so a Blueprint that writes wants a second factor given within the last thirty minutes.",
  permission: "run.trigger",
  body: closed({
    blueprint_version: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 2_147_483_647,
        description: "The version that somebody expects to be in force; a 409 when it is another.",
      }),
    ),
    may_write: Type.Optional(
      Type.Boolean({ description: "Must be true when the version in force writes to other systems." }),
    ),
    idempotency_key: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 100,
        description:
          "The same for one decision to run again: a second request with it gives the first one's run.",
      }),
    ),
  }),
  status: 201,
  answer: closed(
    {
      id: text("The new run's id."),
      run_key: text("Its key, a UUID."),
      blueprint_version: count("The version that it executes."),
    },
    { title: "RepeatedRun" },
  ),
  failures: [missing("run"), conflict("Its data was purged, a credential is gone, or the version changed.")],
});

export const readRunGraph = defineOperation({
  id: "readRunGraph",
  method: "get",
  path: "/runs/{runId}/graph",
  tag: TAG,
  summary: "Read how the nodes of a run are connected",
  description: "Of the Blueprint's version that it executes.",
  permission: "run.read",
  status: 200,
  answer: graph,
  failures: [missing("run")],
});

export const listResultRecords = defineOperation({
  id: "listResultRecords",
  method: "get",
  path: "/runs/{runId}/results/{resultKey}/records",
  tag: TAG,
  summary: "List records of a result, from any place on",
  permission: "run.results",
  query: closed({
    from: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 1_000_000_000, description: "The first record's place." }),
    ),
    limit: paging.limit,
  }),
  status: 200,
  answer: closed(
    {
      total_records: count("Of the whole result."),
      items: Type.Array(
        closed(
          {
            ordinal: count("Its place."),
            data: Type.Unknown({ description: "The record." }),
            errors: Type.Array(Type.Unknown(), { description: "What is wrong with it." }),
            is_valid: Type.Boolean({ description: "Whether nothing is." }),
          },
          { title: "ResultRecord" },
        ),
      ),
    },
    { title: "ResultRecords" },
  ),
  failures: [missing("run or result"), conflict("The run is not completed, or its data was purged.")],
});

export const downloadResult = defineOperation({
  id: "downloadResult",
  method: "get",
  path: "/runs/{runId}/results/{resultKey}/download",
  tag: TAG,
  summary: "Download a result as a file",
  description:
    "Streamed. `csv` and `xlsx` have a column a key, and two for validity and errors; `ndjson` has the records as they are.",
  permission: "run.results",
  query: closed({
    format: oneOf(["ndjson", "csv", "xlsx"], "Form of the file."),
    bom: Type.Optional(Type.Boolean({ description: "csv: begin with the mark by which Excel knows UTF-8." })),
  }),
  status: 200,
  streams: "application/octet-stream",
  failures: [missing("run or result"), conflict("The run is not completed, or its data was purged.")],
});
