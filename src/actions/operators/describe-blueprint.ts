import { readExpressions } from "#actions/config/read-expressions.ts";
import { withCommonKeys } from "#actions/config/typed-config.ts";
import { readBlueprint, type BlueprintNode } from "#domain/blueprint.ts";
import { commonNodeKeys } from "#domain/config-schema.ts";
import type { Json, JsonObject } from "#domain/json.ts";
import { edgesOf, refKeyOf } from "#nodes/define-node.ts";
import { inputRulesOf } from "#nodes/types/input.ts";
import { stepIds } from "#nodes/loop/loop-steps.ts";
import { nodeTypes } from "#nodes/registry.ts";

/** Describes the inputs of a checked Blueprint and the connections of its nodes, for a form and a graph. */
export function describeBlueprint(document: JsonObject) {
  const blueprint = readBlueprint(document);
  const inputs = blueprint.nodes.filter(({ type }) => type === "input");
  return {
    hosts: [...blueprint.hosts],
    timeout_ms: blueprint.timeoutMs,
    retention_ms: blueprint.retentionMs,
    credentials: blueprint.credentials.map(({ slot, strategyId }) => ({ slot, strategy: strategyId })),
    metadata: blueprint.metadata.map(({ name, required, label }) => ({ name, label, is_required: required })),
    inputs: inputs.map((node) => {
      const rules = inputRulesOf(node.config);
      return {
        ref_key: refKeyOf(node),
        name: node.name,
        accepts: rules.accepts,
        is_required: rules.isNeeded,
        schema: node.config["schema"] ?? null,
      };
    }),
    graph: { nodes: blueprint.nodes.map(showNode), edges: edgesBetween(blueprint.nodes, document) },
  };
}

const showNode = (node: BlueprintNode) => ({
  id: node.id,
  type: node.type,
  name: node.name,
  ref_key: node.type === "input" ? refKeyOf(node) : null,
  gives: nodeTypes.get(node.type)?.gives(node.config) ?? "value",
  when: node.when,
  credential: node.credential,
  milestone: node.milestone,
  steps: [...stepIds(node.type === "loop" ? node.config : {})],
});

/** `flow`: a source in `from`. `reads`: a node that expressions read with `$nodes`. */
function edgesBetween(nodes: readonly BlueprintNode[], document: JsonObject) {
  const written = (Array.isArray(document["nodes"]) ? document["nodes"] : []) as readonly Json[];
  return nodes.flatMap((node, index) => {
    const flow = new Set(edgesOf(node));
    const type = nodeTypes.get(node.type);
    const uses = type
      ? readExpressions(withCommonKeys(commonNodeKeys, type), written[index] ?? null, []).uses
      : [];
    const read = new Set(uses.flatMap(({ name, parts }) => (name === "nodes" ? parts.slice(0, 1) : [])));
    return [
      ...[...flow].map((source) => ({ from: source, to: node.id, kind: "flow" as const })),
      ...[...read]
        .filter((id) => !flow.has(id))
        .map((source) => ({ from: source, to: node.id, kind: "reads" as const })),
    ];
  });
}
