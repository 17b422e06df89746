import { Type } from "#lib/type.ts";
import { closed, count, oneOf, orNull, text, time } from "./fields.ts";
import { operationsOf } from "./operation.ts";

const defineOperation = operationsOf("System");

const waiting = Type.Array(
  closed({
    waits_for: oneOf(
      [
        "place",
        "blueprint",
        "throttle",
        "browser",
        "credential",
        "review",
        "write",
        "target",
        "delay",
        "worker",
        "nothing",
      ],
      "The reason for waiting: `place`: the concurrency limit of the account; `blueprint`: that of its Blueprint; `throttle`: a `throttle` of a node or a host; `browser`: a browser of a worker; `credential`: another run with the same credential; `review`; `write`: a decision on a write; `target`: the next poll; `delay`: the delay that its caller asked for; `worker`; `nothing`: it is running.",
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
  summary: "Read the state of the installation",
  permission: "system.read",
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
          browsers: orNull(count("Browsers that it may run at once; 0: it has none. `null`: not known.")),
          browser_network: orNull(
            oneOf(
              ["host", "own"] as const,
              "The network of its browsers, `LATCHKEY_BROWSER_NETWORK`: `own`: each has one with nothing in it but the egress gate. `null`: not known.",
            ),
          ),
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
      mail: orNull(
        closed(
          {
            sent_at: orNull(time("When the last mail was sent.")),
            failing_since: orNull(time("When mail began to fail; `null`: the last one was sent.")),
            failure: orNull(text("Why not.")),
          },
          { title: "OperatorMail" },
        ),
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
  summary: "Read statistics of the last hours",
  permission: "run.read",
  accounts: "own",
  query: closed({
    hours: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 168,
        description: "Full hours before the current one; default 24.",
      }),
    ),
  }),
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
        dead_webhooks: count("Webhook endpoints that were disabled because they failed."),
      }),
    },
    { title: "Overview" },
  ),
});
