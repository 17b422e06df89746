import { setTimeout as sleep } from "node:timers/promises";
import { InvalidArgumentError, Option, type Command } from "commander";
import type { OperatorAnswer } from "#contract/operator/operation.ts";
import type { listRuns, readRun } from "#contract/operator/runs.ts";
import { describeEvidence } from "#domain/page-evidence.ts";
import { describeAnswer } from "#domain/shown-answer.ts";
import { isTerminal, RUN_STATUSES, type RunStatus } from "#domain/run.ts";
import type { Composition } from "./composition.ts";
import {
  blueprintWaitName,
  runStateName,
  STEP_STATE_NAMES,
  throttleWaitName,
} from "#domain/labels/states.ts";
import { CommandFailed, EXIT_CODES, paint, plain, print, table, tell } from "./output.ts";
import { openPrivateFolder, pictureFile } from "./private-folder.ts";
import { onService } from "./remote.ts";
import { addPageOptions, printMore, readTime, type PageOptions } from "./pages.ts";

type ListedRun = OperatorAnswer<typeof listRuns>["items"][number];
type ShownRun = OperatorAnswer<typeof readRun>;

interface ListOptions extends PageOptions {
  status?: RunStatus;
  blueprint?: string;
  name?: string;
  metadata?: string[];
  since?: string;
  until?: string;
}

interface ShowOptions {
  json?: boolean;
  pictures?: string;
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
    .option("--pictures <folder>", "save the pictures of a browser's pages, with secrets covered")
    .addHelpText("after", "\nExample:\n  latchkey runs show run_0VbbSVh5…")
    .action(async (id: string, options: ShowOptions) => await show(composition, id, options));
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
  const { name, json, ...given } = options;
  const query = { ...given, ...(name === undefined ? {} : { run_name: name }) };
  const found = await onService(composition, {
    here: async (db) => {
      const { listRuns } = await import("#actions/operators/list-runs.ts");
      return await listRuns(db, query, null);
    },
    remote: async (service) => {
      const contract = await import("#contract/operator/runs.ts");
      const { metadata, ...others } = query;
      const [pair, ...more] = metadata ?? [];
      if (more.length > 0)
        throw new CommandFailed("Give --metadata once: the operator API takes one.", EXIT_CODES.usage);
      return await service.call(contract.listRuns, {
        query: { ...others, ...(pair === undefined ? {} : { metadata: pair }) },
      });
    },
  });
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

/** Of one run; it is read again with each call. */
interface RunReader {
  readonly read: () => Promise<ShownRun>;
  /** A PNG. `run` is its id, `index` that of the evidence. */
  readonly readPicture: (run: string, node: string, index: number) => Promise<AsyncIterable<Uint8Array>>;
}

/** Reads the run while `work` lasts. */
async function reading<T>(
  composition: Composition,
  reference: string,
  work: (reader: RunReader) => Promise<T>,
): Promise<T> {
  return await onService(composition, {
    here: async (db) => {
      const [{ getRun, readPicture }, { requireRun }] = await Promise.all([
        import("#actions/operators/list-runs.ts"),
        import("#actions/runs/require-run.ts"),
      ]);
      return await work({
        read: async () => await getRun(db, (await requireRun(db, reference)).id, true),
        readPicture: async (run, node, index) =>
          await readPicture(
            { db, blobs: await composition.openStore() },
            { run, node, index: String(index) },
          ),
      });
    },
    remote: async (service) => {
      const { readPicture, readRun } = await import("#contract/operator/runs.ts");
      return await work({
        read: async () => await service.call(readRun, { params: { runId: reference } }),
        readPicture: async (runId, node, index) =>
          await service.download(readPicture, { params: { runId, node, index: String(index) } }),
      });
    },
  });
}

async function show(composition: Composition, id: string, { json, pictures }: ShowOptions): Promise<void> {
  const run = await reading(composition, id, async ({ read, readPicture }) => {
    const found = await read();
    if (pictures !== undefined) await keepPictures(found, pictures, readPicture);
    return found;
  });
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
  for (const { node, evidence } of run.steps)
    for (const each of evidence) {
      const [head = "", ...rest] = describeEvidence(each);
      print(`\n${paint("bold", plain(node))} ${plain(head)}`);
      for (const line of rest) print(`  ${plain(line)}`);
    }
}

/** Writes the pictures of a run's pages into a folder. */
async function keepPictures(
  run: ShownRun,
  path: string,
  readPicture: RunReader["readPicture"],
): Promise<void> {
  const folder = openPrivateFolder("--pictures", path);
  for (const { node, evidence } of run.steps)
    for (const [index, { has_picture: hasPicture }] of evidence.entries()) {
      if (!hasPicture) continue;
      const parts = await readPicture(run.id, node, index);
      folder.keep(pictureFile(folder.count + 1, node), Buffer.concat(await Array.fromAsync(parts)));
    }
  tell(`Kept ${folder.count} pictures in ${path}.`);
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
    ["schedule", run.schedule],
    ["rerun of", run.again_of],
    ["reruns", list_(run.reruns)],
    ["started", run.started_at && second(run.started_at)],
    ["ended", run.ended_at && second(run.ended_at)],
    ["waits for", waitOf(run)],
    ["begins", run.begins_at && `${second(run.begins_at)} at the earliest, as its caller asked`],
    ["expires", run.expires_at && `${second(run.expires_at)}, unless it has begun by then`],
    ["priority", run.priority === 0 ? null : String(run.priority)],
    ["next poll", run.asks_again_at && second(run.asks_again_at)],
    ["error", run.failure_detail],
    ["failed at", run.failed_step && placeOf(run.failed_step)],
    ["purged", run.purged_at && `${second(run.purged_at)}${PURGED_BY[run.purge_reason ?? "unknown"]}`],
    ["metadata", list_(Object.entries(run.metadata).map(([name, value]) => `${name}=${value}`))],
    ["credentials", list_(run.credentials.map((each) => each.credential_id))],
    ["results", list_(run.results.map((each) => `${each.key} (${each.total_records})`))],
    ["retries", run.retries === 0 ? null : String(run.retries)],
    ["lost workers", run.lost_leases === 0 ? null : String(run.lost_leases)],
  ];
}

const placeOf = ({ name, version, line, column }: NonNullable<ShownRun["failed_step"]>): string =>
  `${name}, version ${version}, line ${line}, column ${column}`;

function waitOf(run: ShownRun): string | null {
  if (run.browser_wait !== null) return BROWSER_WAITS[run.browser_wait];
  if (run.blueprint_wait !== null) return blueprintWaitName(run.blueprint_wait);
  if (run.throttle_wait !== null) return throttleWaitName(run.throttle_wait);
  return run.waits_for && `another run with the credential ${run.waits_for}`;
}

const BROWSER_WAITS = {
  missing:
    "a browser, and no worker has one: install Chromium where a worker runs, or set LATCHKEY_BROWSER to the path of one",
  taken: "a browser: other runs have all of them",
} as const;

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
  await reading(composition, reference, async ({ read }) => {
    for (let told = ""; ; await sleep(WATCH_MS)) {
      const run = await read();
      const state = stateOf(run);
      if (state !== told) print(state);
      told = state;
      if (!isTerminal(run.status)) continue;
      if (run.status !== "completed") throw new CommandFailed(`${run.id} did not complete.`);
      return;
    }
  });
}
