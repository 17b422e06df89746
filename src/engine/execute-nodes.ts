import type { Json } from "#domain/json.ts";
import type { Bound } from "#expressions/evaluator.ts";
import { refKeyOf } from "#nodes/define-node.ts";
import { executeNode } from "./execute-node.ts";
import { inputVariable } from "./read-inputs.ts";
import type { PlannedNode, RunContext } from "./run-context.ts";

/** A run before the variables of its expressions are known: its inputs produce them. */
export type UnboundRun = Omit<RunContext, "variables" | "expressions">;

/** Executes all nodes of a run, inputs first, each by `execute`; undefined: it is done already. */
export async function executeNodes(
  loose: UnboundRun,
  execute: (context: RunContext, planned: PlannedNode) => Promise<void> | undefined = executeNode,
): Promise<void> {
  const { plan, run } = loose;
  const metadata = JSON.parse(run.metadata.toString("utf8")) as { [name: string]: Json };
  const runVariable = { id: run.id, key: run.runKey, ...(run.name && { name: run.name.toString("utf8") }) };
  const bind = (inputs: Json): RunContext => bindVariables(loose, { inputs, metadata, run: runVariable });
  const isInput = (planned: { node: { type: string } }) => planned.node.type === "input";
  let context = bind({});
  // The `when` of an input sees the inputs without a `when`, and the earlier ones.
  for (const planned of plan.nodes
    .filter(isInput)
    .sort((a, b) => Number(a.node.when !== null) - Number(b.node.when !== null))) {
    if (planned.node.when !== null) context = bind(inputVariables(context));
    const executing = execute(context, planned);
    if (executing) await executing;
  }
  context = bind(inputVariables(context));
  for (const planned of plan.nodes) {
    if (isInput(planned) || context.outputs.has(planned.node.id)) continue;
    context.signal.throwIfAborted();
    const executing = execute(context, planned);
    if (executing) await executing;
  }
}

/** The variables are bound when an expression asks for them: small runs have none. */
function bindVariables(loose: UnboundRun, variables: { readonly [name: string]: Json }): RunContext {
  let bound: Bound | null = null;
  return {
    ...loose,
    variables,
    get expressions() {
      if (bound === null) loose.bindings.push((bound = loose.services.expressions.bind(variables)));
      return bound;
    },
  };
}

/** `$inputs`: the values of the input nodes, by refKey. */
function inputVariables(context: RunContext): { readonly [refKey: string]: Json } {
  const entries = context.plan.nodes.flatMap(({ node }): [string, Json][] => {
    const output = node.type === "input" ? context.outputs.get(node.id) : undefined;
    const variable = output?.kind === "value" ? inputVariable(output.value) : undefined;
    return variable === undefined ? [] : [[refKeyOf(node), variable]];
  });
  return Object.fromEntries(entries);
}
