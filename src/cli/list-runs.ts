import { setTimeout as sleep } from "node:timers/promises";
import { InvalidArgumentError, Option, type Command } from "commander";
import type { getRun, listRuns } from "#actions/operators/list-runs.ts";
import type { Database } from "#db/connection/pool.ts";
import { describeAnswer } from "#domain/shown-answer.ts";
import { isTerminal, RUN_STATUSES, type RunStatus } from "#domain/run.ts";
import type { Composition } from "./composition.ts";
import { runStateName, STEP_STATE_NAMES } from "#domain/labels/states.ts";
import { CommandFailed, paint, plain, print, table, tell } from "./output.ts";
import { addPageOptions, printMore, readTime, type PageOptions } from "./pages.ts";

type ListedRun = Awaited<ReturnType<typeof listRuns>>["items"][number];
type ShownRun = Awaited<ReturnType<typeof getRun>>;

interface ListOptions extends PageOptions {
  status?: RunStatus;
  blueprint?: string;
  name?: string;
  metadata?: string[];
  since?: string;
  until?: string;
}

const WATCH_MS = 1_000;

export function addLookAtRuns(runs: Command, composition: Composition): void {
  addPageOptions(
    runs
      .command("list")
      .description("list runs, newest first")
      .option("--account <name>", "only those of one account")
      .addOption(new Option("--status <status>", "only those with this status").choices(RUN_STATUSES))
      .option("--blueprint <key>", "only those of one Blueprint")
      .option("--name <text>", "only those whose name begins with this text")
      .option("--metadata <name=value>", "only those with this metadata; may be given again", readMetadata)
      .option("--since <time>", "only those created at or after this time (ISO 8601)", readTime)
      .option("--until <time>", "only those created before this time", readTime),
  )
    .addHelpText(
      "after",
      "\nExample:\n  latchkey runs list --account acme --status failed --since 2026-11-01",
    )
    .action(async (options: ListOptions) => await list(composition, options));
  runs
    .command("show")
    .description(
      "show a run: its steps, why it failed, when and why its data was purged; never inputs or records",
    )
    .argument("<id>", "its id (run_…) or its run key (a UUID)")
    .option("--json", "print it as JSON, as the operator API returns it")
    .addHelpText("after", "\nExample:\n  latchkey runs show run_0VbbSVh5…")
    .action(async (id: string, options: { json?: boolean }) => await show(composition, id, options));
  runs
    .command("watch")
    .description("print each step of a run until it ends; exit code 0 when it completes")
    .argument("<id>", "its id (run_…) or its run key (a UUID)")
    .addHelpText("after", "\nExample:\n  latchkey runs watch run_0VbbSVh5…")
    .action(async (id: string) => await watch(composition, id));
}

function readMetadata(text: string, earlier: string[] = []): string[] {
  if (text.indexOf("=") < 1) throw new InvalidArgumentError("It must be name=value.");
  return [...earlier, text];
}

async function list(composition: Composition, options: ListOptions): Promise<void> {
  const { listRuns } = await import("#actions/operators/list-runs.ts");
  const { name, json, ...given } = options;
  const query = { ...given, ...(name === undefined ? {} : { run_name: name }) };
  const found = await composition.withDatabase(async (db) => await listRuns(db, query));
  if (json === true) return print(JSON.stringify(found));
  if (found.items.length === 0) {
    print("There are no matching runs.");
    return tell("Trigger one with POST /api/v1/blueprints/KEY/trigger, or with “Try it” in the dashboard.");
  }
  print(table(["ID", "ACCOUNT", "BLUEPRINT", "NAME", "CREATED", "STATE"], found.items.map(rowOf)));
  printMore(found.next_cursor);
}

const rowOf = (run: ListedRun): readonly string[] => [
  run.id,
  run.account,
  run.blueprint ?? "(test login)",
  plain(run.name ?? ""),
  second(run.created_at),
  stateOf(run),
];

function stateOf({ status, progress_step: step, failure, purged_at: purged }: ListedRun): string {
  const state = runStateName(status, step);
  const why = failure === null ? "" : ` (${failure})`;
  return `${state}${why}${purged === null ? "" : ", data purged"}`;
}

