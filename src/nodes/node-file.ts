import { existsSync } from "node:fs";
import { registerHooks } from "node:module";
import { basename, extname } from "node:path";
import { pathToFileURL } from "node:url";
import { COMMON_NODE_KEYS } from "#domain/blueprint.ts";
import { EXPRESSION, TEMPLATE } from "#domain/expression.ts";
import { isJsonObject, type Json } from "#domain/json.ts";
import { compileAuthorSchema } from "#domain/record-schema.ts";
import { defineNode, type NodeDefinition, type NodeType } from "./define-node.ts";

type ReadNodeFile =
  | { readonly ok: true; readonly node: NodeType }
  | { readonly ok: false; readonly problems: readonly string[] };

const TYPE_NAME = /^[a-z][a-z0-9_]{0,62}$/;
const EXAMPLE =
  'write `export const node = defineNode({ type, schema, run })`, with `defineNode` from "latchkey/node"';
const FORMATS: Readonly<Record<string, string>> = { ".ts": "module-typescript", ".mts": "module-typescript" };
/** Scopes for an author's expressions. Those of logins would have access to secrets. */
const SCOPES: readonly string[] = ["run", "record", "response", "request", "write", "record-write", "verify"];

const files = new Set<string>();

let isHooked = false;

/**
 * Resolves `latchkey/node` to this program's module, wherever the importing file is: the operator's folder does not contain our
 * package. An operator's file is treated as an ES module even in a folder without a package.json. Only for the first of these files,
 * because from then on every import takes longer.
 */
function hookImports(): void {
  if (isHooked) return;
  isHooked = true;
  registerHooks({
    resolve: (specifier, context, next) => {
      if (specifier === "latchkey/node")
        return { url: new URL("./author.ts", import.meta.url).href, shortCircuit: true };
      const found = next(specifier, context);
      return files.has(found.url)
        ? { ...found, format: FORMATS[extname(new URL(found.url).pathname)] ?? "module" }
        : found;
    },
  });
}

/** Loads a file with a node type. Never throws: every problem is returned, with the file and the remedy. */
export async function readNodeFile(file: string): Promise<ReadNodeFile> {
  const wrong = (...problems: readonly string[]): ReadNodeFile => ({
    ok: false,
    problems: problems.map((problem) => `${file}: ${problem}.`),
  });
  if (!existsSync(file))
    return wrong("the file does not exist; correct the path, or remove it from the list");
  const { href } = pathToFileURL(file);
  hookImports();
  files.add(href);
  let loaded: { readonly node?: unknown; readonly default?: unknown };
  try {
    loaded = (await import(href)) as typeof loaded;
  } catch (error) {
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    return wrong(`it can't be loaded (${text.split("\n")[0]}); fix the file`);
  }
  const exported = loaded.node ?? loaded.default;
  if (typeof exported !== "object" || exported === null)
    return wrong(`it does not export \`node\`; ${EXAMPLE}`);
  const definition = exported as Partial<NodeDefinition>;
  const problems = [...checkName(definition.type, file), ...checkParts(definition)];
  if (problems.length > 0) return wrong(...problems);
  return { ok: true, node: defineNode(definition as NodeDefinition) };
}

function checkName(type: unknown, file: string): readonly string[] {
  if (typeof type !== "string") return [`the node has no \`type\`; ${EXAMPLE}`];
  if (!TYPE_NAME.test(type))
    return [
      `the type ${JSON.stringify(type)} must have lower-case letters, digits and \`_\`, and begin with a letter; rename it`,
    ];
  const name = basename(file, extname(file));
  return name === type
    ? []
    : [`it defines the type \`${type}\`, so its name must be ${type}${extname(file)}; rename one of the two`];
}

function checkParts({ schema, run, gives, isGate, hasTurns }: Partial<NodeDefinition>): readonly string[] {
  const problems: string[] = [];
  if (typeof run !== "function") problems.push(`the node has no function \`run\`; ${EXAMPLE}`);
  // Some capabilities are reserved for the built-in types.
  if (givesResults(gives))
    problems.push(
      "only the built-in `output` can write results; output records instead, and use an `output` node",
    );
  if (isGate !== undefined) problems.push("only the built-in `review` is a gate; remove `isGate`");
  if (hasTurns !== undefined) problems.push("only the built-in `loop` has iterations; remove `hasTurns`");
  return [...problems, ...checkSchema(schema)];
}

/** The function may fail, because there is no config yet. */
function givesResults(gives: NodeDefinition["gives"]): boolean {
  try {
    return (typeof gives === "function" ? gives({}) : gives) === "results";
  } catch {
    return false;
  }
}

function checkSchema(given: unknown): readonly string[] {
  const schema = JSON.parse(JSON.stringify(given ?? null)) as Json;
  if (!isJsonObject(schema) || schema["type"] !== "object")
    return ['`schema` must be a JSON Schema of the node\'s own keys; begin with `type: "object"`'];
  const keys = Object.keys(isJsonObject(schema["properties"]) ? schema["properties"] : {});
  const taken = keys.filter((key) => (COMMON_NODE_KEYS as readonly string[]).includes(key));
  const scopes = [...wrongScopes(schema)];
  const compiled = compileAuthorSchema(withoutAnnotations(schema));
  return [
    ...taken.map(
      (key) => `\`schema\` has the key \`${key}\`, which every node has already; choose another name`,
    ),
    ...scopes.map(
      (scope) => `\`schema\` marks an expression with the scope ${scope}; use one of ${SCOPES.join(", ")}`,
    ),
    ...("problem" in compiled ? [`\`schema\`: ${compiled.problem}; fix it`] : []),
  ];
}

function* wrongScopes(value: Json): Generator<string> {
  if (Array.isArray(value)) for (const item of value) yield* wrongScopes(item);
  if (!isJsonObject(value)) return;
  for (const [key, part] of Object.entries(value)) {
    if ((key === EXPRESSION || key === TEMPLATE) && !(typeof part === "string" && SCOPES.includes(part)))
      yield JSON.stringify(part);
    else yield* wrongScopes(part);
  }
}

function withoutAnnotations(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutAnnotations);
  if (!isJsonObject(value)) return value;
  const left = Object.entries(value).filter(([key]) => key !== EXPRESSION && key !== TEMPLATE);
  return Object.fromEntries(left.map(([key, part]) => [key, withoutAnnotations(part)]));
}
