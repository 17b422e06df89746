import { reachable, type Graph } from "../imports/graph.ts";

/** A test file with what it is likely to say of a changed file. */
export interface Covering {
  readonly file: string;
  readonly cpuSeconds: number;
}

/** Of a test file that has no time yet: half of them take less. */
const UNKNOWN_SECONDS = 1.3;
/** What a process costs for itself, and the start of a service. */
const LEAST_SECONDS = 0.3;

/**
 * The test files that reach a file by their imports, those first that are the most likely to notice a change in it: that import it
 * themselves, that name it or what it exports, that stand in a folder of its name; then by what they cost. At most `budget` CPU seconds
 * together, the first one in any case.
 */
export function coveringTests(
  changed: { readonly file: string; readonly exports: readonly string[] },
  tests: ReadonlyMap<string, string>,
  graph: Graph,
  { times, budget }: { readonly times: ReadonlyMap<string, number>; readonly budget: number },
): readonly Covering[] {
  const words = wordsOf(changed.file);
  const ranked = [...tests]
    .filter(([test]) => reachable(graph, [test]).has(changed.file))
    .map(([file, text]) => {
      const cpuSeconds = Math.max(times.get(file) ?? UNKNOWN_SECONDS, LEAST_SECONDS);
      const direct = graph.get(file)?.includes(changed.file) === true ? 6 : 0;
      const named = changed.exports.some((name) => text.includes(name)) ? 4 : 0;
      const own = wordsOf(file);
      const alike = 2 * words.filter((word) => own.includes(word)).length;
      return { file, cpuSeconds, likely: 1 + direct + named + alike };
    })
    .toSorted((one, other) => other.likely / other.cpuSeconds ** 0.5 - one.likely / one.cpuSeconds ** 0.5);
  let spent = 0;
  return ranked.filter(({ cpuSeconds }, at) => {
    const isIn = at === 0 || spent + cpuSeconds <= budget;
    if (isIn) spent += cpuSeconds;
    return isIn;
  });
}

const PLAIN = new Set(["src", "test", "ts", "pg", "e2e", "db", "of", "and", "run", "runs"]);

/** `src/db/runs/retry-budget.ts` is about `retry` and `budget`; a plural is its singular. */
function wordsOf(file: string): readonly string[] {
  return [...new Set(file.split(/[/.-]/).map((word) => word.replace(/s$/, "")))].filter(
    (word) => !PLAIN.has(word) && word.length > 2,
  );
}
