import { clockText } from "#db/connection/clock.ts";
import type { Needs } from "#actions/services.ts";
import { accountIdsOf, OperatorError } from "#actions/operator-error.ts";
import { findCachedVersion } from "#db/config-documents.ts";
import {
  findDetailedRun,
  listCredentialsOfRun,
  listDetailedSteps,
  listInputSizes,
  listResultSizes,
  listReviewsOfRun,
  listStartedTurns,
  listUsualRecords,
  listRuns as listStoredRuns,
  type DetailedRun,
  type DetailedStep,
  type ListedRun,
} from "#db/operators/operator-runs.ts";
import { listRunsWithCredential } from "#db/operators/operator-credentials.ts";
import { findRunsWith } from "#db/operators/run-search.ts";
import { listBlueprintIds } from "#db/operators/operator-config.ts";
import type { Database } from "#db/connection/pool.ts";
import { findRunOfAnyAccount } from "#db/runs/runs.ts";
import { executionOrder } from "#domain/config-order.ts";
import { readTallies } from "#domain/node-tally.ts";
import { nearestName } from "#domain/config-nearest.ts";
import { readRunReference } from "#domain/ids.ts";
import type { Json } from "#domain/json.ts";
import { makePage, readPage } from "#domain/page-cursor.ts";
import { invalidField, notFound } from "#domain/problem.ts";
import { RUN_STATUSES, RUN_STEPS, type RunStatus } from "#domain/run.ts";
import { readEvidenceLine, type StoredEvidence } from "#domain/page-evidence.ts";
import { readAnswerLine } from "#domain/shown-answer.ts";
import { gramsOf, searchLine } from "#domain/search-text.ts";
import { isSkipped } from "#domain/test-login.ts";
import { edgesOf, refKeyOf } from "#nodes/define-node.ts";
import { locateFailedStep } from "./locate-failed-step.ts";
import { readMarks, readMetadata, type RunMarks } from "./run-marks.ts";

export interface RunQuery {
  cursor?: string;
  limit?: number;
  id?: string;
  status?: RunStatus;
  /** The step within the status. */
  progress_step?: string;
  account?: string;
  blueprint?: string;
  run_name?: string;
  /** Part of the run's name or of a metadata value. */
  q?: string;
  /** The id of a credential. */
  credential?: string;
  /** Only these runs, by their ids. */
  ids?: readonly string[];
  /** The kind of failure. */
  failure?: string;
  /** Why it failed, with `#` for numbers. */
  error?: string;
  /** Each `name=value`. */
  metadata?: string | readonly string[];
  since?: string;
  until?: string;
}

/** A page of runs, newest first. Throws Problem 422, OperatorError. */
export async function listRuns(db: Database, query: RunQuery, limit: readonly string[] | null) {
  const page = readPage(query);
  const reference = query.id === undefined ? null : readRunReference(query.id);
  if (reference === undefined)
    throw invalidField("id", "`id` must be a run's id (run_…) or its run key (a UUID).");
  const accountIds = await accountIdsOf(db, query.account, limit).catch((error: unknown) => {
    if (limit !== null || !(error instanceof OperatorError)) throw error;
    throw invalidField("account", "There is no such account.");
  });
  const blueprintIds =
    query.blueprint === undefined ? null : await listBlueprintIds(db, accountIds, query.blueprint);
  if (blueprintIds?.length === 0) throw invalidField("blueprint", "There is no such Blueprint.");
  const rows = await listStoredRuns(
    db,
    {
      id: reference && "id" in reference ? reference.id : null,
      runKey: reference && "runKey" in reference ? reference.runKey : null,
      status: query.status ?? statusOf(query.progress_step),
      step: query.progress_step ?? null,
      accountIds,
      blueprintIds,
      name: query.run_name ?? null,
      metadata: [query.metadata ?? []].flat().map(readPair),
      among: await findAmong(db, query, accountIds),
      failure: query.failure ?? null,
      error: query.error ?? null,
      since: query.since ?? null,
      until: query.until ?? null,
    },
    page,
  );
  const marks = await readMarks(db, rows);
  return makePage(
    rows,
    page,
    (run) => ({ atMs: run.createdAt.getTime(), id: run.id }),
    (run) => showListed(run, marks),
  );
}

/** The status that a built-in step belongs to, which has an index; a milestone has one of any run that executes. */
const statusOf = (step: string | undefined): RunStatus | null =>
  step === undefined
    ? null
    : (RUN_STATUSES.find((status) => (RUN_STEPS[status] as readonly string[]).includes(step)) ?? null);

/** The newest runs with a text in their name or metadata, or with a credential, at most this many. */
const LIKE_MAX = 500;

