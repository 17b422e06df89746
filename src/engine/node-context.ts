import type { StepBrowser } from "#answers/browser/step-browser.ts";
import type { BlueprintNode } from "#domain/blueprint.ts";
import type { BoundExpressions } from "#domain/expression.ts";
import { limits } from "#domain/limits.ts";
import { must } from "#lib/assert.ts";
import { NodeFailure, type Flow, type NodeContext } from "#nodes/define-node.ts";
import { resultKeysOf } from "#nodes/types/output.ts";
import type { TargetSession } from "./login/target-session.ts";
import { loopTurns } from "./loop-turns.ts";
import { nodeWrites } from "./node-writes.ts";
import { keepEvidence } from "./outputs/keep-evidence.ts";
import { writeResult } from "./outputs/record-outputs.ts";
import { bothNets } from "./redaction/both-nets.ts";
import { RunStopped } from "./run-ended.ts";
import type { NodeOutput, PlannedNode, RunContext } from "./run-context.ts";
import { watchAnswers, type StepNotes } from "./step-notes.ts";
import { decodeRecords } from "#domain/record-lines.ts";
import { encodeRecords } from "./outputs/spool.ts";
import { abortableBatches, abortableExpressions } from "./until-aborted.ts";

const RANDOM_STEPS = 1_000_000;

/** Waits for a browser's place, which counts towards no timeout, and notes for how long. */
const standStill =
  (run: RunContext, note: NodeContext["log"]) =>
  async (wait: () => Promise<void>): Promise<void> => {
    const beganMs = run.services.clock.now();
    await run.journal.standStill(wait);
    note("waited for a browser", { waitedMs: Math.round(run.services.clock.now() - beganMs) });
  };

/** Work with a browser whose page operators may watch. */
const shown =
  <T>({ journal }: RunContext, work: (browser: StepBrowser) => Promise<T>) =>
  async (browser: StepBrowser): Promise<T> =>
    await journal.whileShown(browser, async () => await work(browser));

/** The capabilities of one node, and nothing else: no database, no file, no secret. */
export function nodeContext(
  run: RunContext,
  planned: PlannedNode,
  expressions: BoundExpressions,
  signal: AbortSignal,
  notes: StepNotes,
): NodeContext {
  const { node } = planned;
  const { log } = notes;
  const target = watchAnswers(
    node.credential === null ? run.openTarget : must(run.targets.get(node.credential), "the slot's login"),
    notes,
  );
  let opened: ReturnType<typeof nodeWrites> | null = null;
  const writes = () => (opened ??= nodeWrites(run, node.id, target, signal));
  const note: NodeContext["log"] = (message, fields) => {
    if (log.length < limits.stepLogLinesMax) log.push(run.redact.json({ message, ...fields }));
  };
  const whileWaiting = standStill(run, note);
  return {
    node,
    signal,
    from: planned.edges.map((id) => readAgain(must(run.outputs.get(id), `the output of ${id}`), signal)),
    expressions: abortableExpressions(expressions, signal),
    input: (refKey) => run.inputs.get(refKey) ?? { form: "absent" },
    send: async (request) =>
      await target.send(request, signal, async (bytes) => await run.scratch.keep(bytes)),
    browse: async (work, { downloadBytesMax } = {}) => {
      const means = { nets: bothNets(run.door, run.redact), downloadBytesMax, whileWaiting };
      return await writes().toItsEnd(async (late) => await target.browse(late, means, shown(run, work)));
    },
    keepFile: async (bytes) => await run.scratch.keep(bytes),
    keepEvidence: async (evidence) => {
      run.onEvidence?.(node.id, evidence);
      const isFull = log.length >= limits.stepLogLinesMax;
      if (!isFull) log.push(await keepEvidence(run, evidence));
    },
    turns:
      planned.type.hasTurns === true
        ? loopTurns(run, planned, (inner, step) => nodeContext(inner, step, expressions, signal, notes))
        : null,
    get writes() {
      return writes();
    },
    review: async (records, ask) => {
      if (planned.type.isGate !== true) throw new NodeFailure("only a `review` node may ask a person.");
      return await run.journal.review(run, planned, records, ask);
    },
    takeSlot: slotsOf(run, node.id, target, signal),
    askAgain: async ({ ordinal = 0, ...times }) =>
      await run.journal.askAgain({ nodeId: node.id, ordinal }, times, signal),
    takeRetry: async () => await takeRetry(run),
    sleep: async (ms) => await run.services.clock.sleep(ms, signal),
    random: () => run.services.random.integer(0, RANDOM_STEPS) / RANDOM_STEPS,
    writeResult: resultWriter(run, planned),
    spill: async (batches) => {
      const records = encodeRecords(abortableBatches(batches, signal), run.redact, { total: 0, valid: 0 });
      const reopen = await run.scratch.keep(records);
      return () => abortableBatches(decodeRecords(reopen()), signal);
    },
    log: note,
    warn: (why) => {
      const message = `warning: ${why}`;
      note(message);
      run.onWarning?.(node.id, run.redact.message(message));
    },
  };
}

async function takeRetry({ journal }: RunContext): Promise<boolean> {
  const isGranted = await journal.takeRetry(limits.retriesMax);
  if (isGranted === undefined) throw new RunStopped("lease_lost");
  return isGranted;
}

const slotsOf =
  (run: RunContext, nodeId: string, target: TargetSession, signal: AbortSignal): NodeContext["takeSlot"] =>
  async (spacingMs, url) => {
    if (spacingMs !== null) await run.journal.takeSlot(nodeId, spacingMs, signal);
    const origin = target.originOf(url);
    if (origin !== null) await run.journal.takeHostSlot(origin, signal);
  };

/** The result key of an output's handle. */
export const resultKeyOf = (node: BlueprintNode, handle: string | null): string =>
  must(
    resultKeysOf(node).find((result) => result.handle === handle),
    "a handle of the output",
  ).key;

function resultWriter(run: RunContext, { node, gives }: PlannedNode): NodeContext["writeResult"] {
  return async (handle, batches) => {
    if (gives !== "results") throw new NodeFailure("only an `output` node may write results.");
    const key = resultKeyOf(node, handle);
    const result = await writeResult(
      run.services,
      { accountId: run.run.accountId, runId: run.run.id },
      key,
      batches,
      run.redact,
    );
    run.results.set(key, result);
  };
}

function readAgain(output: NodeOutput, signal: AbortSignal): Flow {
  return output.kind === "value"
    ? output
    : { kind: "records", batches: abortableBatches(output.open(), signal) };
}
