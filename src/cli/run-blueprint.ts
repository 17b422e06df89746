import { closeSync, fchmodSync, fstatSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readBlueprint, type Blueprint } from "#domain/blueprint.ts";
import { diffDocuments } from "#domain/config-diff.ts";
import { suggestion } from "#domain/config-nearest.ts";
import { ID_PREFIX } from "#domain/ids.ts";
import { isJsonObject, type Json } from "#domain/json.ts";
import { describeEvidence, type NewEvidence } from "#domain/page-evidence.ts";
import { describeAnswer } from "#domain/shown-answer.ts";
import { readStrategy, type Strategy } from "#domain/strategy.ts";
import type { LocalReview } from "#engine/local/local-journal.ts";
import type { LocalCredential } from "#engine/login/local-login.ts";
import type { LocalOutcome, LocalRun } from "#engine/local/local-run.ts";
import type { RecordedPages } from "#engine/local/page-recording.ts";
import type { Recording } from "#engine/local/recording.ts";
import { must } from "#lib/assert.ts";
import { newId, newRunKey } from "#lib/new-id.ts";
import { refusal } from "./print-plan.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed, EXIT_CODES, plain, print, tell } from "./output.ts";
import { findFailedPlace } from "./failed-place.ts";
import { readSources } from "./read-sources.ts";
import { exchangeFile, openPrivateFolder, pictureFile } from "./private-folder.ts";
import {
  describeNode,
  printNode,
  printResults,
  readResults,
  type NodeReport,
  type ResultContent,
} from "./run-report.ts";
import { readAccessToken, readCredential, readInputs, readMetadata, readPairs } from "./run-request.ts";

/** The options of `latchkey run`, as commander reads them. */
export interface RunOptions {
  blueprint?: string;
  input: string[];
  metadata: string[];
  credential: string[];
  record?: string;
  replay?: string;
  trace?: string;
  pictures?: string;
  headed?: boolean;
  /** true: the usual pause. */
  slow?: number | true;
  check?: boolean;
  approve?: boolean;
  allowWrites?: boolean;
  rows: number;
  json?: boolean;
}

const DIFFERENCES_SHOWN = 20;

/** Runs one Blueprint from the files. `folder` takes its temporary files. */
export async function runBlueprint(
  composition: Composition,
  paths: readonly string[],
  options: RunOptions,
  folder: string,
): Promise<void> {
  const recording = options.replay === undefined ? null : readRecording(options.replay);
  const { blueprint, strategies } = await readRequestedBlueprint(
    composition,
    paths,
    options.blueprint ?? recording?.blueprint ?? null,
  );
  const inputs = readInputs(blueprint, readPairs("input", options.input), recording?.inputs ?? {});
  const metadata = readMetadata(
    blueprint,
    readPairs("metadata", options.metadata),
    recording?.metadata ?? {},
  );
  const credentials =
    recording === null ? readCredentials(composition, blueprint, strategies, options.credential) : new Map();
  const asked: LocalRun = {
    id: recording?.run.id ?? newId(ID_PREFIX.run),
    key: recording?.run.key ?? newRunKey(),
    blueprint,
    inputs,
    metadata,
    strategies,
    credentials,
    rules: {
      approve: async (review) => decideAsAuthor(review, options),
      allowWrites: options.allowWrites === true,
      isReplayed: recording !== null,
    },
    exchanges: [...(recording?.exchanges ?? [])],
    pages: pagesOf(recording, options),
  };
  await executeBlueprint(composition, asked, { ...options, paths }, recording, folder);
}

