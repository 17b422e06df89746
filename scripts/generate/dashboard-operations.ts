import { readdirSync } from "node:fs";
import { OPERATOR_OPERATIONS } from "./operator-operations.ts";
import type { OperatorOperation } from "#contract/operator/operation.ts";
import { must } from "#lib/assert.ts";

const LINE_MAX = 110;

/** `ui/api/operations.ts`: every operation of the operator API as the dashboard calls it, with its types, from `src/contract/operator/`. */
export async function dashboardOperations(root: URL): Promise<string> {
  const moduleOf = await readModules(new URL("src/contract/operator/", root));
  const named = OPERATOR_OPERATIONS.map((operation) => ({
    operation,
    module: must(moduleOf.get(operation), `the file of src/contract/operator/ that has ${operation.id}`),
  }));
  const modules = [...new Set(named.map(({ module }) => module))].toSorted();
  return [
    "// Written by `npm run generate` from src/contract/operator/: the operations of the operator API, in the order of its document.",
    ...modules.map((module) => `import type * as ${module} from "#contract/operator/${module}.ts";`),
    `import { endpoint } from "./request.ts";`,
    "",
    ...named.map(({ operation, module }) => declare(operation, module)),
    "",
  ].join("\n");
}

/** The file of each operation, by its name without `.ts`. */
async function readModules(folder: URL): Promise<ReadonlyMap<unknown, string>> {
  const found = new Map<unknown, string>();
  for (const file of readdirSync(folder).filter((name) => name.endsWith(".ts"))) {
    const exported = (await import(new URL(file, folder).href)) as Record<string, unknown>;
    for (const value of Object.values(exported)) found.set(value, file.slice(0, -".ts".length));
  }
  return found;
}

function declare({ id, method, path }: OperatorOperation, module: string): string {
  const [start, end] = [`export const ${id} = endpoint<typeof ${module}.${id}>(`, ");"];
  const line = `${start}"${method}", "${path}"${end}`;
  return line.length <= LINE_MAX ? line : `${start}\n  "${method}",\n  "${path}",\n${end}`;
}
