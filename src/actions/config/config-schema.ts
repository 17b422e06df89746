import type { TSchema } from "typebox";
import {
  accountSchema,
  blueprintSchema,
  commonLoginKeys,
  commonNodeKeys,
  fieldSchema,
  strategySchema,
} from "#domain/config-schema.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import { listNamedSchemas, NAMED } from "#domain/named-schema.ts";
import { nodeTypes } from "#nodes/registry.ts";
import { loginTypes } from "#strategies/registry.ts";
import { withCommonKeys } from "./typed-config.ts";

/**
 * The shape of every document as one JSON Schema (2020-12) with descriptions, for editors: `latchkey schema`. Requirements that a
 * schema can't express (names that must exist, expressions that must compile) are checked by `latchkey validate`.
 */
export function configSchema(): JsonObject {
  const nodes = [...nodeTypes.values()];
  const logins = [...loginTypes.values()];
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Latchkey configuration",
    description: "An account, a strategy or a Blueprint",
    type: "object",
    anyOf: [{ required: ["account"] }],
    allOf: [
      when({ required: ["strategy"] }, "strategy"),
      when({ required: ["blueprint"] }, "blueprint"),
      when({ not: { anyOf: [{ required: ["strategy"] }, { required: ["blueprint"] }] } }, "account"),
    ],
    $defs: {
      account: plain(accountSchema),
      strategy: withParts(strategySchema, {
        fields: { items: { $ref: "#/$defs/field" } },
        login: { $ref: "#/$defs/login" },
      }),
      field: plain(fieldSchema),
      login: byType("login", logins),
      ...definitions("login", logins, commonLoginKeys),
      blueprint: withParts(blueprintSchema, { nodes: { items: { $ref: "#/$defs/node" } } }),
      node: byType("node", nodes),
      ...definitions("node", nodes, commonNodeKeys),
      ...namedDefinitions([...logins, ...nodes]),
    },
  };
}

interface Typed {
  readonly type: string;
  readonly description: string;
  readonly schema: Parameters<typeof withCommonKeys>[1]["schema"];
}

/** Expressed with `else`, because an object with a `then` is treated as a promise. */
const when = (condition: JsonObject, definition: string): JsonObject => ({
  if: { not: condition },
  else: { $ref: `#/$defs/${definition}` },
});

function byType(what: string, types: readonly Typed[]): JsonObject {
  return {
    type: "object",
    required: ["type"],
    properties: {
      type: {
        description: `What kind of ${what} it is`,
        anyOf: types.map(({ type, description }) => ({ const: type, description })),
      },
    },
    allOf: types.map(({ type }) =>
      when({ properties: { type: { const: type } }, required: ["type"] }, `${what}_${type}`),
    ),
  };
}

function definitions(
  what: string,
  types: readonly Typed[],
  common: Parameters<typeof withCommonKeys>[0],
): JsonObject {
  return Object.fromEntries(
    types.map((type) => [
      `${what}_${type.type}`,
      { ...plain(withCommonKeys(common, type)), description: type.description },
    ]),
  );
}

/** Schemas that contain themselves, such as the steps of a browser. */
function namedDefinitions(types: readonly Typed[]): JsonObject {
  const named = types.flatMap(({ schema }) => [...listNamedSchemas(schema)]);
  return Object.fromEntries(named.map(([name, schema]) => [name, plain(schema)]));
}

/** Keys of a document whose items have separate schemas. */
function withParts(schema: TSchema, parts: Readonly<Record<string, JsonObject>>): JsonObject {
  const { properties, ...rest } = plain(schema);
  const own = Object.entries(isJsonObject(properties) ? properties : {}).map(([key, value]) => {
    const part = parts[key];
    return [key, part !== undefined && isJsonObject(value) ? { ...value, ...part } : value] as const;
  });
  return { ...rest, properties: Object.fromEntries(own) };
}

/** The schema as JSON, without our own annotations. */
function plain(schema: TSchema): JsonObject {
  const tree = withoutAnnotations(JSON.parse(JSON.stringify(schema)) as Json);
  return isJsonObject(tree) ? tree : {};
}

function withoutAnnotations(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutAnnotations);
  if (!isJsonObject(value)) return value;
  const { [NAMED]: name, description } = value;
  if (typeof name === "string")
    return { $ref: `#/$defs/${name}`, ...(typeof description === "string" && { description }) };
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => !key.startsWith("x-"))
      .map(([key, part]) => [key, withoutAnnotations(part)]),
  );
}
