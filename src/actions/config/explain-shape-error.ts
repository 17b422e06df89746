import type { ErrorObject } from "ajv/dist/2020.js";
import { DURATION_PATTERN } from "#domain/duration.ts";
import { isJsonObject } from "#domain/json.ts";
import { quote, quoteList } from "#domain/config-problem.ts";
import { suggestion } from "#domain/config-nearest.ts";
import { SAYS, UNBUILT_KEYS } from "#domain/schema-notes.ts";

const DURATION = "must be a duration like `500ms`, `30s`, `10m`, `2h` or `7d`";

/** `key`: the sentence is about this key of the place, not about the value at the place. */
interface Explanation {
  readonly key?: string | undefined;
  readonly message: string;
}

/** With ajv's `verbose`. */
type Schema = Readonly<Record<string, unknown>>;

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: "text",
  object: "keys with values",
  array: "a list",
  integer: "a whole number",
  number: "a number",
  boolean: "true or false",
  null: "null",
};

/** One error of ajv in a plain sentence, with the remedy. */
export function explainShapeError(error: ErrorObject): readonly Explanation[] {
  const schema = (error.parentSchema ?? {}) as Schema;
  const params = error.params as Record<string, unknown>;
  const limit = String(params["limit"]);
  switch (error.keyword) {
    case "additionalProperties":
    case "unevaluatedProperties":
      return [
        explainUnknownKey(String(params["additionalProperty"] ?? params["unevaluatedProperty"]), schema),
      ];
    case "required":
      return [{ message: explainMissing(String(params["missingProperty"]), schema) }];
    case "type":
      return [{ message: explainType([params["type"]].flat().map(String), error.data) }];
    case "enum":
    case "const":
      return [{ message: explainChoice(choicesOf(schema), error.data) }];
    case "anyOf":
    case "oneOf":
      return [{ message: explainUnion(schema, error.data) }];
    case "pattern":
      return [{ message: explainPattern(schema) }];
    case "minLength":
      return [{ message: limit === "1" ? "must not be empty" : `must have at least ${limit} characters` }];
    case "maxLength":
      return [{ message: `must have at most ${limit} characters` }];
    case "minimum":
      return [{ message: `must be at least ${limit}` }];
    case "maximum":
      return [{ message: `must be at most ${limit}` }];
    case "exclusiveMinimum":
      return [{ message: `must be more than ${limit}` }];
    case "exclusiveMaximum":
      return [{ message: `must be less than ${limit}` }];
    case "minItems":
      return [
        { message: limit === "1" ? "must not be empty; list at least one" : `must list at least ${limit}` },
      ];
    case "maxItems":
      return [{ message: `must list at most ${limit}` }];
    case "minProperties":
      return [
        {
          message:
            limit === "1" ? "must not be empty; give at least one key" : `must have at least ${limit} keys`,
        },
      ];
    case "maxProperties":
      return [{ message: `must have at most ${limit} keys` }];
    case "uniqueItems":
      return [{ message: "lists the same thing twice; remove one" }];
    case "propertyNames":
    case "if":
      // The inner error explains the problem.
      return [];
    default:
      return [{ message: error.message ?? `breaks the rule ${quote(error.keyword)}` }];
  }
}

function explainUnknownKey(key: string, schema: Schema): Explanation {
  const unbuilt = schema[UNBUILT_KEYS] as Readonly<Record<string, string>> | undefined;
  if (unbuilt !== undefined && Object.hasOwn(unbuilt, key))
    return { key, message: `${quote(key)} is not built yet; ${unbuilt[key]}` };
  if (typeof schema[SAYS] === "string") return { key, message: `must be ${schema[SAYS]}` };
  const known = isJsonObject(schema["properties"]) ? Object.keys(schema["properties"]) : [];
  return { key, message: `unknown key ${quote(key)}${suggestion(key, known)}` };
}

function explainMissing(key: string, schema: Schema): string {
  const properties = schema["properties"];
  const property = isJsonObject(properties) ? properties[key] : undefined;
  const description = isJsonObject(property) ? property["description"] : undefined;
  return `the key ${quote(key)} is missing${typeof description === "string" ? ` (${firstSentence(description)})` : ""}; add it`;
}

function explainType(types: readonly string[], data: unknown): string {
  const wanted = types.map((type) => TYPE_NAMES[type] ?? type).join(" or ");
  const isScalar = typeof data === "number" || typeof data === "boolean";
  if (isScalar && types.includes("string")) return `must be ${wanted}; put ${quote(String(data))} in quotes`;
  const numeric = types.includes("integer") || types.includes("number");
  if (numeric && typeof data === "string" && data.trim() !== "" && Number.isFinite(Number(data)))
    return `must be ${wanted}; remove the quotes`;
  return `must be ${wanted}, not ${describe(data)}`;
}

function describe(data: unknown): string {
  if (data === null) return "nothing";
  if (Array.isArray(data)) return "a list";
  if (typeof data === "object") return "keys with values";
  return typeof data === "string" ? "text" : typeof data === "boolean" ? "true or false" : "a number";
}

function choicesOf(schema: Schema): readonly string[] {
  const all = Array.isArray(schema["enum"]) ? schema["enum"] : [schema["const"]];
  return all.map((choice) => (typeof choice === "string" ? choice : JSON.stringify(choice)));
}

function explainChoice(choices: readonly string[], data: unknown): string {
  const one = choices.length === 1 ? "must be" : "must be one of";
  return typeof data === "string"
    ? `${one} ${quoteList(choices)}${didYouMean(data, choices)}`
    : `${one} ${quoteList(choices)}`;
}

function didYouMean(data: string, choices: readonly string[]): string {
  const said = suggestion(data, choices);
  return said.includes("did you mean") ? said : "";
}

/** Without the unions that are branches of unions. */
function branchesOf(schema: Schema): readonly Schema[] {
  const branches = (schema["anyOf"] ?? schema["oneOf"]) as readonly Schema[] | undefined;
  return branches === undefined ? [schema] : branches.flatMap(branchesOf);
}

/** The value has the type of no branch: list what all branches accept. */
function explainUnion(schema: Schema, data: unknown): string {
  const branches = branchesOf(schema);
  if (branches.some((branch) => branch["pattern"] === DURATION_PATTERN)) return DURATION;
  const isChoice = (branch: Schema) => branch["const"] !== undefined || Array.isArray(branch["enum"]);
  const choices = branches.filter(isChoice).flatMap(choicesOf);
  const types = [
    ...new Set(
      branches.filter((branch) => !isChoice(branch)).flatMap((branch) => [branch["type"]].flat().map(String)),
    ),
  ];
  if (types.length === 0) return explainChoice(choices, data);
  if (choices.length === 0) return explainType(types, data);
  return `must be ${quoteList(choices)}, or ${types.map((type) => TYPE_NAMES[type] ?? type).join(" or ")}`;
}

function explainPattern(schema: Schema): string {
  if (schema["pattern"] === DURATION_PATTERN) return DURATION;
  const says = schema[SAYS];
  return typeof says === "string"
    ? `must be ${says}`
    : `must match the pattern ${quote(String(schema["pattern"]))}`;
}

/** Without its full stop. */
const firstSentence = (text: string): string => text.split(/\.(?: (?=[A-Z])|$)/, 1)[0] ?? text;