const second = (time: string): string => time.slice(0, 19).replace("T", " ");

async function read(db: Database, reference: string): Promise<ShownRun> {
  const [{ getRun }, { requireRun }] = await Promise.all([
    import("#actions/operators/list-runs.ts"),
    import("#actions/runs/require-run.ts"),
  ]);
  return await getRun(db, (await requireRun(db, reference)).id, true);
}

async function show(composition: Composition, id: string, { json }: { json?: boolean }): Promise<void> {
  const run = await composition.withDatabase(async (db) => await read(db, id));
  if (json === true) return print(JSON.stringify(run));
  print(paint("bold", run.id) + (run.name === null ? "" : `  ${plain(run.name)}`));
  for (const [what, value] of factsOf(run)) if (value !== null) print(`${what.padEnd(12)}${plain(value)}`);
  if (run.steps.length > 0) print(`\n${stepTable(run)}`);
  for (const { node, answer } of run.steps) {
    if (answer === null) continue;
    const [head = "", ...rest] = describeAnswer(answer);
    print(`\n${paint("bold", plain(node))} received ${plain(head)}`);
    for (const line of rest) print(`  ${plain(line)}`);
  }
}

function factsOf(run: ShownRun): readonly (readonly [string, string | null])[] {
  const list_ = (items: readonly string[]): string | null => (items.length === 0 ? null : items.join(", "));
  return [
    ["state", stateOf(run)],
    ["run key", run.run_key],
    ["account", run.account],
    [
      "Blueprint",
      run.blueprint === null ? "none: a test login" : `${run.blueprint}, version ${run.blueprint_version}`,
    ],
    ["created", second(run.created_at)],
    ["started by", run.started_by],
    ["rerun of", run.again_of],
    ["reruns", list_(run.reruns)],
    ["started", run.started_at && second(run.started_at)],
    ["ended", run.ended_at && second(run.ended_at)],
    ["next poll", run.asks_again_at && second(run.asks_again_at)],
    ["error", run.failure_detail],
    ["purged", run.purged_at && `${second(run.purged_at)}${PURGED_BY[run.purge_reason ?? "unknown"]}`],
    ["metadata", list_(Object.entries(run.metadata).map(([name, value]) => `${name}=${value}`))],
    ["credentials", list_(run.credentials.map((each) => each.credential_id))],
    ["results", list_(run.results.map((each) => `${each.key} (${each.total_records})`))],
    ["retries", run.retries === 0 ? null : String(run.retries)],
    ["lost workers", run.lost_leases === 0 ? null : String(run.lost_leases)],
  ];
}

const PURGED_BY = { retention: ", after its retention", operator: ", by an operator", unknown: "" } as const;

function stepTable({ steps }: ShownRun): string {
  return table(
    ["STEP", "STATE", "ATTEMPTS", "STARTED", "RECORDS", "USUALLY", "INVALID", "ERROR"],
    steps.map((step) => {
      const { records_total: records, records_valid: valid, records_usual: usual } = step;
      return [
        step.node,
        STEP_STATE_NAMES[step.status],
        String(step.attempts),
        second(step.started_at),
        records === null ? turnsOf(step) : `${records}${records === 0 && (usual ?? 0) > 0 ? " (!)" : ""}`,
        usual === null ? "" : String(usual),
        records === null || valid === null ? "" : String(records - valid),
        plain(step.error ?? ""),
      ];
    }),
  );
}

/** How far a loop has got, before it has any output. */
function turnsOf({ turns_begun: begun, turns_total: total }: ShownRun["steps"][number]): string {
  if (begun === null) return "";
  return total === null ? `at ${begun}` : `at ${begun} of ${total}`;
}

async function watch(composition: Composition, reference: string): Promise<void> {
  await composition.withDatabase(async (db) => {
    for (let told = ""; ; await sleep(WATCH_MS)) {
      const run = await read(db, reference);
      const state = stateOf(run);
      if (state !== told) print(state);
      told = state;
      if (!isTerminal(run.status)) continue;
      if (run.status !== "completed") throw new CommandFailed(`${run.id} did not complete.`);
      return;
    }
  });
}
