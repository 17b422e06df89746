import type { BlueprintVersion } from "#db/config-documents.ts";
import type { BlueprintNode } from "#domain/blueprint.ts";
import type { Json, JsonObject } from "#domain/json.ts";
import { isJsonObject } from "#domain/json.ts";
import { credentialCounts, credentialProperties, metadataProperty } from "#domain/trigger-schema.ts";
import { refKeyOf } from "#nodes/define-node.ts";
import { inputRulesOf } from "#nodes/types/input.ts";
import { inputBodySchema } from "#nodes/records/input-schema.ts";

const IGNORED = "Ignored without an error: the Blueprint does not define this key.";

/**
 * `GET /blueprints/{blueprintKey}/schema`: JSON Schema (2020-12) of a trigger's body in JSON. It accepts every body that the
 * trigger accepts; the trigger also checks what a schema cannot (that a credential exists, that a string holds JSON).
 */
export function describeTrigger({ blueprint }: BlueprintVersion): JsonObject {
  const inputs = blueprint.nodes.filter((node) => node.type === "input");
  const definitions: Record<string, Json> = {};
  const properties: [string, Json][] = [
    ...Object.entries(credentialProperties(blueprint.credentials)),
    ...blueprint.metadata.map((item): [string, Json] => [item.name, metadataProperty(item)]),
    ...inputs.map((node): [string, Json] => [refKeyOf(node), describeInput(node, definitions)]),
  ];
  const required = [
    ...blueprint.metadata.filter((item) => item.required).map((item) => item.name),
    ...inputs.filter((node) => inputRulesOf(node.config).isNeeded).map(refKeyOf),
  ];
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: blueprint.name,
    description:
      "The body of a trigger. In multipart/form-data the same keys are parts, as text, and an input's part may be a file.",
    type: "object",
    properties: Object.fromEntries(properties),
    required,
    additionalProperties: { description: IGNORED },
    ...credentialCounts(blueprint.credentials),
    ...(Object.keys(definitions).length === 0 ? {} : { $defs: definitions }),
  };
}

/** An author's schema is placed in `$defs` as a separate schema resource, so that its `#/…` references resolve within it. */
function describeInput(node: BlueprintNode, definitions: Record<string, Json>): JsonObject {
  const rules = inputRulesOf(node.config);
  let reference: JsonObject = {};
  if (rules.schema !== null) {
    const name = `input-${Object.keys(definitions).length + 1}`;
    const { $schema: _dialect, ...written } = rules.schema;
    const schema = refersFirst(written);
    const own = schema["$id"] ?? (refersToItself(schema) ? `urn:latchkey:${name}` : undefined);
    definitions[name] = own === undefined ? schema : { ...schema, $id: own };
    reference = { $ref: own ?? `#/$defs/${name}` };
  }
  return {
    ...(node.name === null ? {} : { title: node.name }),
    description: INPUT_DESCRIPTIONS[rules.accepts],
    ...inputBodySchema(rules, reference),
  };
}

const INPUT_DESCRIPTIONS = {
  text: "An input: text.",
  json: "An input: JSON, or JSON as text.",
  file: "An input: a file, which only multipart/form-data can send; in JSON, its content as text.",
  any: "An input: text, JSON, or a file by multipart/form-data.",
} as const;

/** The same schema without a `$ref` at its root: a widely used validator follows one there forever. */
function refersFirst(schema: JsonObject): JsonObject {
  const { $ref, allOf, ...others } = schema;
  if ($ref === undefined) return schema;
  return { ...others, allOf: [{ $ref }, ...(Array.isArray(allOf) ? (allOf as readonly Json[]) : [])] };
}

function refersToItself(value: Json): boolean {
  if (Array.isArray(value)) return value.some(refersToItself);
  if (!isJsonObject(value)) return false;
  return Object.entries(value).some(
    ([key, item]) => key === "$ref" || key === "$dynamicRef" || refersToItself(item),
  );
}
