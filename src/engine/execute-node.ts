import type { Json } from "#domain/json.ts";
import type { RecordBatches } from "#domain/record.ts";
import { decodeRecords } from "#domain/record-lines.ts";
import { must } from "#lib/assert.ts";
import { NodeFailure, type Flow } from "#nodes/define-node.ts";
import { resultKeysOf } from "#nodes/types/output.ts";
import { fixSource, noteTotal } from "./fix-source.ts";
import { checkpoint, noteFailure, noteWaiting } from "./journal.ts";
import { countResults, executeAtOnce } from "./execute-at-once.ts";
import { nodeContext } from "./node-context.ts";
import { expressionsOf } from "./node-expressions.ts";
import { failureOf, failureWith, isServiceFailure, overTime } from "./node-failure.ts";
import { RunQueued, RunParked, RunStopped } from "./run-ended.ts";
import type { NodeOutput, PlannedNode, RunContext } from "./run-context.ts";
import { openLimit, type TimeLimit } from "./waiting/open-limit.ts";
import { encodeRecords, type RecordCounts } from "./outputs/spool.ts";
import { newNotes, type StepNotes } from "./step-notes.ts";

/** Executes one node, unless the journal already has it: at once if it can be. Throws RunFailure or RunStopped, or rejects with them. */
export function executeNode(run: RunContext, planned: PlannedNode): Promise<void> | undefined {
  const stream = (): RecordBatches =>
    streamOf(run, planned, async () => await runNode(run, planned, null, newNotes()));
  return executeAtOnce(run, planned, stream) ? undefined : executeInSteps(run, planned);
}

async function executeInSteps(run: RunContext, planned: PlannedNode): Promise<void> {
  const { node, type } = planned;
  const isItsOwn = type.isGate === true || type.timesRequests === true;
  const limit = node.timeoutMs === null || isItsOwn ? null : openLimit(run.services.clock, node.timeoutMs);
  const notes = newNotes();
  const beganMs = run.services.clock.now();
  try {
    if (!(await isWanted(run, planned))) {
      await skip(run, planned);
      return;
    }
    // docs/api.md#runs: while the node runs, `progress_step` is its name.
    await show(run, node.milestone ?? "running");
    const execute = async (): Promise<Flow | null> => await runNode(run, planned, limit, notes);
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

async function runNode(
  run: RunContext,
  planned: PlannedNode,
  limit: TimeLimit | null,
  notes: StepNotes,
): Promise<Flow | null> {
  const { type, config } = planned;
  await fixSource(run, planned);
  await noteTotal(run, planned);
  const signal = limit ? AbortSignal.any([run.signal, limit.signal]) : run.signal;
  const expressions = await expressionsOf(run, planned);
  const flow = await type.run(nodeContext(within(run, limit), planned, expressions, signal, notes), config);
  // The door could not inspect the packed content before.
  return flow?.kind === "records" && type.unpacks?.(config) === true
    ? { kind: "records", batches: run.door.enterRecords(flow.batches) }
    : flow;
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
  const stream = (): RecordBatches => streamOf(run, planned, execute);
  const { milestone, timeoutMs } = node;
  // Milestones and timeouts only make sense for a node that is executed separately.
  if (!planned.kept && milestone === null && timeoutMs === null)
    return { kind: "records", open: stream, counts: null };
  return await keep(run, stream());
}

async function* streamOf(
  run: RunContext,
  planned: PlannedNode,
  execute: () => Promise<Flow | null>,
): RecordBatches {
  const tally = run.tallies.begin(planned.node.id);
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
}

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
