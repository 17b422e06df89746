/** One tool: an operation of the operator API, and what an assistant must know of it. */
export interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** The id of its operation. Its arguments are the operation's own. */
  readonly operation: string;
  /**
   * `reads`: it changes nothing. `records`: the same, and it shows records of end users, so it needs `--records`. `writes`: it needs
   * `--allow-writes`.
   */
  readonly kind: "reads" | "records" | "writes";
  /** Whether requests to other systems may follow. */
  readonly reachesOut?: true;
  /** Whether a second call has no further effect. Those that read have none at all. */
  readonly isIdempotent?: true;
  /** Parts of the answer that are left out without `--records`: what callers named, and what targets answered. */
  readonly omits?: readonly string[];
}

const OF_RUN = ["name", "customer", "metadata", "steps.answer", "steps.evidence", "steps.log"];
const OF_REVIEW = ["run_name", "metadata"];
const items = (paths: readonly string[]): readonly string[] => paths.map((path) => `items.${path}`);

/** Every tool, in the order in which clients list them. */
export const TOOLS: readonly Tool[] = [
  {
    name: "read_overview",
    title: "Overview",
    description:
      "How the installation is doing: runs by hour, how long they take, what waits and why, failing logins, recent failures, and what needs a person.",
    operation: "readOverview",
    kind: "reads",
  },
  {
    name: "list_runs",
    title: "List runs",
    description:
      "Runs, newest first, by status, account, Blueprint, kind of failure, reason and time. Use read_run for the story of one.",
    operation: "listRuns",
    kind: "reads",
    omits: items(["name", "customer", "metadata"]),
  },
  {
    name: "read_run",
    title: "Read a run",
    description:
      "A run's story: its status, each node with its counts and times, where and why it failed, what it waits for, its credentials and results.",
    operation: "readRun",
    kind: "reads",
    omits: OF_RUN,
  },
  {
    name: "list_failures",
    title: "List failures",
    description:
      "Failed runs in groups by Blueprint and reason, with how many there are and the last run of each.",
    operation: "listFailures",
    kind: "reads",
    omits: items(["customers"]),
  },
  {
    name: "search",
    title: "Search",
    description:
      "Runs, credentials, sessions, Blueprints, strategies and accounts by a part of their id or name.",
    operation: "search",
    kind: "reads",
    omits: ["runs.name", "runs.customer", "runs.metadata", "others.name"],
  },
  {
    name: "list_blueprints",
    title: "List Blueprints",
    description: "The workflows of all accounts or of one, with the last run of each.",
    operation: "listBlueprints",
    kind: "reads",
  },
  {
    name: "read_blueprint",
    title: "Read a Blueprint",
    description:
      "A Blueprint: its document, its nodes as a graph, and the inputs and metadata that a trigger takes, with their JSON Schemas.",
    operation: "readBlueprint",
    kind: "reads",
  },
  {
    name: "read_blueprint_health",
    title: "Read a Blueprint's health",
    description: "How often a Blueprint completes, how long it takes, and how many records it gives, by day.",
    operation: "readBlueprintHealth",
    kind: "reads",
  },
  {
    name: "read_document_schema",
    title: "Read the schema of documents",
    description:
      "The JSON Schema of accounts, strategies and Blueprints as documents. Read it before writing one.",
    operation: "readConfigSchema",
    kind: "reads",
  },
  {
    name: "validate_documents",
    title: "Validate documents",
    description:
      "Checks documents without applying them: every problem with its line and remedy, and warnings.",
    operation: "checkConfig",
    kind: "reads",
  },
  {
    name: "plan_documents",
    title: "Plan documents",
    description:
      "What applying documents would change, difference by difference, and whose confirmation it would need. Applies nothing.",
    operation: "planConfig",
    kind: "reads",
  },
  {
    name: "list_reviews",
    title: "List reviews",
    description:
      "Runs that wait for a person's decision, oldest first: the question, and how many records there are.",
    operation: "listReviews",
    kind: "reads",
    omits: items(OF_REVIEW),
  },
  {
    name: "read_review",
    title: "Read a review",
    description: "A review: the question, its instructions, and what was decided.",
    operation: "readReview",
    kind: "reads",
    omits: OF_REVIEW,
  },
  {
    name: "list_review_records",
    title: "List the records of a review",
    description: "The records that a person is asked about, with their errors. They are data of end users.",
    operation: "listReviewRecords",
    kind: "records",
  },
  {
    name: "list_result_records",
    title: "List the records of a result",
    description: "Records of a completed run's result. They are data of end users.",
    operation: "listResultRecords",
    kind: "records",
  },
  {
    name: "apply_documents",
    title: "Apply documents",
    description:
      "Publishes documents: all of them, or none. Plan them first, and pass its `base`, so that nobody's change in between is overwritten.",
    operation: "applyConfig",
    kind: "writes",
    isIdempotent: true,
  },
  {
    name: "run_again",
    title: "Run again",
    description:
      "Triggers a run again with its inputs and the Blueprint's current version. It may write to other systems.",
    operation: "runAgain",
    kind: "writes",
    reachesOut: true,
  },
  {
    name: "cancel_run",
    title: "Cancel a run",
    description:
      "Cancels a run for good. A request that was sent already may still take effect at the target.",
    operation: "cancelRun",
    kind: "writes",
    isIdempotent: true,
  },
  {
    name: "approve_review",
    title: "Approve a review",
    description:
      "Lets the run of a review go on, with edits or without records if so given. It may then write to other systems.",
    operation: "approveReview",
    kind: "writes",
    reachesOut: true,
    omits: OF_REVIEW,
  },
  {
    name: "reject_review",
    title: "Reject a review",
    description: "Ends the run of a review for good, with a reason.",
    operation: "rejectReview",
    kind: "writes",
    omits: OF_REVIEW,
  },
];
