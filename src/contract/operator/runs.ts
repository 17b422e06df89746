import { Type } from "#lib/type.ts";
import { RUN_STATUSES } from "#domain/run.ts";
import { graph } from "./config.ts";
import {
  closed,
  conflict,
  count,
  givenTime,
  missing,
  ofAccount,
  oneOf,
  orNull,
  page,
  paging,
  record,
  text,
  time,
} from "./fields.ts";
import { operationsOf } from "./operation.ts";
import { runStep } from "./run-step.ts";

const defineOperation = operationsOf("Runs");

/** A run, as lists show it. */
export const listed = {
  id: text("The run's id (`run_...`)."),
  run_key: text("Its key, a UUID."),
  account: text("The account's name."),
  blueprint: orNull(text("The Blueprint's key; `null`: a test login, which has none.")),
  blueprint_version: orNull(count("The version that it executes.")),
  name: orNull(text("The caller's `run_name`.")),
  status: oneOf(RUN_STATUSES, "Its status."),
  progress_step: text("The step within the status."),
  created_at: time("When it was triggered."),
  started_at: orNull(time("When it started to execute.")),
  ended_at: orNull(time("When it ended.")),
  failure: orNull(text("The kind of failure; `null` unless it failed.")),
  failure_detail: orNull(text("The node, host and reason of the failure, redacted.")),
  tested: orNull(text("The label of the credential that a test login tests; `null`: it is none.")),
  is_sign_in: Type.Boolean({
    description: "Whether it tries a login that an end user has just typed, as the strategy's `verify` asks.",
  }),
  customer: orNull(
    text(
      "Whose it is: the metadata `customer`, `customer_name` or `customer_id`, for a test login that of its session or of the last run with its credential.",
    ),
  ),
  records_with_errors: orNull(
    count(
      "Records with errors that a completed run has passed on; `null`: not known, or somebody reviewed them.",
    ),
  ),
  metadata: Type.Record(Type.String(), Type.String(), { description: "The caller's metadata." }),
  purged_at: orNull(time("When its data was purged.")),
};

export const listRuns = defineOperation({
  id: "listRuns",
  method: "get",
  path: "/runs",
  summary: "List runs, newest first",
  permission: "run.read",
  accounts: "own",
  query: closed({
    ...paging,
    id: Type.Optional(Type.String({ maxLength: 100, description: "One run, by `run_...` or `run_key`." })),
    status: Type.Optional(oneOf(RUN_STATUSES, "The status of the runs.")),
    progress_step: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description: "The step within the status, such as `awaiting_review`, or a milestone.",
      }),
    ),
    account: ofAccount,
    blueprint: Type.Optional(Type.String({ maxLength: 200, description: "The Blueprint's key." })),
    run_name: Type.Optional(
      Type.String({ minLength: 1, maxLength: 255, description: "A prefix of the run's name." }),
    ),
    q: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 255,
        description:
          "Part of the run's name or of a metadata value, in any case: the newest 500 such runs. A new run is found after two seconds at most.",
      }),
    ),
    credential: Type.Optional(
      Type.String({
        maxLength: 100,
        description: "The id of a credential (`cred_...`): the newest 500 runs with it.",
      }),
    ),
    failure: Type.Optional(Type.String({ maxLength: 100, description: "The kind of failure." })),
    error: Type.Optional(
      Type.String({
        maxLength: 300,
        description: "Why it failed, with `#` for numbers, as in a group of failures.",
      }),
    ),
    metadata: Type.Optional(
      Type.String({ minLength: 2, maxLength: 1_000, description: "`name=value`: runs with this metadata." }),
    ),
    since: Type.Optional(givenTime("Triggered at this time or later.")),
    until: Type.Optional(givenTime("Triggered before this time.")),
  }),
  answer: page("Runs", closed(listed, { title: "Run" })),
});