/** The ids to which other filters than those of the list's query narrow it; null: any. */
async function findAmong(
  db: Database,
  query: RunQuery,
  accountIds: readonly string[] | null,
): Promise<readonly string[] | null> {
  const found = [
    query.ids ?? null,
    query.q === undefined ? null : await findRunsLike(db, query.q, accountIds),
    query.credential === undefined ? null : await listRunsWithCredential(db, query.credential, LIKE_MAX),
  ];
  const [first = null, ...others] = found.filter((ids) => ids !== null);
  return first && others.reduce((left, ids) => left.filter((id) => ids.includes(id)), first);
}

async function findRunsLike(
  db: Database,
  text: string,
  accountIds: readonly string[] | null,
): Promise<readonly string[]> {
  const line = searchLine(text);
  return await findRunsWith(db, line, gramsOf(line), accountIds, LIKE_MAX);
}

/** `name=value`; a value may hold anything, a name no `=`. */
function readPair(text: string): { readonly name: string; readonly value: string } {
  const at = text.indexOf("=");
  if (at <= 0) throw invalidField("metadata", "`metadata` must be name=value.");
  return { name: text.slice(0, at), value: text.slice(at + 1) };
}

const iso = (at: Date | null): string | null => at?.toISOString() ?? null;
const textOf = (bytes: Buffer | null): string | null => bytes?.toString("utf8") ?? null;

function showListed(run: ListedRun, marks: RunMarks) {
  return {
    id: run.id,
    run_key: run.runKey,
    account: run.account,
    blueprint: run.blueprint,
    blueprint_version: run.blueprintVersion,
    name: textOf(run.name),
    status: run.status,
    progress_step: run.progressStep,
    created_at: run.createdAt.toISOString(),
    started_at: iso(run.startedAt),
    ended_at: iso(run.endedAt),
    failure: run.errorKind,
    failure_detail: run.errorDetail,
    metadata: readMetadata(run.metadata),
    purged_at: iso(run.purgedAt),
    ...marks.of(run),
  };
}

/** What a run waits for, and until when. */
const showWaiting = (run: DetailedRun) => ({
  waits_for: run.waitsFor,
  blueprint_wait: run.blueprintWait && { limit: run.blueprintWait.limit, has_key: run.blueprintWait.hasKey },
  throttle_wait: run.throttleWait,
  parked_at: iso(run.parkedAt),
  begins_at: iso(run.beginsAt),
  expires_at: iso(run.expiresAt),
  priority: run.priority,
  asks_again_at: iso(run.wakesAt),
  deadline_at: iso(run.deadlineAt),
  claimed_at: iso(run.claimedAt),
});

/**
 * Everything about one run that an operator may see: no input, output or secret. `seesAnswers`: whether a target's answer to a failed
 * request may be shown, which is end users' data like results. Throws Problem 404.
 */
export async function getRun(db: Database, reference: string, seesAnswers: boolean) {
  const parsed = readRunReference(reference);
  const found = parsed && (await findRunOfAnyAccount(db, parsed));
  const run = found && (await findDetailedRun(db, found.id));
  if (!run) throw notFound("Run");
  const [marks, steps, turns, usual, inputs, credentials, results, reviews] = await Promise.all([
    readMarks(db, [run]),
    listDetailedSteps(db, run.id),
    listStartedTurns(db, run.id),
    listUsualRecords(db, run.id),
    listInputSizes(db, run.id),
    listCredentialsOfRun(db, run.id),
    listResultSizes(db, run.id),
    listReviewsOfRun(db, run.id),
  ]);
  return {
    ...showListed(run, marks),
    failed_node: failedNodeOf(run),
    failed_step: await locateFailedStep(db, run, credentials),
    api_key_id: run.apiKeyId,
    started_by: run.startedBy,
    schedule: run.schedule,
    again_of: run.againOf,
    reruns: [...run.reruns],
    purge_reason: run.purgeReason,
    browser_wait: run.browserWait,
    ...showWaiting(run),
    retries: run.retries,
    lost_leases: run.lostLeases,
    ignored_keys: await explainIgnored(db, run),
    steps: steps.map((step) =>
      showStep(step, {
        usual: usual.find(({ nodeId }) => nodeId === step.nodeId)?.records ?? null,
        turns: turns.find(({ nodeId }) => nodeId === step.nodeId)?.turns ?? null,
        seesAnswers,
      }),
    ),
    nodes: nodesOf(run, steps, await planOf(db, run)),
    inputs: inputs.map((input) => ({
      ref_key: input.refKey,
      kind: input.kind,
      filename: textOf(input.filename),
      size_bytes: input.sizeBytes,
    })),
    credentials: credentials.map((each) => ({
      slot: each.slot,
      credential_id: each.credentialId,
      strategy: each.strategyId,
      strategy_version: each.strategyVersion,
      name: each.name,
      login_rejections: each.rejections,
      locked_until: iso(each.lockedUntil),
      is_deleted: each.isDeleted,
    })),
    results: results.map((each) => ({
      key: each.key,
      total_records: each.totalRecords,
      json_bytes: each.jsonBytes,
    })),
    reviews: reviews.map((each) => ({
      id: each.id,
      node: each.nodeId,
      status: each.status,
      created_at: each.createdAt.toISOString(),
      decided_at: iso(each.decidedAt),
    })),
  };
}

