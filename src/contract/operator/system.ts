import Type from "typebox";
import { closed, conflict, count, missing, oneOf, orNull, text, time, whole } from "./fields.ts";
import { defineOperation } from "./operation.ts";

const waiting = Type.Array(
  closed({
    waits_for: oneOf(
      ["place", "credential", "review", "write", "target", "worker", "nothing"],
      "The reason for waiting: `place`: a concurrency limit; `credential`: another run with the same credential; `review`; `write`: a decision on a write; `target`: the next poll; `worker`; `nothing`: it is running.",
    ),
    runs: count("Number of runs."),
    oldest_at: time("The time at which the oldest began to wait."),
  }),
  { description: "Runs that have not ended." },
);

export const readSystem = defineOperation({
  id: "readSystem",
  method: "get",
  path: "/system",
  tag: "System",
  summary: "Read the state of the installation",
  permission: "system.read",
  status: 200,
  answer: closed(
    {
      now: time("The database's clock."),
      version: text("The program's version."),
      public_url: text("The service's public URL."),
      workers: Type.Array(
        closed({
          id: text("`wrk_...`"),
          hostname: text("The machine's name."),
          pid: count("The process id."),
          started_at: time("When it started."),
          heartbeat_at: time("Its last heartbeat."),
          is_alive: Type.Boolean({
            description: "Whether it is healthy; if not, other workers take over its runs.",
          }),
          runs: count("Runs that it is executing."),
        }),
      ),
      queue: waiting,
      database: closed({
        version: text("PostgreSQL's version."),
        size_bytes: count("The size of the database."),
        connections: count("Open connections."),
        connections_max: count("The maximum number of connections."),
        migration: count("The last applied migration."),
        unchained_audit_entries: count(
          "Audit entries that are not chained yet; a worker chains them within a second.",
        ),
      }),
      purge_lag_seconds: count(
        "How long the next purge of a run's data is overdue; 0: none is due. More than an hour is an alarm.",
      ),
      store: oneOf(["folder", "s3"], "The kind of object store."),
      keys: Type.Array(
        closed({
          id: text("The master key's id."),
          is_primary: Type.Boolean({ description: "Whether it seals; the others only decrypt." }),
          created_at: time("When it was created."),
        }),
      ),
      refused_rows: Type.Array(
        closed({
          kind: text("The table."),
          id: text("The row's key."),
          fault: oneOf(
            ["unsigned", "forged", "outdated", "deleted"],
            "`unsigned`: it has no signature; `forged`: it differs from the signed row; `outdated`: the audit log has a later one; `deleted`: it is missing.",
          ),
          first_seen_at: time("When it was found."),
          last_seen_at: time("When another process last found it."),
        }),
        {
          description: "Signed rows that this installation did not write. They are not used.",
        },
      ),
      can_open_credentials: Type.Boolean({
        description: "Whether the responding process has the master key.",
      }),
    },
    { title: "System" },
  ),
});

export const readOverview = defineOperation({
  id: "readOverview",
  method: "get",
  path: "/overview",
  tag: "System",
  summary: "Read statistics of the last hours",
  permission: "run.read",
  query: closed({
    hours: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 168,
        description: "Full hours before the current one; default 24.",
      }),
    ),
  }),
  status: 200,
  answer: closed(
    {
      now: time("The database's clock."),
      hours: Type.Array(
        closed({
          at: time("When the hour begins."),
          completed: count("Runs triggered in this hour that completed."),
          failed: count("Runs that failed."),
          cancelled: count("Runs that were cancelled."),
          queued: count("Runs that have not started yet."),
          running: count("Runs in progress."),
        }),
        { description: "The last one is the current hour. Earlier ones may be a minute old." },
      ),
      durations: closed({
        runs: count("Completed runs of these hours."),
        p50_ms: orNull(count("The median, accurate to 10 %.")),
        p90_ms: orNull(count("90th percentile.")),
        p99_ms: orNull(count("99th percentile.")),
      }),
      waiting,
      failing_logins: Type.Array(
        closed({
          account: text("The account's name."),
          strategy: text("`strat_...`"),
          credentials: count("Credentials whose last login was rejected."),
          locked: count("Locked credentials."),
        }),
      ),
      failures: Type.Array(
        closed({
          account: text("The account's name."),
          blueprint: text("The Blueprint's key."),
          failure: text("The kind of failure."),
          runs: count("Runs among the newest thousand failures."),
          last_run_id: text("The last of these runs."),
        }),
      ),
      needs_people: closed({
        reviews: count("Open reviews."),
        writes: count("Uncertain writes."),
        locked_credentials: count("Locked credentials."),
        proposals: count("Open proposals, counted up to the size of a page."),
      }),
    },
    { title: "Overview" },
  ),
});

export const listWrites = defineOperation({
  id: "listWrites",
  method: "get",
  path: "/writes",
  tag: "Reviews",
  summary: "List uncertain writes, oldest first",
  description: "At most 1,000. Their runs wait for a decision or have ended.",
  permission: "review.read",
  query: closed({
    account: Type.Optional(Type.String({ maxLength: 200, description: "The account's name." })),
    blueprint: Type.Optional(
      Type.String({ maxLength: 200, description: "The Blueprint's key; together with `node`." }),
    ),
    node: Type.Optional(Type.String({ maxLength: 200, description: "Only writes of this node." })),
  }),
  status: 200,
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
  tag: "Reviews",
  summary: "Decide an uncertain write",
  description:
    "After the last decision, a waiting run continues: writes that happened are not sent again, the others are.",
  permission: "write.decide",
  body: closed({ happened: Type.Boolean({ description: "Whether the target has it." }) }),
  status: 204,
  failures: [missing("write that waits for a decision"), conflict("Someone else has just decided it.")],
});

export const listWriteGroups = defineOperation({
  id: "listWriteGroups",
  method: "get",
  path: "/write-groups",
  tag: "Reviews",
  summary: "List uncertain writes by node, oldest first",
  description: "At most 1,000 nodes. The uncertain writes of one node usually have the same cause.",
  permission: "review.read",
  query: closed({
    account: Type.Optional(Type.String({ maxLength: 200, description: "The account's name." })),
  }),
  status: 200,
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
  tag: "Reviews",
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
  status: 200,
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