async function executeBlueprint(
  composition: Composition,
  asked: LocalRun,
  options: RunOptions & { readonly paths: readonly string[] },
  recording: Recording | null,
  folder: string,
): Promise<void> {
  const [{ runLocally }, { openTrace }, { openEvaluator }, { openLocalStore }] = await Promise.all([
    import("#engine/local/local-run.ts"),
    import("#engine/local/trace.ts"),
    import("#expressions/evaluator.ts"),
    import("#blobs/local-store.ts"),
  ]);
  await using opened = new AsyncDisposableStack();
  const evaluator = () => opened.adopt(openEvaluator({ threads: 1 }), async (each) => await each.close());
  const gate = opened.adopt(await composition.openEgressGate(), async (each) => await each.close());
  const browsers = opened.adopt(
    await composition.openBrowsers(gate, shownIn(options)),
    async (each) => await each.close(),
  );
  const blobs = openLocalStore(join(folder, "objects"));
  const nodes: NodeReport[] = [];
  const traced = options.trace === undefined ? null : openPrivateFolder("--trace", options.trace);
  const pages: ShownPage[] = [];
  const { outcome, leaves } = await runLocally(
    {
      gate: recording === null ? gate : null,
      browsers,
      blobs,
      expressions: evaluator(),
      loginExpressions: evaluator(),
      clientSecret: (account, reference) => composition.localSecret(account, reference),
      nowMs: () => Date.now(),
      log: await composition.log(),
      trace:
        traced === null
          ? undefined
          : openTrace((exchange) => traced.keep(exchangeFile(exchange), exchange.text)),
      scratchFolder: join(folder, "scratch"),
    },
    asked,
    async (node) => {
      const report = await describeNode(node, options.rows);
      nodes.push(report);
      if (options.json !== true) printNode(report);
    },
    (node, evidence) => pages.push({ node, evidence }),
  );
  if (outcome.kind === "failed" && outcome.evidence !== null)
    pages.push({ node: "login", evidence: outcome.evidence });
  if (options.pictures !== undefined) keepPictures(options.pictures, pages);
  const results = outcome.kind === "completed" ? await readResults(blobs, outcome.results) : {};
  if (options.json === true)
    print(JSON.stringify(asJson(asked, outcome, { nodes, results, pages }, options.rows)));
  else printResults(results, options.rows);
  if (traced !== null) tell(`Kept ${traced.count} exchanges in ${options.trace}.`);
  if (options.record !== undefined) {
    writeRecording(options.record, leaves.json(recordingOf(asked, results)));
    const count = asked.exchanges.length + (asked.pages?.answers.length ?? 0);
    tell(`Recorded ${count} exchanges in ${options.record}.`);
  }
  if (outcome.kind === "failed") throw await failureOf(outcome, asked, options.paths, pages);
  if (outcome.kind === "parked")
    throw new CommandFailed("The run awaits a review; --approve approves reviews without changes.");
  if (options.check === true && recording !== null) compare(recording, results);
}

const SLOW_MS = 500;

/** How the browser is shown; undefined: it is not. */
const shownIn = ({ headed, slow = 0 }: RunOptions): { readonly slowMs: number } | undefined =>
  headed === true ? { slowMs: slow === true ? SLOW_MS : slow } : undefined;

/** What a page of a node, or of a login, showed. */
interface ShownPage {
  readonly node: string;
  readonly evidence: NewEvidence;
}

function keepPictures(path: string, pages: readonly ShownPage[]): void {
  const folder = openPrivateFolder("--pictures", path);
  for (const { node, evidence } of pages)
    if (evidence.picture !== null) folder.keep(pictureFile(folder.count + 1, node), evidence.picture);
  tell(`Kept ${folder.count} pictures in ${path}.`);
}

async function failureOf(
  { message, answer }: Extract<LocalOutcome, { kind: "failed" }>,
  { blueprint }: LocalRun,
  paths: readonly string[],
  pages: readonly ShownPage[],
): Promise<CommandFailed> {
  const place = await findFailedPlace(message, blueprint.key, paths);
  const parts = [
    ...(answer === null ? [] : [["The answer: ", describeAnswer(answer)] as const]),
    ...pages
      .filter(({ evidence }) => evidence.reason === "failed")
      .map(({ evidence }) => ["The page: ", describeEvidence(evidence)] as const),
  ];
  const lines = parts.flatMap(([title, [head = "", ...rest]]) => [
    title + head,
    ...rest.map((line) => `  ${line}`),
  ]);
  const at = place === null ? [] : [`  at ${place}`];
  return new CommandFailed([message, ...at, ...lines].map(plain).join("\n"));
}

function decideAsAuthor(review: LocalReview, { approve, json }: RunOptions): boolean {
  const { total, valid } = review.counts;
  if (json !== true)
    print(
      `Review at ${review.nodeId}: ${review.title} (${total} records, ${total - valid} invalid): ` +
        (approve === true ? "approved as they are" : "not decided"),
    );
  return approve === true;
}

/** Finds the Blueprint and the strategies of its slots. All files are validated, but the account need not exist. */
async function readRequestedBlueprint(
  composition: Composition,
  paths: readonly string[],
  key: string | null,
) {
  await composition.loadNodeTypes();
  const { validateConfig } = await import("#actions/config/apply-config.ts");
  const { checked, problems } = validateConfig(readSources(paths), {
    anyAccount: true,
    secrets: composition.secretSources().inFile,
  });
  if (problems.length > 0) throw refusal(problems);
  const blueprints = checked.filter(({ kind }) => kind === "blueprint");
  const keys = blueprints.map(({ id }) => id);
  const found = key === null ? blueprints : blueprints.filter(({ id }) => id === key);
  const [one] = found;
  if (one === undefined)
    throw new CommandFailed(
      key === null
        ? `There is no Blueprint in ${paths.join(", ")}.`
        : `There is no Blueprint ${key}${suggestion(key, keys, "there are")}.`,
      EXIT_CODES.usage,
    );
  if (found.length > 1)
    throw new CommandFailed(`Which Blueprint? --blueprint ${keys.join(" | --blueprint ")}`, EXIT_CODES.usage);
  const blueprint = readBlueprint(one.document);
  const strategies = new Map<string, Strategy>();
  for (const { slot, strategyId } of blueprint.credentials) {
    const document = checked.find(
      ({ kind, id, account }) => kind === "strategy" && id === strategyId && account === blueprint.account,
    );
    strategies.set(slot, readStrategy(must(document, `the strategy ${strategyId}`).document));
  }
  return { blueprint, strategies };
}

