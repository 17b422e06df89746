import { openApiDocument } from "./openapi-document.ts";
import { WEBHOOK_EVENT } from "./public-api/webhook-events.ts";
import type { OperationObject, SchemaObject } from "./openapi-types.ts";

const METHODS = ["put", "get", "post", "delete"] as const;
const SIMPLE: Readonly<Record<string, string>> = {
  string: "string",
  integer: "number",
  number: "number",
  boolean: "boolean",
  null: "null",
};

/** `sdk/typescript/src/api-types.ts`: the schemas of `openapi.json` as types, and where each operation is. */
export async function sdkTypes(): Promise<string> {
  const { components, paths } = openApiDocument();
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation: OperationObject | undefined = item[method];
      if (!operation) return [];
      const place = { method: method.toUpperCase(), path, isVersioned: item.servers === undefined };
      return [`  /** ${operation.summary} */\n  ${operation.operationId}: ${JSON.stringify(place)},`];
    }),
  );
  return [
    "// Written by `npm run generate` from openapi/openapi.json.",
    "",
    ...Object.entries(components.schemas).map(([name, schema]) => declare(name, schema)),
    `/** ${WEBHOOK_EVENT.description} */`,
    `export type ${WEBHOOK_EVENT.name} = ${WEBHOOK_EVENT.choices.join(" | ")};`,
    "",
    "/** Each operation's method, its path, and whether the path is below `/api/v1`. */",
    "export const OPERATIONS = {",
    ...operations,
    "} as const;",
    "",
  ].join("\n");
}

/** A type of the language itself has this name. */
const nameOf = (schema: string): string => (schema === "Error" ? "ErrorEnvelope" : schema);

function declare(schemaName: string, schema: SchemaObject): string {
  const [name, type] = [nameOf(schemaName), typeOf(schema, "")];
  const declaration = type.startsWith("{") ? `interface ${name} ${type}` : `type ${name} = ${type};`;
  return `${comment(schema.description, "")}export ${declaration}\n`;
}

const comment = (text: string | undefined, indent: string): string =>
  text === undefined ? "" : `${indent}/** ${text.replaceAll("*/", "* /")} */\n`;

function typeOf(schema: SchemaObject, indent: string): string {
  if (schema.$ref !== undefined) return nameOf(schema.$ref.slice(schema.$ref.lastIndexOf("/") + 1));
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return choices.map((choice) => typeOf(choice, indent)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.type === undefined) return "unknown";
  const types = typeof schema.type === "string" ? [schema.type] : schema.type;
  return types.map((type) => typeOfOne(type, schema, indent)).join(" | ");
}

function typeOfOne(type: string, schema: SchemaObject, indent: string): string {
  if (type === "array") return `readonly ${wrap(typeOf(schema.items ?? {}, indent))}[]`;
  if (type === "object") return objectType(schema, indent);
  // An open set keeps its known values for completion, and takes any other.
  if (type === "string" && schema.description?.includes("An open set:") === true && schema.examples)
    return [...schema.examples.map((value) => JSON.stringify(value)), "(string & {})"].join(" | ");
  const simple = SIMPLE[type];
  if (simple === undefined) throw new Error(`The SDK's types cannot express the type ${type}`);
  return simple;
}

const wrap = (type: string): string => (type.includes(" | ") ? `(${type})` : type);

function objectType(schema: SchemaObject, indent: string): string {
  const { properties = {}, required = [], additionalProperties } = schema;
  const inner = `${indent}  `;
  const members = Object.entries(properties).map(([name, property]) => {
    const optional = required.includes(name) ? "" : "?";
    return `${comment(property.description, inner)}${inner}readonly ${name}${optional}: ${typeOf(property, inner)}${optional && " | undefined"};`;
  });
  if (additionalProperties) {
    const named = members.length > 0;
    const value = named ? "unknown" : typeOf(additionalProperties, inner);
    if (!named) return `Readonly<Record<string, ${value}>>`;
    members.push(
      `${comment(additionalProperties.description, inner)}${inner}readonly [key: string]: ${value};`,
    );
  }
  return members.length === 0 ? "Readonly<Record<string, unknown>>" : `{\n${members.join("\n")}\n${indent}}`;
}
