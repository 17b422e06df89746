import type { Static } from "typebox";
import { Type } from "#lib/type.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import type { RecordError } from "#domain/record.ts";
import { compileAuthorSchema } from "#domain/record-schema.ts";
import type { Value } from "#domain/value.ts";
import { assert } from "#lib/assert.ts";
import { defineNode, NodeFailure, type ConfigFinding } from "#nodes/define-node.ts";
import { readConfig } from "#domain/read-config.ts";
import type { InputRules } from "#nodes/records/input-schema.ts";
import { readJson } from "#domain/read-json.ts";

const schema = Type.Object(
  {
    refKey: Type.String({
      minLength: 1,
      maxLength: 255,
      description:
        "The key in the trigger's body (or the part's name) of this value, which is `$inputs.<refKey>` in expressions.",
    }),
    accepts: Type.Optional(
      Type.Enum(["text", "json", "file", "any"], {
        default: "any",
        description:
          "The kind of value. `file` also accepts inline text. With json (or a schema) the text is parsed.",
      }),
    ),
    required: Type.Optional(
      Type.Boolean({ default: false, description: "Whether a trigger without it is refused (422)." }),
    ),
    default: Type.Optional(
      Type.Unsafe<Json>({
        description: "The value if the trigger has none. A value that is not a string is used as JSON text.",
      }),
    ),
    schema: Type.Optional(
      Type.Unsafe<Json>({
        description:
          "A JSON Schema (2020-12) for the value; a trigger with an invalid value is refused (422).",
      }),
    ),
  },
  { additionalProperties: false },
);

type InputConfig = Static<typeof schema>;
type Read = { readonly value: Value } | { readonly problems: readonly RecordError[] };

/** docs/nodes/input.md. */
export const node = defineNode({
  type: "input",
  description: "A value from the trigger.",
  schema,
  takes: "none",
  usesCredential: false,
  gives: () => "value",
  effect: () => "none",
  check,
  run: (context, raw) => {
    const config = readConfig(schema, raw);
    const value = readInput(raw, context.input(config.refKey));
    return Promise.resolve({ kind: "value", value });
  },
  runAtOnce: (context, raw) => ({
    kind: "value",
    value: readInput(raw, context.input(readConfig(schema, raw).refKey)),
  }),
});

/**
 * A problem with an INPUT's value, for the trigger's 422. `field` is a dot path inside the value, or null for the whole value;
 * `code` is a JSON Schema keyword, `required`, `accepts` or `json`. docs/api.md#triggers: only an INPUT with `required` or a
 * `schema` is ever refused.
 */
export function checkInput(raw: JsonObject, value: Value): readonly RecordError[] {
  const config = readConfig(schema, raw);
  if (config.required !== true && config.schema === undefined) return [];
  const result = read(config, value);
  return "problems" in result ? result.problems : [];
}

/** The value as nodes and `$inputs` see it: the default if there is none, parsed if the node accepts JSON. Throws NodeFailure. */
export function readInput(raw: JsonObject, value: Value): Value {
  const config = readConfig(schema, raw);
  const result = read(config, value);
  if ("value" in result) return result.value;
  throw new NodeFailure(result.problems.map((problem) => problem.message).join(" "));
}

/** The parts of a checked input's config that determine what a trigger may send for it. */
export function inputRulesOf(raw: JsonObject): InputRules {
  const config = readConfig(schema, raw);
  return {
    accepts: config.accepts ?? "any",
    isNeeded: config.required === true && defaultOf(config).form === "absent",
    // `apply` has compiled the schema, so it is an object.
    schema: isJsonObject(config.schema) ? config.schema : null,
  };
}

function read(config: InputConfig, sent: Value): Read {
  const value = sent.form === "absent" ? defaultOf(config) : sent;
  const accepts = config.accepts ?? "any";
  if (value.form === "absent") {
    return config.required === true ? { problems: [problem(config, "required", "is required")] } : { value };
  }
  if (value.form === "file") {
    if (accepts === "text" || accepts === "json")
      return { problems: [problem(config, "accepts", `must be ${accepts}, not a file`)] };
    if (config.schema !== undefined)
      return { problems: [problem(config, "accepts", "has a schema, so it must not be a file")] };
    return { value };
  }
  if (accepts === "file" || (accepts !== "json" && config.schema === undefined)) return { value };
  return readSchemaValue(config, value);
}

/**
 * Parses text as JSON. If any kind is accepted, text that isn't JSON (or whose JSON the schema rejects) is also tried as a
 * string: a `schema` with `type: string` accepts `hello`, and a code such as `0042` or `123`.
 */
function readSchemaValue(config: InputConfig, value: Extract<Value, { form: "text" | "json" }>): Read {
  const accepts = config.accepts ?? "any";
  const candidates: Json[] = [];
  let notJson: string | null = null;
  if (value.form === "json") {
    candidates.push(value.json);
  } else {
    const parsed = accepts === "text" ? null : readJson(value.text);
    if (parsed?.ok === true) candidates.push(parsed.json);
    if (parsed?.ok === false) notJson = parsed.problem;
    if (accepts !== "json") candidates.push(value.text);
  }
  let problems: readonly RecordError[] | null = null;
  for (const json of candidates) {
    const found = violations(config, json);
    if (found.length === 0) return { value: accepts === "text" ? value : { form: "json", json } };
    problems ??= found;
  }
  return { problems: problems ?? [problem(config, "json", notJson ?? "is not JSON")] };
}

function violations(config: InputConfig, json: Json): readonly RecordError[] {
  if (config.schema === undefined) return [];
  const compiled = compileAuthorSchema(config.schema);
  assert(!("problem" in compiled), "apply has compiled the schema");
  return compiled.validate(json).map((error) => problem(config, error.code, error.message, error.field));
}

function problem(
  config: InputConfig,
  code: string,
  message: string,
  field: string | null = null,
): RecordError {
  return {
    field,
    code,
    message: `\`${field === null ? config.refKey : `${config.refKey}.${field}`}\` ${message}.`,
  };
}

/** Spec, Top-level key routing: a string is passed unchanged, anything else as its JSON. */
function defaultOf(config: InputConfig): Value {
  if (config.default === undefined || config.default === null) return { form: "absent" };
  return {
    form: "text",
    text: typeof config.default === "string" ? config.default : JSON.stringify(config.default),
  };
}

function check(raw: JsonObject): readonly ConfigFinding[] {
  const config = readConfig(schema, raw);
  if (config.schema !== undefined) {
    if (config.accepts === "file")
      return [
        {
          path: ["schema"],
          message: "a file can't be checked with a schema: remove the schema, or accept json",
        },
      ];
    const compiled = compileAuthorSchema(config.schema);
    if ("problem" in compiled) return [{ path: ["schema"], message: compiled.problem }];
  }
  if (config.default === undefined || config.default === null) return [];
  const result = read(config, { form: "absent" });
  return "problems" in result
    ? result.problems.map((error) => ({
        path: ["default"],
        message: `the default does not match its schema: ${error.message}`,
      }))
    : [];
}
