import type { Ajv2020, ErrorObject } from "ajv/dist/2020.js";
import type { TSchema } from "typebox";
import { isJsonObject, type Json } from "#domain/json.ts";
import type { ConfigFinding, ConfigPath } from "#domain/config-problem.ts";
import { matchesSchema } from "#domain/matches-schema.ts";
import { openAjv } from "#domain/open-ajv.ts";
import { explainShapeError } from "./explain-shape-error.ts";

export type CheckShape = (value: Json, path: ConfigPath) => readonly ConfigFinding[];

// Our schemas are constants: checking them against the meta schemas would cost 0.4 s at every start. The compiled code runs only
// once or twice, so optimising it would take longer than running it.
const OPTIONS = {
  allErrors: true,
  verbose: true,
  strict: false,
  validateFormats: false,
  validateSchema: false,
  code: { optimize: false },
} as const;
let ajv: Ajv2020 | null = null;
const compiled = new WeakMap<TSchema, CheckShape>();

/** Every violation of one of our schemas by the value at `path`, in plain sentences. */
export function checkShape(schema: TSchema, value: Json, path: ConfigPath): readonly ConfigFinding[] {
  // Most values have no mistake, and Ajv takes 30 ms to compile a schema that lists them.
  if (matchesSchema(schema, value)) return [];
  let check = compiled.get(schema);
  if (check === undefined) {
    ajv ??= openAjv(OPTIONS);
    const validate = ajv.compile(schema);
    check = (value, path) => (validate(value) ? [] : explainErrors(validate.errors ?? [], value, path));
    compiled.set(schema, check);
  }
  return check(value, path);
}

function explainErrors(
  errors: readonly ErrorObject[],
  value: Json,
  path: ConfigPath,
): readonly ConfigFinding[] {
  const findings = leaveClosestBranches(errors).flatMap((error) => {
    const place = [...path, ...readPointer(error.instancePath, value)];
    return explainShapeError(error).map(({ key, message }) =>
      key === undefined ? { path: place, message } : { path: [...place, key], at: "key" as const, message },
    );
  });
  return findings;
}

const isUnion = (error: ErrorObject): boolean => error.keyword === "anyOf" || error.keyword === "oneOf";

const isWithin = (inner: string, outer: string): boolean => inner === outer || inner.startsWith(`${outer}/`);

/**
 * Ajv lists the errors of every branch of a union. Only those of the branch that the author most likely meant are kept,
 * or the union's own error when the value has the type of none.
 */
function leaveClosestBranches(errors: readonly ErrorObject[]): readonly ErrorObject[] {
  let left = errors;
  // Inner unions are processed before outer ones, so that an outer one compares branches that are already reduced.
  for (const union of errors.filter(isUnion)) {
    if (!left.includes(union)) continue;
    const inside = left.filter(
      (error) =>
        error !== union &&
        error.schemaPath.startsWith(`${union.schemaPath}/`) &&
        isWithin(error.instancePath, union.instancePath),
    );
    const branches = Map.groupBy(
      inside,
      (error) => error.schemaPath.slice(union.schemaPath.length + 1).split("/")[0] ?? "",
    );
    const closest = [...branches.values()]
      .map((branch) => ({ branch, distance: distanceOf(branch, union.instancePath) }))
      .reduce((best, each) => (each.distance < best.distance ? each : best), {
        branch: [] as ErrorObject[],
        distance: OTHER_TYPE,
      });
    const dropped = new Set<ErrorObject>(inside);
    for (const error of closest.branch) dropped.delete(error);
    if (closest.branch.length > 0) dropped.add(union);
    left = left.filter((error) => !dropped.has(error));
  }
  return left;
}

const OTHER_TYPE = 1_000;

/**
 * The distance of the value from a branch: a wrong type or constant at its root has the largest weight, a likely misspelling the
 * smallest.
 */
function distanceOf(branch: readonly ErrorObject[], instancePath: string): number {
  let distance = 0;
  for (const error of branch) {
    const atRoot = error.instancePath === instancePath;
    if (atRoot && ["type", "const", "enum", "anyOf", "oneOf"].includes(error.keyword)) return OTHER_TYPE;
    if (
      error.keyword === "const" &&
      error.instancePath.split("/").length === instancePath.split("/").length + 1
    )
      distance += 50;
    else if (error.keyword === "additionalProperties")
      distance += explainShapeError(error)[0]?.message.includes("did you mean") ? 1 : 2;
    else distance += 2;
  }
  return distance;
}

/** A JSON pointer as a path: numbers where the value is a list. */
function readPointer(pointer: string, value: Json): ConfigPath {
  const path: (string | number)[] = [];
  let at: Json | undefined = value;
  for (const raw of pointer.split("/").slice(1)) {
    const part = raw.replaceAll("~1", "/").replaceAll("~0", "~");
    path.push(Array.isArray(at) ? Number(part) : part);
    at = Array.isArray(at) ? at[Number(part)] : isJsonObject(at) ? at[part] : undefined;
  }
  return path;
}
