import type { MutationKind } from "./sites.ts";

/** A site whose change no test can notice, or need not. */
export interface Equivalent {
  readonly file: string;
  readonly kind: MutationKind;
  /** Words of the line that is changed. */
  readonly line: string;
  readonly reason: string;
}

/** Survivors that were looked at: nobody could tell the changed program from ours, or what changes is not promised. */
export const EQUIVALENTS: readonly Equivalent[] = [
  {
    file: "src/service/assemble.ts",
    kind: "await removed",
    line: "await news.close()",
    reason:
      "notifications are hints: a process that misses the last ones of another finds the runs by its next look",
  },
  {
    file: "src/worker/chores.ts",
    kind: "guard removed",
    line: "workerId === null || this.#arePoolsSaved",
    reason: "the same ids are written once more, or for no worker; a worker that joins writes them itself",
  },
  {
    file: "src/engine/local/recording.ts",
    kind: "redaction removed",
    line: "await redact.body(asked.body)",
    reason: "records and files are redacted before a request can be made of them; this is a second net",
  },
  {
    file: "src/engine/local/recording.ts",
    kind: "redaction removed",
    line: "url: inOneSpelling(redact.text(asked.url))",
    reason:
      "as for the body: what a request is made of was redacted before, and handles are taken out; this is a second net",
  },
  {
    file: "src/worker/chores.ts",
    kind: "await removed",
    line: "await this.#savePools()",
    reason:
      "the ids are on their way when the next statement leaves; what fails is tried again at the next look",
  },
  {
    file: "src/engine/login/log-in-run.ts",
    kind: "await removed",
    line: "await retryWhileLocked(async () => await failStep(services.db, step))",
    reason:
      "the statement has left before the run's end does, and both want the run's row: PostgreSQL lets them go in that order",
  },
  {
    file: "src/db/runs/reviews.ts",
    kind: "sql term removed",
    line: "where status = 'open' and expires_at <= app_now() order by expires_at",
    reason: "those whose time is over come first in any case, and each is asked again under its lock",
  },
  {
    file: "src/cli/list-runs.ts",
    kind: "limit times ten",
    line: "WATCH_MS",
    reason: "each step is printed all the same, some seconds later",
  },
  {
    file: "src/db/runs/new-runs.ts",
    kind: "limit times ten",
    line: "GROUP_INPUT_BYTES_MAX",
    reason: "runs with larger inputs share a statement with others, which wait a little longer for it",
  },
  {
    file: "src/actions/runs/purge-runs.ts",
    kind: "limit times ten",
    line: "RUNS_AT_ONCE",
    reason: "the same runs are purged, by fewer statements",
  },
  {
    file: "src/expressions/thread-lanes.ts",
    kind: "limit times ten",
    line: "PROVEN_MAX",
    reason: "more expressions are remembered as quick, some MiB; what they give is the same",
  },
  {
    file: "src/engine/login/browse.ts",
    kind: "await removed",
    line: 'await failpoint("browser.after_steps")',
    reason:
      "a fail-point that ends the process does so a microtask later, before anything leaves it; tests use this one for nothing else",
  },
  {
    file: "src/service/assemble.ts",
    kind: "await removed",
    line: "await db.end()",
    reason: "nothing follows it in a process that stops, which ends when its connections are closed",
  },
  {
    file: "src/cli/serve.ts",
    kind: "limit times ten",
    line: "LEEWAY_MS",
    reason: "a process with a part that hangs ends all the same, 18 s later; no page says when",
  },
];
