import type { Blueprint, BlueprintNode } from "#domain/blueprint.ts";
import { nodeTypes } from "#nodes/registry.ts";

/** Ids of the nodes that write to other systems. */
export const writesOf = ({ nodes }: Pick<Blueprint, "nodes">): readonly string[] =>
  nodes.filter(({ type, config }) => nodeTypes.get(type)?.effect(config) === "write").map(({ id }) => id);

/**
 * Whether a Blueprint may write to other systems after a node: every node that this one does not read from, directly or indirectly,
 * may run later. A node whose type this process does not know is assumed to write.
 */
export function mayWriteAfter({ nodes }: Pick<Blueprint, "nodes">, nodeId: string): boolean {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const before = new Set<string>([nodeId]);
  const visit = (node: BlueprintNode | undefined): void => {
    for (const id of node?.from ?? [])
      if (!before.has(id)) {
        before.add(id);
        visit(byId.get(id));
      }
  };
  visit(byId.get(nodeId));
  return nodes.some(({ id, type, config }) => {
    const nodeType = nodeTypes.get(type);
    return !before.has(id) && (nodeType === undefined || nodeType.effect(config) === "write");
  });
}
