import { readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { ExplainedError } from "#lib/explained-error.ts";
import type { NodeType } from "./define-node.ts";
import { readNodeFile } from "./node-file.ts";

// Not `import()`: a top-level await would delay every module that imports this one.
const load = createRequire(import.meta.url);
/** Like this file: TypeScript, or JavaScript in an installed package. */
const EXTENSION = extname(import.meta.url);

/** Loads all node types of a folder. Each file exports `node` and is named after the type that it defines; otherwise this throws. */
export function loadNodeTypes(folder: string): ReadonlyMap<string, NodeType> {
  const types = new Map<string, NodeType>();
  const files = readdirSync(folder).filter((file) => file.endsWith(EXTENSION));
  for (const file of files.sort()) {
    const loaded = load(join(folder, file)) as { readonly node?: NodeType };
    if (loaded.node === undefined) continue;
    const { type } = loaded.node;
    if (type !== basename(file, EXTENSION))
      throw new Error(`The node type "${type}" must be in a file named ${type}${EXTENSION}, not in ${file}.`);
    types.set(type, loaded.node);
  }
  return types;
}

const builtIn = loadNodeTypes(fileURLToPath(new URL("types/", import.meta.url)));
const known = new Map(builtIn);

/**
 * Every node type that a Blueprint may use, by name: those of `types/` (to add one, add a file), and the operator's own once they
 * are loaded.
 */
export const nodeTypes: ReadonlyMap<string, NodeType> = known;

/** The operator's node files have problems, all of which are listed, each with its file and remedy. */
export class NodeFilesError extends ExplainedError {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(`LATCHKEY_NODE_FILES has problems:\n${problems.map((each) => `  ${each}`).join("\n")}`);
    this.problems = problems;
  }
}

/**
 * Adds the operator's own types: all of them, or none if one has a problem. Called once per process, before a type is looked up.
 * Returns their names by file. Throws NodeFilesError.
 */
export async function addNodeFiles(files: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const added = new Map<string, { readonly file: string; readonly type: NodeType }>();
  const problems: string[] = [];
  for (const file of files) {
    const read = await readNodeFile(file);
    if (!read.ok) {
      problems.push(...read.problems);
      continue;
    }
    const { type } = read.node;
    const other = added.get(type)?.file;
    if (builtIn.has(type)) problems.push(`${file}: the type \`${type}\` is built in; choose another name.`);
    else if (other !== undefined)
      problems.push(`${file}: ${other} already defines the type \`${type}\`; choose another name.`);
    else added.set(type, { file, type: read.node });
  }
  if (problems.length > 0) throw new NodeFilesError(problems);
  for (const [name, { type }] of added) known.set(name, type);
  nodeFiles = files;
  return new Map([...added].map(([name, { file }]) => [file, name]));
}

let nodeFiles: readonly string[] = [];

/** The files that `addNodeFiles` was called with, for threads that must load the same types. */
export const addedNodeFiles = (): readonly string[] => nodeFiles;

/** The remedy for an unknown type: it may be an operator's own that this process has not loaded. */
export const OWN_TYPE_REMEDY = "a type of your own needs its file in LATCHKEY_NODE_FILES";
