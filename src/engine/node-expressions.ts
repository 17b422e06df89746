import type { BoundExpressions } from "#domain/expression.ts";
import type { Json } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import type { DataRecord } from "#domain/record.ts";
import { must } from "#lib/assert.ts";
import { NodeFailure } from "#nodes/define-node.ts";
import type { NodeOutput, PlannedNode, RunContext } from "./run-context.ts";

/** The run's variables, and `$nodes` for a node that reads it. */
export async function expressionsOf(run: RunContext, planned: PlannedNode): Promise<BoundExpressions> {
  if (planned.readsNodes.length === 0) return run.expressions;
  const nodes = await nodesVariable(run.outputs, planned.readsNodes);
  const bound = run.services.expressions.bind({ ...run.variables, nodes });
  run.bindings.push(bound);
  return bound;
}

/** `$nodes.<id>` for the nodes that the expressions name: the data of their records, or their value. */
async function nodesVariable(
  outputs: ReadonlyMap<string, NodeOutput>,
  ids: readonly string[],
): Promise<{ readonly [id: string]: Json }> {
  const nodes: Record<string, Json> = {};
  for (const id of ids) {
    const output = must(outputs.get(id), `the output of ${id}`);
    if (output.kind === "value") {
      if (output.value.form === "text") nodes[id] = output.value.text;
      if (output.value.form === "json") nodes[id] = output.value.json;
      continue;
    }
    const data: DataRecord["data"][] = [];
    for await (const batch of output.open()) {
      data.push(...batch.map((record) => record.data));
      if (data.length > limits.nodesVariableRecordsMax) {
        throw new NodeFailure(
          `$nodes.${id} has more than ${limits.nodesVariableRecordsMax} records; use \`from\` instead.`,
        );
      }
    }
    nodes[id] = data;
  }
  return nodes;
}