function readCredentials(
  composition: Composition,
  blueprint: Blueprint,
  strategies: ReadonlyMap<string, Strategy>,
  written: readonly string[],
): ReadonlyMap<string, LocalCredential> {
  const given = readPairs("credential", written);
  const slots = blueprint.credentials.map(({ slot }) => slot);
  const unknown = [...given.keys()].find((slot) => !slots.includes(slot));
  if (unknown !== undefined)
    throw new CommandFailed(
      `${blueprint.key} has no credential slot ${unknown}${suggestion(unknown, slots, "there are")}.`,
      EXIT_CODES.usage,
    );
  return new Map(
    slots.map((slot) => {
      const strategy = must(strategies.get(slot), `the strategy of ${slot}`);
      const fields = readCredential(slot, strategy, given.get(slot), composition.environmentSecret);
      const accessToken = readAccessToken(slot, strategy, composition.environmentSecret);
      return [slot, { strategy, fields, accessToken }];
    }),
  );
}

function readRecording(path: string): Recording {
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new CommandFailed(
      `${path} ${code === "ENOENT" ? "does not exist" : "is not a recording"}.`,
      EXIT_CODES.usage,
    );
  }
  if (!isJsonObject(parsed) || parsed["latchkey_recording"] !== 1 || !Array.isArray(parsed["exchanges"]))
    throw new CommandFailed(
      `${path} is not a recording made by \`latchkey run --record\`.`,
      EXIT_CODES.usage,
    );
  return parsed as unknown as Recording;
}

/** What is recorded of pages, or played to them. */
const pagesOf = (recording: Recording | null, { record }: RunOptions): RecordedPages | null =>
  recording === null
    ? record === undefined
      ? null
      : { answers: [], storage: {} }
    : (recording.pages ?? null);

function recordingOf(
  { id, key, blueprint, inputs, metadata, exchanges, pages }: LocalRun,
  results: Readonly<Record<string, ResultContent>>,
): Json {
  const texts = [...inputs].flatMap(([refKey, value]) =>
    value.form === "text" ? [[refKey, value.text]] : [],
  );
  const recording: Recording = {
    latchkey_recording: 1,
    blueprint: blueprint.key,
    run: { id, key },
    metadata,
    inputs: Object.fromEntries(texts) as Recording["inputs"],
    exchanges,
    ...(pages !== null && pages.answers.length > 0 && { pages }),
    results: results as unknown as Recording["results"],
  };
  return recording as unknown as Json;
}

/**
 * One value per line, so that a diff shows what changed in the target or the Blueprint. The file is readable only by its owner, even
 * when it existed before: it has the target's answers, and the redactor knows only the secrets of the credential and its login.
 */
function writeRecording(path: string, json: string): void {
  const file = openSync(path, "w", 0o600);
  try {
    if (fstatSync(file).isFile()) fchmodSync(file, 0o600);
    writeFileSync(file, `${JSON.stringify(JSON.parse(json), null, 2)}\n`);
  } finally {
    closeSync(file);
  }
}

function compare(recording: Recording, results: Readonly<Record<string, ResultContent>>): void {
  const differences = diffDocuments(recording.results, results as unknown as Json);
  if (differences.length === 0) return tell("The results match the recording.");
  for (const { path, before, after } of differences.slice(0, DIFFERENCES_SHOWN))
    tell(`${path}: ${JSON.stringify(before) ?? "(nothing)"} → ${JSON.stringify(after) ?? "(nothing)"}`);
  if (differences.length > DIFFERENCES_SHOWN) tell(`… and ${differences.length - DIFFERENCES_SHOWN} more`);
  throw new CommandFailed(
    "The results differ from the recording. If the change is intended, record it again with --record.",
  );
}

function asJson(
  { blueprint }: LocalRun,
  outcome: LocalOutcome,
  {
    nodes,
    results,
    pages,
  }: {
    readonly nodes: readonly NodeReport[];
    readonly results: Readonly<Record<string, ResultContent>>;
    readonly pages: readonly ShownPage[];
  },
  rows: number,
) {
  const shown = Object.entries(results).map(
    ([key, { totalRecords, records }]) => [key, { totalRecords, records: records.slice(0, rows) }] as const,
  );
  return {
    blueprint: blueprint.key,
    status: outcome.kind,
    error: outcome.kind === "failed" ? outcome.message : null,
    answer: outcome.kind === "failed" ? outcome.answer : null,
    nodes,
    pages: pages.map(({ node, evidence }) => ({ node, ...evidence, picture: undefined })),
    results: Object.fromEntries(shown),
  };
}
