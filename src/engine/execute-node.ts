import { StoreFailed } from "#blobs/store.ts";
import { isConnectionLost, isLockedOut } from "#db/connection/database-errors.ts";
import { ExpressionError } from "#domain/expression.ts";
import { OutboundError } from "#domain/http-exchange.ts";
import type { Json } from "#domain/json.ts";
import type { RecordBatches } from "#domain/record.ts";
import { decodeRecords } from "#domain/record-lines.ts";
import { must } from "#lib/assert.ts";
import { describeError } from "#lib/log.ts";
import { NodeFailure, type Flow } from "#nodes/define-node.ts";
import { resultKeysOf } from "#nodes/types/output.ts";
import { fixSource, noteTotal } from "./fix-source.ts";
import { checkpoint, noteFailure, noteWaiting } from "./journal.ts";
import { nodeContext } from "./node-context.ts";
import { expressionsOf } from "./node-expressions.ts";
import { RunFailure, RunQueued, RunParked, RunStopped } from "./run-ended.ts";
import type { NodeOutput, PlannedNode, RunContext } from "./run-context.ts";
import { bothNets } from "./redaction/both-nets.ts";
import { showAnswer } from "./redaction/show-answer.ts";
import { openLimit, type TimeLimit } from "./waiting/open-limit.ts";
import { encodeRecords, type RecordCounts } from "./outputs/spool.ts";
import { lastAnswer, newNotes, type StepNotes } from "./step-notes.ts";

/** Executes one node, unless the journal already has it. Throws RunFailure or RunStopped. */
export async function executeNode(run: RunContext, planned: PlannedNode): Promise<void> {
  const { node, type } = planned;
  const isItsOwn = type.isGate === true || type.timesRequests === true;
  const limit = node.timeoutMs === null || isItsOwn ? null : openLimit(run.services.clock, node.timeoutMs);
  const signal = limit ? AbortSignal.any([run.signal, limit.signal]) : run.signal;
  const notes = newNotes();
  const beganMs = run.services.clock.now();
  try {
    if (!(await isWanted(run, planned))) {
      await skip(run, planned);
      return;
    }
    // docs/api.md#runs: while the node runs, `progress_step` is its name.
    await show(run, node.milestone ?? "running");
    const execute = async (): Promise<Flow | null> => {
      await fixSource(run, planned);
      await noteTotal(run, planned);
      const flow = await type.run(await open(within(run, limit), planned, signal, notes), planned.config);
      // The door could not inspect the packed content before.
      return flow?.kind === "records" && type.unpacks?.(planned.config) === true
        ? { kind: "records", batches: run.door.enterRecords(flow.batches) }
        : flow;
    };
    const output =
      type.effect(planned.config) === "none"
        ? await executePureNode(run, planned, execute)
        : await checkpoint(run, planned, notes.log, execute);
    if (output) run.outputs.set(node.id, output);
  } catch (error) {
    // The reason why the run stops takes precedence: an error that a node throws while being stopped is only a consequence.
    if (run.signal.aborted) throw run.signal.reason;
    if (error instanceof RunParked && !(error instanceof RunQueued)) await noteWaiting(run, planned, notes);
    if (error instanceof RunParked || isServiceFailure(error)) throw error;
    const failure = limit?.signal.aborted ? overTime(node.id) : await failureWith(run, planned, error, notes);
    await noteFailure(run, planned, failure, notes.log, run.services.clock.now() - beganMs);
    throw failure;
  } finally {
    limit?.end();
  }
}

/** A wait that stops the run's clock stops the node's, too. */
function within(run: RunContext, limit: TimeLimit | null): RunContext {
  if (limit === null) return run;
  const { journal } = run;
  const standStill: typeof journal.standStill = async (wait) =>
    await limit.standStill(async () => await journal.standStill(wait));
  return { ...run, journal: { ...journal, standStill } };
}

/** Skips the update when the step is already shown: later writes of the node are fenced on their own. */
async function show(run: RunContext, step: string): Promise<void> {
  if (run.shown.step === step) return;
  if (!(await run.journal.moveStep(step))) throw new RunStopped("lease_lost");
  run.shown.step = step;
}

async function open(run: RunContext, planned: PlannedNode, signal: AbortSignal, notes: StepNotes) {
  return nodeContext(run, planned, await expressionsOf(run, planned), signal, notes);
}

/** A pure node streams: records are produced when its reader asks for them, and recomputed after a crash. */
async function executePureNode(
  run: RunContext,
  planned: PlannedNode,
  execute: () => Promise<Flow | null>,
): Promise<NodeOutput | null> {
  const { node } = planned;
  if (planned.gives === "results") {
    await run.tallies.time(node.id, execute, () => countResults(run, planned));
    return null;
  }
  if (planned.gives === "value") {
    const flow = must(await run.tallies.time(node.id, execute), "the node's value");
    return flow.kind === "value" ? flow : null;
  }
  const stream = async function* (): RecordBatches {
    const tally = run.tallies.begin(node.id);
    try {
      const flow = must(await execute(), "the node's records");
      if (flow.kind === "records")
        for await (const batch of flow.batches) {
          tally.count(batch);
          yield batch;
        }
      tally.state = "done";
    } catch (error) {
      // A later node reads the stream, but the failure belongs to this node.
      throw isServiceFailure(error) ? error : failureOf(run, planned, error);
    } finally {
      tally.end();
    }
  };
  const { milestone, timeoutMs } = node;
  // Milestones and timeouts only make sense for a node that is executed separately.
  if (!planned.kept && milestone === null && timeoutMs === null)
    return { kind: "records", open: stream, counts: null };
  return await keep(run, stream());
}

