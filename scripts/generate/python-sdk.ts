import { readFile } from "node:fs/promises";
import { openApiDocument } from "./openapi-document.ts";
import { WEBHOOK_EVENT } from "./public-api/webhook-events.ts";
import type { OperationObject, SchemaObject } from "./openapi-types.ts";

const METHODS = ["put", "get", "post", "delete"] as const;
const SIMPLE: Readonly<Record<string, string>> = {
  string: "str",
  integer: "int",
  number: "float",
  boolean: "bool",
  null: "None",
};

/** `sdk/python/latchkey/_types.py`: the schemas of `openapi.json` as types, and where each operation is. */
export async function pythonTypes(): Promise<string> {
  const { components, paths } = openApiDocument();
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation: OperationObject | undefined = item[method];
      if (!operation) return [];
      const isVersioned = item.servers === undefined ? "True" : "False";
      return [`    "${operation.operationId}": ("${method.toUpperCase()}", "${path}", ${isVersioned}),`];
    }),
  );
  const [classes, aliases] = [true, false].map((isClass) =>
    Object.entries(components.schemas)
      .map(([name, schema]) => declare(name, schema))
      .filter((text) => text.startsWith("class ") === isClass),
  ) as [string[], string[]];
  return [
    "# Written by `npm run generate` from openapi/openapi.json.",
    "from __future__ import annotations",
    "",
    "from typing import Any, NotRequired, TypedDict, Union",
    "",
    ...classes,
    // After what they name, so that also programs can resolve them.
    ...aliases,
    `#: ${WEBHOOK_EVENT.description}`,
    `${WEBHOOK_EVENT.name} = Union[${WEBHOOK_EVENT.choices.join(", ")}]`,
    "",
    "#: Each operation's method, its path, and whether the path is below `/api/v1`.",
    "OPERATIONS: dict[str, tuple[str, str, bool]] = {",
    ...operations,
    "}",
    "",
  ].join("\n");
}

/** A type of the language itself has this name. */
const nameOf = (schema: string): string => (schema === "Error" ? "ErrorEnvelope" : schema);

function declare(schemaName: string, schema: SchemaObject): string {
  const name = nameOf(schemaName);
  const { description = "", properties, required = [], additionalProperties } = schema;
  if (!properties || additionalProperties) return `#: ${description}\n${name} = ${typeOf(schema)}\n`;
  const fields = Object.entries(properties).flatMap(([key, property]) => {
    const type = typeOf(property);
    const line = `    ${key}: ${required.includes(key) ? type : `NotRequired[${type}]`}`;
    return property.description === undefined ? [line] : [`    #: ${property.description}`, line];
  });
  return [`class ${name}(TypedDict):`, `    """${description}"""`, "", ...fields, ""].join("\n");
}

function typeOf(schema: SchemaObject): string {
  if (schema.$ref !== undefined) return nameOf(schema.$ref.slice(schema.$ref.lastIndexOf("/") + 1));
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return `Union[${choices.map(typeOf).join(", ")}]`;
  if (schema.type === undefined) return "Any";
  const types = (typeof schema.type === "string" ? [schema.type] : schema.type).map((type) => {
    if (type === "array") return `list[${typeOf(schema.items ?? {})}]`;
    if (type === "object")
      return `dict[str, ${schema.properties ? "Any" : typeOf(schema.additionalProperties ?? {})}]`;
    const simple = SIMPLE[type];
    if (simple === undefined) throw new Error(`The SDK's types cannot express the type ${type}`);
    return simple;
  });
  return types.length === 1 ? (types[0] ?? "Any") : `Union[${types.join(", ")}]`;
}

/** From the client for asyncio to the one without. */
const WITHOUT_ASYNCIO: readonly (readonly [RegExp, string])[] = [
  [/^import asyncio\n/m, ""],
  [/asyncio\.sleep/g, "time.sleep"],
  [/async (def|for|with) /g, "$1 "],
  [/await /g, ""],
  [/Awaitable\[(\w+)\]/g, "$1"],
  [/Awaitable, /g, ""],
  [/AsyncIterator/g, "Iterator"],
  [/\b(_?)Async(?=[A-Z])/g, "$1"],
  [/__a(enter|exit)__/g, "__$1__"],
  [/\.a(read|close|iter_lines|iter_raw)\(/g, ".$1("],
];

/** `sdk/python/latchkey/_client.py`, from `_async_client.py`. */
export async function pythonClient(root: URL): Promise<string> {
  const text = await readFile(new URL("sdk/python/latchkey/_async_client.py", root), "utf8");
  const changed = WITHOUT_ASYNCIO.reduce((all, [from, to]) => all.replace(from, to), text);
  const [callable, iterator] = ["Any, Iterator, Callable,", "Any, Callable, Iterator,"];
  return `# Written by \`npm run generate\` from _async_client.py.\n${changed.replace(callable, iterator)}`;
}