/** The ids of a run's nodes, each after those that it is taken from. Empty for a test login. */
async function planOf(
  db: Database,
  { accountId, blueprintId: id, blueprintVersion: version }: DetailedRun,
): Promise<readonly string[]> {
  if (id === null || version === null) return [];
  const blueprint = await findCachedVersion(db, "blueprint", { accountId, id, version });
  return blueprint
    ? executionOrder(blueprint, new Map(blueprint.nodes.map((node) => [node.id, edgesOf(node)])))
    : [];
}

/** The nodes that have no entry in the journal, in the order in which they began; in the plan's, if they began together. */
function nodesOf({ tally }: DetailedRun, steps: readonly DetailedStep[], plan: readonly string[]) {
  const texts = [...steps.map((step) => step.tally), tally].map((lines) => lines?.toString("utf8") ?? "");
  return readTallies(texts, plan).map(({ node, state, fromMs, toMs, total, valid }) => ({
    node,
    status: state,
    started_at: clockText(fromMs),
    ended_at: clockText(toMs),
    records_total: total,
    records_valid: valid,
  }));
}

/** A node without effects has no step: only the failure's message, which begins with its id, names it. */
const failedNodeOf = ({ errorDetail }: DetailedRun): string | null =>
  /^Node ([\w-]+)(?::| took )/.exec(errorDetail ?? "")?.[1] ?? null;

/** `usual`: the step's number of records in other runs; `turns`: iterations that a loop has begun. */
interface StepExtras {
  readonly usual: number | null;
  readonly turns: number | null;
  readonly seesAnswers: boolean;
}

function showStep(step: DetailedStep, { usual, turns, seesAnswers }: StepExtras) {
  const lines = linesOf(step.log);
  return {
    node: step.nodeId,
    status: step.status === "done" && lines.some(isSkipped) ? ("skipped" as const) : step.status,
    attempts: step.attempts,
    started_at: step.startedAt.toISOString(),
    ended_at: iso(step.endedAt),
    duration_ms: step.endedAt && step.endedAt.getTime() - step.startedAt.getTime(),
    output: step.outputKind,
    records_total: step.recordsTotal,
    records_valid: step.recordsValid,
    records_usual: usual,
    turns_begun: turns,
    turns_total: step.turnsTotal,
    error: step.errorDetail,
    answer: seesAnswers ? (lines.map(readAnswerLine).find((answer) => answer !== null) ?? null) : null,
    evidence: seesAnswers ? lines.flatMap((line) => readEvidenceLine(line) ?? []).map(showEvidence) : [],
    log: lines.filter((line) => readAnswerLine(line) === null && readEvidenceLine(line) === null),
  };
}

const showEvidence = ({ reason, step, url, outline, console, refused, picture }: StoredEvidence) => ({
  reason,
  step,
  url,
  outline,
  console: [...console],
  refused: refused.map(({ origin, count }) => ({ origin, count })),
  has_picture: picture !== null,
});

/** The picture of the evidence with this index, as a PNG. Throws Problem 404. */
export async function readPicture(
  { db, blobs }: Needs<"db" | "blobs">,
  named: { readonly run: string; readonly node: string; readonly index: string },
): Promise<AsyncIterable<Uint8Array>> {
  const parsed = readRunReference(named.run);
  const run = parsed && (await findRunOfAnyAccount(db, parsed));
  const step = run && (await listDetailedSteps(db, run.id)).find(({ nodeId }) => nodeId === named.node);
  const evidence = step && linesOf(step.log).flatMap((line) => readEvidenceLine(line) ?? []);
  const picture = evidence?.[Number(named.index)]?.picture ?? null;
  if (picture === null) throw notFound("Picture");
  return blobs.open(picture);
}

/** A step's log has one JSON object per line, and may be empty. */
const linesOf = (log: Buffer | null): Json[] =>
  (log?.toString("utf8") ?? "")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Json);

/** The run's ignored keys, each with the nearest known one (docs/api.md#triggers). */
async function explainIgnored(db: Database, run: DetailedRun) {
  const names = JSON.parse(run.ignoredKeys.toString("utf8")) as readonly string[];
  if (names.length === 0) return [];
  const blueprint =
    run.blueprintId === null || run.blueprintVersion === null
      ? undefined
      : await findCachedVersion(db, "blueprint", {
          accountId: run.accountId,
          id: run.blueprintId,
          version: run.blueprintVersion,
        });
  const inputs = blueprint?.nodes.filter(({ type }) => type === "input") ?? [];
  const known = [
    "credential_id",
    "run_name",
    ...inputs.map(refKeyOf),
    ...(blueprint?.metadata ?? []).map(({ name }) => name),
  ];
  return names.map((name) => ({ name, did_you_mean: nearestName(name, known) ?? null }));
}