/** The records of all results of an output. */
const countResults = ({ results }: RunContext, { node }: PlannedNode): number =>
  resultKeysOf(node).reduce((sum, { key }) => sum + (results.get(key)?.totalRecords ?? 0), 0);

async function keep(run: RunContext, records: RecordBatches): Promise<NodeOutput> {
  const counts: RecordCounts = { total: 0, valid: 0 };
  const reopen = await run.scratch.keep(encodeRecords(records, run.redact, counts));
  return { kind: "records", open: () => decodeRecords(reopen()), counts };
}

/** A review that is not needed: its records pass unchanged. */
async function passThrough(run: RunContext, planned: PlannedNode): Promise<NodeOutput> {
  const sources = planned.edges.map((id) => must(run.outputs.get(id), `the output of ${id}`));
  const stream = async function* (): RecordBatches {
    for (const source of sources) if (source.kind === "records") yield* source.open();
  };
  return planned.kept ? await keep(run, stream()) : { kind: "records", open: stream, counts: null };
}

/**
 * Nodes after a skipped node see an empty set. Nodes after a skipped review see its input. A skipped output has its keys without
 * records.
 */
async function skip(run: RunContext, planned: PlannedNode): Promise<void> {
  run.tallies.skip(planned.node.id);
  if (planned.type.isGate === true) {
    run.outputs.set(planned.node.id, await passThrough(run, planned));
    return;
  }
  const nothing = async function* (): RecordBatches {};
  if (planned.gives === "results") {
    const context = nodeContext(run, planned, run.expressions, run.signal, newNotes());
    for (const { handle } of resultKeysOf(planned.node)) await context.writeResult(handle, nothing());
    return;
  }
  run.outputs.set(
    planned.node.id,
    planned.gives === "value"
      ? { kind: "value", value: { form: "absent" } }
      : { kind: "records", open: nothing, counts: { total: 0, valid: 0 } },
  );
}

/** docs/blueprints.md#nodes: a node whose `when` is false is skipped; the nodes after it see an empty set. */
async function isWanted(run: RunContext, planned: PlannedNode): Promise<boolean> {
  const { when } = planned.node;
  if (when === null) return true;
  // A review that was requested stays one, even if its `when` would now evaluate differently.
  if (planned.type.isGate === true && (await run.journal.isReviewAsked(planned.node.id))) return true;
  const expressions = await expressionsOf(run, planned);
  const variables: Record<string, Json> = {};
  if (planned.asksCounts) variables["counts"] = countsOf(run, planned);
  const wanted = await expressions.evaluate(when, { variables });
  if (wanted === undefined || typeof wanted === "boolean") return wanted === true;
  throw new NodeFailure("`when` must evaluate to true or false.");
}

function countsOf(run: RunContext, planned: PlannedNode): Json {
  const counts = { total: 0, valid: 0 };
  // The records of `from`, not of a join's `with`. An output with handles has no `from` and reads those of its handles.
  const { from } = planned.node;
  for (const id of from.length > 0 ? from : planned.edges) {
    const output = run.outputs.get(id);
    if (output?.kind !== "records" || !output.counts) continue;
    counts.total += output.counts.total;
    counts.valid += output.counts.valid;
  }
  return { ...counts, invalid: counts.total - counts.valid };
}

const overTime = (nodeId: string): RunFailure =>
  new RunFailure("timeout", `Node ${nodeId} took longer than its timeout.`);

/** Not a failure of the run: it is stopped, or continues when the database or the object store is back. */
const isServiceFailure = (error: unknown): boolean =>
  error instanceof RunStopped ||
  error instanceof StoreFailed ||
  isConnectionLost(error) ||
  isLockedOut(error);

/** The failure together with the answer that caused it, for operators. */
async function failureWith(
  run: RunContext,
  planned: PlannedNode,
  error: unknown,
  notes: StepNotes,
): Promise<RunFailure> {
  const failure = failureOf(run, planned, error);
  const isOfAnswer = error instanceof NodeFailure || error instanceof ExpressionError;
  const answer = error instanceof NodeFailure ? (error.answer ?? lastAnswer(notes)) : lastAnswer(notes);
  if (!isOfAnswer || answer === null) return failure;
  // A body in a file may be unavailable; it is only an explanation.
  const shown = await showAnswer(answer, run.redact, "node").catch(() => null);
  return new RunFailure(failure.kind, failure.message, { answer: shown });
}

const usualKind = ({ type, config }: PlannedNode): "data" | "target" =>
  type.isGate === true || type.effect(config) === "none" ? "data" : "target";

/** Converts anything that a node throws into the run's failure. Our own messages contain no data; others are not repeated. */
function failureOf(run: RunContext, planned: PlannedNode, error: unknown): RunFailure {
  if (error instanceof RunFailure) return error;
  // Only the node's own time limit aborts with this kind of signal.
  if (error instanceof DOMException && error.name === "TimeoutError") return overTime(planned.node.id);
  const place = `Node ${planned.node.id}: `;
  // Targets can influence them, for example by the host of a redirect, or by the names in a browser's page.
  const nets = bothNets(run.door, run.redact);
  if (error instanceof OutboundError) return new RunFailure("target", nets.message(place + error.message));
  if (error instanceof NodeFailure)
    return new RunFailure(error.kind ?? usualKind(planned), nets.message(place + error.message));
  if (error instanceof ExpressionError) return new RunFailure("data", place + error.message);
  run.services.log.error(
    { runId: run.run.id, node: planned.node.id, ...describeError(error) },
    "a node failed unexpectedly",
  );
  return new RunFailure("internal", `${place}an unexpected error (${describeError(error).error}).`);
}
