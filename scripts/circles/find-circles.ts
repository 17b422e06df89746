import { dirname, join } from "node:path/posix";

/** Files by their path from the root of the repository, with `/`. */
export type Texts = ReadonlyMap<string, string>;

/** Static imports of values and types, re-exports, and `import()`. The program of a thread or process is not imported. */
const IMPORTS: readonly RegExp[] = [
  /^(?:import|export)\s[^"';]*?\bfrom\s+"([^"]+)"/gm,
  /^import\s+"([^"]+)"/gm,
  /\bimport\(\s*"([^"]+)"\s*\)/g,
];

/**
 * The circles of imports among these files, each as the shortest way from a file back to it: `["a.ts", "b.ts", "a.ts"]`.
 * One for each group of files that reach each other. `aliases` is `imports` of package.json: `{"#lib/*": "./src/lib/*"}`.
 */
export function findCircles(
  texts: Texts,
  aliases: Readonly<Record<string, string>>,
): readonly (readonly string[])[] {
  const graph = new Map(
    [...texts].map(([file, text]) => [
      file,
      importsIn(text)
        .map((specifier) => resolve(file, specifier, aliases))
        .filter((target): target is string => target !== null && texts.has(target)),
    ]),
  );
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

const importsIn = (text: string): readonly string[] =>
  IMPORTS.flatMap((pattern) => [...text.matchAll(pattern)].map(([, specifier = ""]) => specifier));

function resolve(from: string, specifier: string, aliases: Readonly<Record<string, string>>): string | null {
  if (specifier.startsWith(".")) return join(dirname(from), specifier);
  for (const [alias, target] of Object.entries(aliases)) {
    const prefix = alias.replace("*", "");
    if (specifier.startsWith(prefix)) return join(target.replace("*", specifier.slice(prefix.length)));
  }
  return null;
}

type Graph = ReadonlyMap<string, readonly string[]>;

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
  const reached = reachable(graph, file);
  return [...reached].filter((each) => reachable(graph, each).has(file));
}

function reachable(graph: Graph, start: string): ReadonlySet<string> {
  const found = new Set<string>();
  const open = [start];
  for (let file = open.pop(); file !== undefined; file = open.pop())
    for (const next of graph.get(file) ?? []) {
      if (found.has(next)) continue;
      found.add(next);
      open.push(next);
    }
  return found;
}
