import { matchesGlob } from "node:path/posix";
import { reachable, type Graph } from "./graph.ts";

/** What a process, a thread or a browser begins with, and what the program finds by scanning a folder. */
const ENTRIES: readonly string[] = [
  "src/main.mjs",
  // An image compiles with it what it contains.
  "src/compile.mjs",
  "src/hosted/browser/*.ts",
  // What operators' own node files import: the package's export `latchkey/node`.
  "src/nodes/author.ts",
];

/** The files of `src/` that nothing at run time needs. `graph` must have the programs of threads and processes. */
export function findUnreached(graph: Graph): readonly string[] {
  const own = [...graph.keys()].filter((file) => file.startsWith("src/"));
  const entries = own.filter((file) => ENTRIES.some((entry) => matchesGlob(file, entry)));
  const reached = reachable(graph, entries);
  return own.filter((file) => !entries.includes(file) && !reached.has(file));
}
