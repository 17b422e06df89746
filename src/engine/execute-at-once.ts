import { must } from "#lib/assert.ts";
import { batchOf, type RecordBatches } from "#domain/record.ts";
import type { AtOnceContext, WholeFlow } from "#nodes/at-once.ts";
import { resultKeysOf } from "#nodes/types/output.ts";
import { resultKeyOf } from "./node-context.ts";
import { failureOf } from "./node-failure.ts";
import { smallResult } from "./outputs/record-outputs.ts";
import type { NodeOutput, PlannedNode, RunContext } from "./run-context.ts";

/**
 * Executes a pure node without waiting, if it and its sources are small: no promises, streams and contexts for each node of a small run. Its
 * counts, times and failures are those of `executeNode`. Records are made when their reader asks for them, as those of a stream. False:
 * nothing was done.
 */
export function executeAtOnce(run: RunContext, planned: PlannedNode, stream: () => RecordBatches): boolean {
  if (!planned.mayBeAtOnce || run.shown.step !== "running") return false;
  const { id } = planned.node;
  if (planned.gives === "records") {
    if (planned.kept) return false;
    run.outputs.set(id, recordsOnce(run, planned, stream));
    return true;
  }
  const flow = attempt(run, planned);
  if (flow?.kind === "value") run.outputs.set(id, flow);
  return flow !== null;
}

/** Records that are made once, and for a reader that needs a stream after all, read from memory. */
function recordsOnce(run: RunContext, planned: PlannedNode, stream: () => RecordBatches): NodeOutput {
  let made: WholeFlow | null = null;
  const whole = (): WholeFlow | null => (made ??= attempt(run, planned));
  return {
    kind: "records",
    open: () => (made?.kind === "records" ? batchOf(made.records) : stream()),
    counts: null,
    whole,
  };
}

/** null: it or a source is not small, or an expression needs a thread. */
function attempt(run: RunContext, planned: PlannedNode): WholeFlow | null {
  const { node, type, config, gives } = planned;
  const end = run.tallies.open(node.id);
  try {
    const from: WholeFlow[] = [];
    for (const id of planned.edges) {
      const output = must(run.outputs.get(id), `the output of ${id}`);
      const flow = output.kind === "value" ? output : (output.whole?.() ?? null);
      if (flow === null) return null;
      from.push(flow);
    }
    const flow = type.runAtOnce?.(contextOf(run, planned, from), config) ?? null;
    if (flow?.kind === "records")
      end("done", flow.records.length, flow.records.filter(({ isValid }) => isValid).length);
    else if (flow !== null) end("done", gives === "results" ? countResults(run, planned) : null, null);
    return flow;
  } catch (error) {
    const none = gives === "records" ? 0 : null;
    end("stopped", none, none);
    throw failureOf(run, planned, error);
  }
}

function contextOf(run: RunContext, { node }: PlannedNode, from: readonly WholeFlow[]): AtOnceContext {
  return {
    node,
    from,
    input: (refKey) => run.inputs.get(refKey) ?? { form: "absent" },
    evaluate: (sources, rows) => run.expressions.evaluateHere(sources, rows),
    writeResult: (handle, records) => {
      const result = smallResult(resultKeyOf(node, handle), records, run.redact);
      if (result !== null) run.results.set(result.key, result);
      return result !== null;
    },
  };
}

/** The records of all results of an output. */
export const countResults = ({ results }: RunContext, { node }: PlannedNode): number =>
  resultKeysOf(node).reduce((sum, { key }) => sum + (results.get(key)?.totalRecords ?? 0), 0);
