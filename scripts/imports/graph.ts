import { dirname, join } from "node:path/posix";

/** Files by their path from the root of the repository, with `/`. */
export type Texts = ReadonlyMap<string, string>;

/** The files that each file names, those alone that are among the texts. */
export type Graph = ReadonlyMap<string, readonly string[]>;

/** Static imports of values and types, re-exports, and `import()`. */
const IMPORTS: readonly RegExp[] = [
  /^(?:import|export)\s[^"';]*?\bfrom\s+"([^"]+)"/gm,
  /^import\s+"([^"]+)"/gm,
  /\bimport\(\s*"([^"]+)"\s*\)/g,
];
/** The programs of threads and processes, and folders whose files are all loaded: `types/`. */
const PROGRAMS = /\bnew URL\(\s*"(\.[^"]+|[\w/-]+\/)",\s*import\.meta\.url\s*\)/g;

/** `aliases` is `imports` of package.json: `{"#lib/*": "./src/lib/*"}`. */
export function importGraph(
  texts: Texts,
  aliases: Readonly<Record<string, string>>,
  { withPrograms = false }: { readonly withPrograms?: boolean } = {},
): Graph {
  const patterns = withPrograms ? [...IMPORTS, PROGRAMS] : IMPORTS;
  return new Map(
    [...texts].map(([file, text]) => [
      file,
      patterns
        .flatMap((pattern) => [...text.matchAll(pattern)].map(([, specifier = ""]) => specifier))
        .flatMap((specifier) => resolve(file, specifier, aliases) ?? [])
        .flatMap((target) => (target.endsWith("/") ? filesIn(target, texts) : target))
        .filter((target) => texts.has(target)),
    ]),
  );
}

function resolve(from: string, specifier: string, aliases: Readonly<Record<string, string>>): string | null {
  if (specifier.startsWith(".") || specifier.endsWith("/")) return join(dirname(from), specifier);
  for (const [alias, target] of Object.entries(aliases)) {
    const prefix = alias.replace("*", "");
    if (specifier.startsWith(prefix)) return join(target.replace("*", specifier.slice(prefix.length)));
  }
  return null;
}

const filesIn = (folder: string, texts: Texts): readonly string[] =>
  [...texts.keys()].filter((file) => dirname(file) === folder.slice(0, -1));

/** The files that these reach, in any number of steps; a start is among them only when a circle leads back to it. */
export function reachable(graph: Graph, starts: readonly string[]): ReadonlySet<string> {
  const found = new Set<string>();
  const open = [...starts];
  for (let file = open.pop(); file !== undefined; file = open.pop())
    for (const next of graph.get(file) ?? []) {
      if (found.has(next)) continue;
      found.add(next);
      open.push(next);
    }
  return found;
}
