import { reachable, type Graph } from "./graph.ts";

/**
 * The circles of imports, each as the shortest way from a file back to it: `["a.ts", "b.ts", "a.ts"]`. One for each group of
 * files that reach each other.
 */
export function findCircles(graph: Graph): readonly (readonly string[])[] {
  const circles: (readonly string[])[] = [];
  const seen = new Set<string>();
  for (const file of graph.keys()) {
    if (seen.has(file)) continue;
    const circle = shortestCircle(graph, file);
    if (circle === null) continue;
    circles.push(circle);
    for (const each of groupOf(graph, file)) seen.add(each);
  }
  return circles;
}

/** Breadth first, so the first way back is a shortest one. */
function shortestCircle(graph: Graph, start: string): readonly string[] | null {
  const cameFrom = new Map<string, string>();
  const queue = [start];
  for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
    for (const next of graph.get(file) ?? []) {
      if (next === start) return wayTo(file, cameFrom, start);
      if (cameFrom.has(next)) continue;
      cameFrom.set(next, file);
      queue.push(next);
    }
  }
  return null;
}

function wayTo(last: string, cameFrom: ReadonlyMap<string, string>, start: string): readonly string[] {
  const way = [start];
  for (let file: string | undefined = last; file !== undefined && file !== start; file = cameFrom.get(file))
    way.unshift(file);
  return [start, ...way];
}

/** The files that `file` reaches and that reach it. */
function groupOf(graph: Graph, file: string): readonly string[] {
  const reached = reachable(graph, [file]);
  return [...reached].filter((each) => reachable(graph, [each]).has(file));
}
