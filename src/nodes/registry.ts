import { readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { NodeType } from "./define-node.ts";

/** Types of design page 3 that aren't built yet. `apply` refuses them by name. */
export const UNBUILT_NODE_TYPES = ["browser"] as const;

/** A type is one word. The files with a hyphen are parts of one; some are for a thread, and not to be loaded here. */
const IS_TYPE = /^[a-z0-9_]+\.ts$/u;

/** Every node type in a folder: the files that export `node`. Throws when a file's name isn't the type that it defines. */
export async function loadNodeTypes(folder: string): Promise<ReadonlyMap<string, NodeType>> {
  const types = new Map<string, NodeType>();
  const files = readdirSync(folder).filter((file) => IS_TYPE.test(file) && file !== "registry.ts");
  for (const file of files.sort()) {
    const loaded = (await import(pathToFileURL(join(folder, file)).href)) as { readonly node?: NodeType };
    if (loaded.node === undefined) continue;
    const { type } = loaded.node;
    if (type !== basename(file, ".ts"))
      throw new Error(`The node type "${type}" must be in a file named ${type}.ts, not in ${file}.`);
    types.set(type, loaded.node);
  }
  return types;
}

/** Every node type that a Blueprint may use, by name. Adding one is adding a file to this folder. */
export const nodeTypes: ReadonlyMap<string, NodeType> = await loadNodeTypes(
  fileURLToPath(new URL(".", import.meta.url)),
);
