import { setTimeout as sleep } from "node:timers/promises";
import { InvalidArgumentError, Option, type Command } from "commander";
import type { ListedRun, ShownRun } from "#db/run-list.ts";
import { isTerminal, RUN_STATUSES, type RunStatus } from "#domain/run.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed, paint, print, table } from "./output.ts";
import { plain } from "./review-records.ts";

interface ListOptions {
  account?: string;
  status?: RunStatus;
  blueprint?: string;
  name?: string;
  metadata?: [string, string][];
  since?: string;
  until?: string;
  limit: number;
  after?: string;
  json?: boolean;
}

const LIMIT = { usual: 50, most: 1_000 } as const;
const WATCH_MS = 1_000;

export function addLookAtRuns(runs: Command, composition: Composition): void {
  runs
    .command("list")
    .description("list runs, the youngest first")
    .option("--account <name>", "only those of one account")
    .addOption(new Option("--status <status>", "only those with this status").choices(RUN_STATUSES))
    .option("--blueprint <key>", "only those of one Blueprint")
    .option("--name <text>", "only those whose name has this text")
    .option("--metadata <name=value>", "only those with this metadata; may be given again", readMetadata)
    .option("--since <time>", "only those made from then on (ISO 8601)", readTime)
    .option("--until <time>", "only those made before", readTime)
    .option("--limit <number>", "how many", readLimit, LIMIT.usual)
    .option("--after <id>", "go on after this run: the `next` of the page before")
    .option("--json", "print {runs, next} as JSON")
    .addHelpText(
      "after",
      "\nExample:\n  latchkey runs list --account acme --status failed --since 2026-11-01",
    )
    .action(async (options: ListOptions) => await list(composition, options));
  runs
    .command("show")
    .description("show a run: its steps, why it failed, when and why it was purged; no inputs, no records")
    .argument("<id>", "its id (run_…) or its run key (a UUID)")
    .option("--json", "print it as JSON")
    .addHelpText("after", "\nExample:\n  latchkey runs show run_0VbbSVh5…")
    .action(async (id: string, options: { json?: boolean }) => await show(composition, id, options));
  runs
    .command("watch")
    .description("say each step of a run until it ends; exit code 0 when it completes")
    .argument("<id>", "its id (run_…) or its run key (a UUID)")
    .addHelpText("after", "\nExample:\n  latchkey runs watch run_0VbbSVh5…")
    .action(async (id: string) => await watch(composition, id));
}

function readMetadata(text: string, earlier: [string, string][] = []): [string, string][] {
  const at = text.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("It must be name=value.");
  return [...earlier, [text.slice(0, at), text.slice(at + 1)]];
}

function readTime(text: string): string {
  const isIso = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)?)?$/.test(text);
  if (!isIso || Number.isNaN(Date.parse(text)))
    throw new InvalidArgumentError("It must be a date or a time, as 2026-11-01 or 2026-11-01T08:00:00Z.");
  return new Date(text).toISOString();
}

function readLimit(text: string): number {
  if (!/^\d{1,4}$/.test(text) || Number(text) < 1 || Number(text) > LIMIT.most)
    throw new InvalidArgumentError(`It must be a number from 1 to ${LIMIT.most}.`);
  return Number(text);
}

async function list(composition: Composition, options: ListOptions): Promise<void> {
  const { listRuns } = await import("#actions/look-at-runs.ts");
  const wanted = {
    account: options.account ?? null,
    status: options.status ?? null,
    blueprint: options.blueprint ?? null,
    name: options.name ?? null,
    metadata: options.metadata ?? [],
    since: options.since ?? null,
    until: options.until ?? null,
    after: options.after ?? null,
    limit: options.limit,
  };
  const found = await composition.withDatabase(async (db) => await listRuns(db, wanted));
  if (options.json === true) return print(JSON.stringify(found));
  if (found.runs.length === 0) return print("There are no such runs.");
  print(table(["ID", "ACCOUNT", "BLUEPRINT", "NAME", "CREATED", "STATE"], found.runs.map(rowOf)));
  if (found.next !== null) print(`\nThere are more: --after ${found.next}`);
}

const rowOf = (run: ListedRun): readonly string[] => [
  run.id,
  run.account,
  run.blueprint,
  plain(run.name ?? ""),
  second(run.createdAt),
  stateOf(run),
];

function stateOf({ status, step, errorKind, purgedAt }: ListedRun): string {
  const state = step === status ? status : `${status}, ${step}`;
  const why = errorKind === null ? "" : ` (${errorKind})`;
  return `${state}${why}${purgedAt === null ? "" : ", purged"}`;
}

const second = (date: Date): string => date.toISOString().slice(0, 19).replace("T", " ");

async function show(composition: Composition, id: string, { json }: { json?: boolean }): Promise<void> {
  const { showRun } = await import("#actions/look-at-runs.ts");
  const run = await composition.withDatabase(async (db) => await showRun(db, id));
  if (json === true) return print(JSON.stringify(run));
  print(paint("bold", run.id) + (run.name === null ? "" : `  ${plain(run.name)}`));
  for (const [what, value] of factsOf(run)) if (value !== null) print(`${what.padEnd(12)}${plain(value)}`);
  if (run.steps.length > 0) print(`\n${stepTable(run)}`);
}

function factsOf(run: ShownRun): readonly (readonly [string, string | null])[] {
  const list_ = (items: readonly string[]): string | null => (items.length === 0 ? null : items.join(", "));
  return [
    ["state", stateOf(run)],
    ["run key", run.runKey],
    ["account", run.account],
    ["Blueprint", `${run.blueprint}, version ${run.version}`],
    ["created", second(run.createdAt)],
    ["started", run.startedAt && second(run.startedAt)],
    ["ended", run.endedAt && second(run.endedAt)],
    ["error", run.error],
    ["purged", run.purgedAt && `${second(run.purgedAt)}${PURGED_BY[run.purgeReason ?? "unknown"]}`],
    ["metadata", list_(Object.entries(run.metadata).map(([name, value]) => `${name}=${value}`))],
    ["credentials", list_(run.credentials)],
    ["results", list_(run.results.map(({ key, records }) => `${key} (${records})`))],
    ["retries", run.retries === 0 ? null : String(run.retries)],
    ["lost workers", run.lostWorkers === 0 ? null : String(run.lostWorkers)],
  ];
}

const PURGED_BY = { retention: ", its time was over", operator: ", by an operator", unknown: "" } as const;

function stepTable({ steps }: ShownRun): string {
  return table(
    ["STEP", "STATE", "TRIES", "STARTED", "RECORDS", "NOT VALID", "ERROR"],
    steps.map(({ node, status, attempts, startedAt, records, valid, error }) => [
      node,
      status,
      String(attempts),
      second(startedAt),
      records === null ? "" : String(records),
      records === null || valid === null ? "" : String(records - valid),
      plain(error ?? ""),
    ]),
  );
}

async function watch(composition: Composition, id: string): Promise<void> {
  const { showRun } = await import("#actions/look-at-runs.ts");
  await composition.withDatabase(async (db) => {
    for (let told = ""; ; await sleep(WATCH_MS)) {
      const run = await showRun(db, id);
      const state = stateOf(run);
      if (state !== told) print(state);
      told = state;
      if (!isTerminal(run.status)) continue;
      if (run.status !== "completed") throw new CommandFailed(`${run.id} did not complete.`);
      return;
    }
  });
}
