import type { FastifyRequest } from "fastify";
import type { TObject, TSchema } from "typebox";
import { requiredOf, type OperatorInput, type OperatorOperation } from "#contract/operator/operation.ts";
import { limits } from "#domain/limits.ts";
import { matchesSchema } from "#domain/matches-schema.ts";
import { invalidField, notFound, Problem, type ProblemDetail } from "#domain/problem.ts";
import { writeJsonText } from "#lib/json-text.ts";
import type { SharedHttp } from "./context.ts";

/**
 * Reads an operation's input and checks it with the operation's schemas; every problem is reported. `sender` is the signed-in
 * operator; null: none. Throws Problem 413, 415, 422 or 503.
 */
export async function readInput<O extends OperatorOperation>(
  request: FastifyRequest,
  operation: O,
  http: SharedHttp,
  sender: string | null,
): Promise<OperatorInput<O>> {
  const query = checked(operation.query, readQuery(request, operation.query), "parameter");
  const body = operation.body
    ? checked(operation.body, await readBody(request, operation, http, sender), "member")
    : {};
  const params = request.params as Readonly<Record<string, string>>;
  // PostgreSQL's text can't contain U+0000, so such a name does not exist.
  if (Object.values(params).some((value) => value.includes("\u0000")))
    throw notFound("The requested object was");
  // `checked` has validated both with the schemas from which the types are derived.
  return { params, query, body } as OperatorInput<O>;
}

async function readBody(
  request: FastifyRequest,
  operation: OperatorOperation,
  http: SharedHttp,
  sender: string | null,
): Promise<Record<string, unknown>> {
  const usual = operation.permission === "open" ? limits.openBodyBytesMax : limits.jsonBodyBytesMax;
  const tree = await http.readJsonObject(request, { bytesMax: operation.bodyBytesMax ?? usual, sender });
  return JSON.parse(writeJsonText(tree)) as Record<string, unknown>;
}

/** Strings as in the query, converted to numbers and booleans where the schema requires it. */
function readQuery(request: FastifyRequest, schema: TObject | undefined): Record<string, unknown> {
  const values: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  for (const [name, value] of Object.entries(request.query as Record<string, unknown>))
    values[name] = typeof value === "string" ? parseAs(schema?.properties[name], value) : value;
  for (const [name, value] of Object.entries(values))
    if (typeof value === "string" && value.includes("\u0000"))
      throw invalidField(name.slice(0, 100), `\`${name.slice(0, 100)}\` must not contain U+0000.`);
  return values;
}

function parseAs(schema: TSchema | undefined, text: string): unknown {
  const { type } = (schema ?? {}) as { type?: string };
  if (type === "integer" && /^\d{1,12}$/.test(text)) return Number(text);
  if (type === "boolean" && (text === "true" || text === "false")) return text === "true";
  return text;
}

/** Throws Problem 422 with one detail each. */
function checked(
  schema: TObject | undefined,
  values: Readonly<Record<string, unknown>>,
  what: "parameter" | "member",
): Readonly<Record<string, unknown>> {
  const known = new Map(Object.entries(schema?.properties ?? {}));
  const details: ProblemDetail[] = [];
  const wrong = (field: string, message: string): void => {
    details.push({ message, code: "invalid_input_data", field });
  };
  for (const name of Object.keys(values)) {
    if (known.has(name)) continue;
    const names = [...known.keys()];
    wrong(
      name.slice(0, 100),
      `This operation has no such ${what}${names.length > 0 ? `; it has ${names.join(", ")}` : ""}.`,
    );
  }
  for (const [name, property] of known) {
    const isThere = Object.hasOwn(values, name);
    if (!isThere && !requiredOf(schema).includes(name)) continue;
    if (!isThere) wrong(name, `\`${name}\` is required.`);
    else if (!matchesSchema(property, values[name])) wrong(name, `\`${name}\` must be ${explain(property)}.`);
  }
  if (details.length === 0) return values;
  const [first] = details;
  throw new Problem(
    "validation_error",
    details.length === 1 && first ? first.message : `The request has ${details.length} mistakes.`,
    { details },
  );
}

/** The parts of a schema that are needed to explain it. */
interface Explained {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly description?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly anyOf?: readonly TSchema[];
}

/** Describes what a schema requires, without quoting the given value. */
function explain(schema: TSchema): string {
  const wanted = schema as Explained;
  if (wanted.anyOf) return wanted.anyOf.map(explain).join(" or ");
  if (wanted.enum) return `one of ${wanted.enum.join(", ")}`;
  if (wanted.type === "null") return "null";
  if (wanted.type === "integer") return `a whole number from ${span(wanted.minimum, wanted.maximum)}`;
  if (wanted.type === "boolean") return "true or false";
  if (wanted.pattern !== undefined) return `a string of this form: ${wanted.description}`;
  if (wanted.type === "string" && wanted.maxLength !== undefined)
    return `a string of ${span(wanted.minLength, wanted.maxLength)} characters, given once`;
  if (wanted.type === "string") return "a string, given once";
  return `${wanted.type === "array" ? "a list" : "an object"} as the operation describes it`;
}

const span = (min = 0, max?: number): string => (max === undefined ? `${min}` : `${min} to ${max}`);