export const readRun = defineOperation({
  id: "readRun",
  method: "get",
  path: "/runs/{runId}",
  summary: "Read a run",
  description: "Its steps, and the names and sizes of its inputs and outputs, never their content.",
  permission: "run.read",
  answer: closed(
    {
      ...listed,
      failed_node: orNull(text("The node that failed; it may not be among `steps`.")),
      failed_step: orNull(
        closed(
          {
            document: oneOf(["blueprint", "strategy"], "The document that has the step of a browser."),
            name: text("The Blueprint's key, or the strategy's id."),
            version: count("The document's version."),
            step: text("The step's place in its node or login, such as `steps[1].steps[0]`."),
            line: count("Its line in the text of this version, from 1."),
            column: count("Its column, from 1."),
          },
          { title: "FailedStep" },
        ),
      ),
      api_key_id: orNull(
        text("The API key that triggered it; `null`: an operator, a schedule or the command line did."),
      ),
      started_by: orNull(text("The operator who started it by hand.")),
      schedule: orNull(text("The key of the schedule that began it; its id if that was deleted.")),
      again_of: orNull(text("The run that it reruns.")),
      reruns: Type.Array(text("A rerun of it, newest first, at most twenty.")),
      purge_reason: orNull(
        oneOf(["retention", "operator"], "Why it was purged: its retention ended, or an operator did it."),
      ),
      waits_for: orNull(text("The credential that it waits for.")),
      throttle_wait: orNull(
        text("The node for whose `throttle` it queues, or the host (an origin) of the account's."),
      ),
      blueprint_wait: orNull(
        closed({
          limit: count("How many of them may be executed at once."),
          has_key: Type.Boolean({ description: "Whether only those with the same `concurrency.key` count." }),
        }),
      ),
      browser_wait: orNull(
        oneOf(
          ["missing", "taken"],
          "Why it waits for a browser: no worker has one (`missing`), or other runs have all of them (`taken`).",
        ),
      ),
      parked_at: orNull(time("When it began to wait for a decision.")),
      begins_at: orNull(time("When it may begin at the earliest, if its caller asked for a delay.")),
      expires_at: orNull(time("When it fails unless it has begun, if its caller asked for that.")),
      priority: Type.Integer({
        description: "Its priority among the waiting runs of its account; usually 0.",
      }),
      asks_again_at: orNull(
        time("When the next poll of a node with `until` is due, if the run waits for it."),
      ),
      deadline_at: orNull(time("When it times out; `null` also while its timeout is paused.")),
      claimed_at: orNull(time("When a worker first took it; `null` also if that is not known.")),
      retries: count("Requests that were retried."),
      lost_leases: count("Workers that it lost."),
      ignored_keys: Type.Array(
        closed({
          name: text("A key of the trigger that the Blueprint does not define."),
          did_you_mean: orNull(text("The most similar key that it defines.")),
        }),
      ),
      steps: Type.Array(runStep),
      nodes: Type.Array(
        closed(
          {
            node: text("The node's id."),
            status: oneOf(
              ["done", "skipped", "stopped"],
              "Its state; `skipped`: its `when` is not true; `stopped`: it ended early, because its reader needed no more records or the run ended.",
            ),
            started_at: time("When it began to give its output."),
            ended_at: time("When it ended."),
            records_total: orNull(count("Records of its output.")),
            records_valid: orNull(count("Records without errors.")),
          },
          { title: "RunNode" },
        ),
        {
          description:
            "Nodes that are not among `steps` because they send nothing: only their counts and times are recorded, when the next step or the run ends.",
        },
      ),
      inputs: Type.Array(
        closed({
          ref_key: text("The input's key."),
          kind: text("text, json or file."),
          filename: orNull(text("The file's name.")),
          size_bytes: count("Its size."),
        }),
      ),
      credentials: Type.Array(
        closed({
          slot: text("The slot's name in the Blueprint."),
          credential_id: text("`cred_...`; it may have been deleted."),
          strategy: text("`strat_...`"),
          strategy_version: count("The strategy's version."),
          name: orNull(text("The caller's label.")),
          login_rejections: count("Rejected logins in a row."),
          locked_until: orNull(time("When it unlocks; until then no login is attempted.")),
          is_deleted: Type.Boolean({ description: "Whether it was deleted." }),
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
          node: text("The node that requested it."),
          status: text("open, approved, …"),
          created_at: time("When it was requested."),
          decided_at: orNull(time("When it was decided.")),
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
  summary: "Cancel a run",
  permission: "run.cancel",
  failures: [missing("run"), conflict("The run has ended already.")],
});

export const purgeRun = defineOperation({
  id: "purgeRun",
  method: "post",
  path: "/runs/{runId}/purge",
  summary: "Purge a run's data now",
  description: "Deletes inputs, journal, reviews and results before the retention ends. The run's row stays.",
  permission: "run.purge",
  failures: [missing("run"), conflict("The run has not ended yet, or its data is already purged.")],
});

export const readRunAgain = defineOperation({
  id: "readRunAgain",
  method: "get",
  path: "/runs/{runId}/run-again",
  summary: "Preview a rerun",
  permission: "run.trigger",
  answer: closed(
    {
      blueprint_version: orNull(count("The current version, which would be executed.")),
      previous_version: orNull(count("The version that the run executed.")),
      writes: Type.Array(text("A node of the current version that writes to another system.")),
      ignored_keys: Type.Array(text("An input or metadata item that the current version does not define.")),
      obstacle: orNull(text("Why it can't be rerun; `null`: it can.")),
    },
    { title: "RunAgain" },
  ),
  failures: [missing("run")],
});

export const runAgain = defineOperation({
  id: "runAgain",
  method: "post",
  path: "/runs/{runId}/run-again",
  summary: "Rerun a run",
  description:
    "Starts a new run with the same inputs, credentials, name and metadata, on the Blueprint's current version. It writes again, so a Blueprint that writes requires a second factor given within the last thirty minutes.",
  permission: "run.trigger",
  body: closed({
    blueprint_version: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 2_147_483_647,
        description: "The expected current version; 409 if it is another one.",
      }),
    ),
    may_write: Type.Optional(
      Type.Boolean({ description: "Must be true if the current version writes to other systems." }),
    ),
    idempotency_key: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 100,
        description:
          "An idempotency key for this rerun: a second request with the same key returns the first one's run.",
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
  failures: [
    missing("run"),
    conflict("Its data was purged, a credential was deleted, or the version changed."),
  ],
});

export const readRunGraph = defineOperation({
  id: "readRunGraph",
  method: "get",
  path: "/runs/{runId}/graph",
  summary: "Read the graph of a run",
  description: "The graph of the Blueprint version that it executes.",
  permission: "run.read",
  answer: graph,
  failures: [missing("run")],
});

export const listResultRecords = defineOperation({
  id: "listResultRecords",
  method: "get",
  path: "/runs/{runId}/results/{resultKey}/records",
  summary: "List records of a result, starting at any ordinal",
  permission: "run.results",
  query: closed({
    from: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 1_000_000_000, description: "The first record's ordinal." }),
    ),
    limit: paging.limit,
    invalid: Type.Optional(
      Type.Boolean({ description: "Only records with errors; `from` then counts these alone." }),
    ),
  }),
  answer: closed(
    {
      total_records: count("Records of the whole result."),
      invalid_records: orNull(count("With `invalid`: how many of them have errors.")),
      items: Type.Array(record("ResultRecord")),
    },
    { title: "ResultRecords" },
  ),
  failures: [missing("run or result"), conflict("The run is not completed, or its data was purged.")],
});

export const downloadResult = defineOperation({
  id: "downloadResult",
  method: "get",
  path: "/runs/{runId}/results/{resultKey}/download",
  summary: "Download a result as a file",
  description:
    "Streamed. `csv` and `xlsx` have a column for each key and two for validity and errors; `ndjson` has the records unchanged.",
  permission: "run.results",
  query: closed({
    format: oneOf(["ndjson", "csv", "xlsx"], "The file's format."),
    bom: Type.Optional(
      Type.Boolean({ description: "csv: begin with a byte order mark, so that Excel reads it as UTF-8." }),
    ),
  }),
  streams: "application/octet-stream",
  failures: [missing("run or result"), conflict("The run is not completed, or its data was purged.")],
});

export const readPicture = defineOperation({
  id: "readPicture",
  method: "get",
  path: "/runs/{runId}/nodes/{node}/pictures/{index}",
  summary: "Read the picture of a page of a browser",
  description:
    "What the page showed when the evidence with this index was taken, as a PNG. Fields, frames and everything with a secret are covered.",
  permission: "run.results",
  streams: "image/png",
  failures: [missing("run or picture")],
});
