import { matchesGlob } from "node:path/posix";
import { reachable, type Graph } from "./graph.ts";

/** What a process, a thread or a browser begins with, and what the program finds by scanning a folder. */
const ENTRIES: readonly string[] = [
  "src/main.mjs",
  "src/nodes/types/*.ts",
  "src/strategies/types/*.ts",
  "src/hosted/browser/*.ts",
  // What operators' own node files import: the package's export `latchkey/node`.
  "src/nodes/author.ts",
];

/** Files of `src/` that scripts and tests alone read, each with why it stands there. */
const FOR_OTHERS: Readonly<Record<string, string>> = {
  "src/contract/*.ts": "the public API: its documents are made of it, and tests hold every answer against it",
};

/** The files of `src/` that nothing at run time needs. `graph` must have the programs of threads and processes. */
export function findUnreached(graph: Graph): readonly string[] {
  const own = [...graph.keys()].filter((file) => file.startsWith("src/"));
  const entries = own.filter((file) => ENTRIES.some((entry) => matchesGlob(file, entry)));
  const reached = reachable(graph, entries);
  const isForOthers = (file: string): boolean =>
    Object.keys(FOR_OTHERS).some((pattern) => matchesGlob(file, pattern));
  return own.filter((file) => !entries.includes(file) && !reached.has(file) && !isForOthers(file));
}
