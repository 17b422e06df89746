import Type from "typebox";
import { closed, conflict, count, missing, oneOf, orNull, text, time, whole } from "./fields.ts";
import { defineOperation } from "./operation.ts";

const waiting = Type.Array(
  closed({
    waits_for: oneOf(
      ["place", "credential", "review", "write", "target", "worker", "nothing"],
      "Its turn, another run's login, a review, a decision on a write, the time to ask a target again, somebody to carry it; `nothing`: it is carried.",
    ),
    runs: count("How many."),
    oldest_at: time("When the oldest began to wait."),
  }),
  { description: "Runs that have not ended." },
);

export const readSystem = defineOperation({
  id: "readSystem",
  method: "get",
  path: "/system",
  tag: "System",
  summary: "Read how the installation is",
  permission: "system.read",
  status: 200,
  answer: closed(
    {
      now: time("The database's clock."),
      version: text("The program's."),
      public_url: text("Where the service is reached."),
      workers: Type.Array(
        closed({
          id: text("`wrk_...`"),
          hostname: text("Its machine."),
          pid: count("Its process."),
          started_at: time("When it started."),
          heartbeat_at: time("Its last sign of life."),
          is_alive: Type.Boolean({ description: "If not, another one takes its runs over." }),
          runs: count("What it carries."),
        }),
      ),
      queue: waiting,
      database: closed({
        version: text("Of PostgreSQL."),
        size_bytes: count("All of it."),
        connections: count("Open ones."),
        connections_max: count("How many there may be."),
        migration: count("The last one that was applied."),
        unchained_audit_entries: count(
          "Audit entries that have no number yet; a worker gives it within a second.",
        ),
      }),
      purge_lag_seconds: count(
        "For how long the run has been due that is to be purged next; 0: none is. More than an hour is an alarm.",
      ),
      store: oneOf(["folder", "s3"], "Where objects are kept."),
      keys: Type.Array(
        closed({
          id: text("The master key's id."),
          is_primary: Type.Boolean({ description: "The one that seals; the others only open." }),
          created_at: time("When it was made."),
        }),
      ),
      refused_rows: Type.Array(
        closed({
          kind: text("The table."),
          id: text("The row's key."),
          fault: oneOf(
            ["unsigned", "forged", "outdated", "deleted"],
            "It has no signature; it says something else than was signed; the audit log names a later one; it is not there any more.",
          ),
          first_seen_at: time("When it was found."),
          last_seen_at: time("When it was found the last time by a process that had not found it before."),
        }),
        {
          description:
            "Rows of the database that decide something and were not written by this installation. None is used.",
        },
      ),
      can_open_credentials: Type.Boolean({ description: "Whether the process that answers has the key." }),
    },
    { title: "System" },
  ),
});

export const readOverview = defineOperation({
  id: "readOverview",
  method: "get",
  path: "/overview",
  tag: "System",
  summary: "Read the last hours in numbers",
  permission: "run.read",
  query: closed({
    hours: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 168, description: "Full hours before this one; 24 unless given." }),
    ),
  }),
  status: 200,
  answer: closed(
    {
      now: time("The database's clock."),
      hours: Type.Array(
        closed({
          at: time("When the hour begins."),
          completed: count("Runs that were triggered in it and completed."),
          failed: count("That failed."),
          cancelled: count("That were cancelled."),
          queued: count("That have not begun yet."),
          running: count("That go on."),
        }),
        { description: "The last one is the one that passes. Past ones may be a minute old." },
      ),
      durations: closed({
        runs: count("Completed runs of these hours."),
        p50_ms: orNull(count("Half of them took no longer; to within a tenth.")),
        p90_ms: orNull(count("90th percentile.")),
        p99_ms: orNull(count("99th percentile.")),
      }),
      waiting,
      failing_logins: Type.Array(
        closed({
          account: text("The account's name."),
          strategy: text("`strat_...`"),
          credentials: count("Whose last login was rejected."),
          locked: count("That are not tried for a while."),
        }),
      ),
      failures: Type.Array(
        closed({
          account: text("The account's name."),
          blueprint: text("The Blueprint's key."),
          failure: text("The kind of failure."),
          runs: count("How many of the newest thousand failures."),
          last_run_id: text("The last of them."),
        }),
      ),
      needs_people: closed({
        reviews: count("That wait for a decision."),
        writes: count("That may have happened."),
        locked_credentials: count("That are not tried for a while."),
        proposals: count("That wait for an admin, at most as many as a page of them has."),
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
  summary: "List writes that may have happened, oldest first",
  description: "At most 1,000. Their runs wait for a decision on them, or have ended.",
  permission: "review.read",
  query: closed({
    account: Type.Optional(Type.String({ maxLength: 200, description: "The account's name." })),
    blueprint: Type.Optional(
      Type.String({ maxLength: 200, description: "The Blueprint's key; together with `node`." }),
    ),
    node: Type.Optional(Type.String({ maxLength: 200, description: "Of this node of the Blueprint." })),
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
        record: count("The record's place."),
        detail: orNull(text("What is known.")),
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
  summary: "Say whether a write happened",
  description:
    "With the last one a run that waits goes on: what happened is not sent again, what did not is sent.",
  permission: "write.decide",
  body: closed({ happened: Type.Boolean({ description: "Whether the target has it." }) }),
  status: 204,
  failures: [missing("write that waits for a decision"), conflict("Somebody else has decided it just now.")],
});

export const listWriteGroups = defineOperation({
  id: "listWriteGroups",
  method: "get",
  path: "/write-groups",
  tag: "Reviews",
  summary: "List writes that may have happened, by the node that sent them, oldest first",
  description: "At most 1,000 nodes. What one node has left open in many runs has most often one reason.",
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
        writes: count("How many there are."),
        runs: count("Of how many runs."),
        since: time("When the first of them was sent."),
        detail: orNull(text("What is known of most of them.")),
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
  summary: "Say of all writes that a node has left open whether they happened",
  description:
    "As deciding each by itself, in whatever runs: runs that wait go on, and each write is on record with its run.",
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
      writes: count("How many were decided."),
      runs: count("Of how many runs."),
      left: count("How many were not, as their run goes on just now or the database failed: ask again."),
    },
    { title: "DecidedWrites" },
  ),
  failures: [missing("write of the node that waits for a decision")],
});
