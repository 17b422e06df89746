/** For each node id, the ids of the nodes whose results it uses. */
export type NodeDependencies = ReadonlyMap<string, readonly string[]>;

/**
 * The order in which the nodes of a checked Blueprint run: by dependency, otherwise as written (docs/blueprints.md#nodes).
 * `dependencies` come from the node types' edges and the expressions' `$nodes.<id>`.
 */
export function executionOrder(
  blueprint: { readonly nodes: readonly { readonly id: string }[] },
  dependencies: NodeDependencies,
): readonly string[] {
  const ids = blueprint.nodes.map((node) => node.id);
  const order: string[] = [];
  const done = new Set<string>();
  while (order.length < ids.length) {
    const next = ids.find(
      (id) => !done.has(id) && neededBy(id, ids, dependencies).every((source) => done.has(source)),
    );
    if (next === undefined)
      throw new Error(
        `Invariant violated: the nodes have a cycle: ${findCycle(ids, dependencies)?.join(" -> ")}`,
      );
    order.push(next);
    done.add(next);
  }
  return order;
}

/** The first cycle in document order, e.g. `["a", "b", "a"]`; undefined when there is none. Unknown ids are ignored. */
export function findCycle(
  ids: readonly string[],
  dependencies: NodeDependencies,
): readonly string[] | undefined {
  const acyclic = new Set<string>();
  for (const start of ids) {
    const trail: { readonly id: string; readonly left: string[] }[] = [];
    const enter = (id: string) => trail.push({ id, left: [...neededBy(id, ids, dependencies)] });
    if (!acyclic.has(start)) enter(start);
    for (let top = trail.at(-1); top !== undefined; top = trail.at(-1)) {
      const next = top.left.shift();
      if (next === undefined) {
        acyclic.add(top.id);
        trail.pop();
        continue;
      }
      const from = trail.findIndex(({ id }) => id === next);
      if (from >= 0) return [...trail.slice(from).map(({ id }) => id), next];
      if (!acyclic.has(next)) enter(next);
    }
  }
  return undefined;
}

function neededBy(id: string, ids: readonly string[], dependencies: NodeDependencies): readonly string[] {
  return (dependencies.get(id) ?? []).filter((source) => ids.includes(source));
}
