import type { TObject, TProperties } from "typebox";
import { Type } from "#lib/type.ts";
import { matchesSchema } from "#domain/matches-schema.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import type { ConfigFinding, ConfigPath } from "#domain/config-problem.ts";
import { findNamedParts } from "#domain/named-schema.ts";
import { checkShape } from "./check-shape.ts";

/** What node types and login types have in common for the check. */
interface ConfigType {
  readonly schema: TObject;
}

const merged = new WeakMap<TObject, TObject>();

/**
 * The keys that every node (or login) has, with those of its type: one list, so that the suggestion for a misspelled key is the
 * nearest of all.
 */
export function withCommonKeys(common: TProperties, type: ConfigType): TObject {
  let schema = merged.get(type.schema);
  if (schema === undefined) {
    const { properties, required: _required, type: _type, ...options } = type.schema;
    schema = Type.Object({ ...common, ...properties }, { ...options, additionalProperties: false });
    merged.set(type.schema, schema);
  }
  return schema;
}

/** The keys of the type itself. */
export function ownKeys(value: JsonObject, common: TProperties): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([key]) => !Object.hasOwn(common, key)));
}

/**
 * The shape of a node or a login, and its type's own `check`. The `check` only receives a config that satisfies the schema, so
 * invalid keys are removed before it if possible: the author then sees all mistakes at once.
 */
export function checkTyped(
  type: ConfigType,
  value: JsonObject,
  {
    common,
    path,
    check,
  }: {
    readonly common: TProperties;
    readonly path: ConfigPath;
    readonly check: (config: JsonObject) => readonly ConfigFinding[];
  },
): readonly ConfigFinding[] {
  const schema = withCommonKeys(common, type);
  const shape = [
    ...checkShape(schema, value, path),
    ...[...findNamedParts(schema, value, path)].flatMap((part) =>
      checkShape(part.schema, part.value, part.path),
    ),
  ];
  const config = validPart(
    type.schema,
    ownKeys(value, common),
    shape.map((finding) => finding.path.slice(path.length)),
  );
  const own =
    config === null
      ? []
      : check(config).map(({ path: inside, at, message }) => ({
          path: [...path, ...inside],
          at,
          message: asClause(message),
        }));
  return [...shape, ...withoutBodies(own, shape)];
}

const BODIES: ReadonlySet<string | number> = new Set(["json", "form", "text", "multipart", "file"]);

/** Whether a request may have a body depends on its method; with an invalid method that can't be decided. */
function withoutBodies(
  own: readonly ConfigFinding[],
  refused: readonly ConfigFinding[],
): readonly ConfigFinding[] {
  const parentOf = ({ path }: ConfigFinding): string => JSON.stringify(path.slice(0, -1));
  const methods = new Set(refused.filter(({ path }) => path.at(-1) === "method").map(parentOf));
  return own.filter((finding) => !(BODIES.has(finding.path.at(-1) ?? "") && methods.has(parentOf(finding))));
}

/** Removes as little as possible: the invalid parts themselves, or else the whole keys that contain them. */
function validPart(schema: TObject, config: JsonObject, wrong: readonly ConfigPath[]): JsonObject | null {
  if (matchesSchema(schema, config)) return config;
  const pruned = withoutParts(config, wrong);
  if (isJsonObject(pruned) && matchesSchema(schema, pruned)) return pruned;
  const wrongKeys = wrong.map(([key]) => key);
  const sound: Readonly<Record<string, Json>> = Object.fromEntries(
    Object.entries(config).filter(([key]) => !wrongKeys.includes(key)),
  );
  return matchesSchema(schema, sound) ? sound : null;
}

/** A copy without the keys at these paths. Items of lists are kept, because removing one would change the indexes of others. */
function withoutParts(value: Json, paths: readonly ConfigPath[]): Json {
  if (paths.length === 0) return value;
  const inside = (key: string | number): readonly ConfigPath[] =>
    paths.filter(([first, ...rest]) => first === key && rest.length > 0).map(([, ...rest]) => rest);
  if (Array.isArray(value)) return value.map((item: Json, index) => withoutParts(item, inside(index)));
  if (!isJsonObject(value)) return value;
  const gone = new Set(paths.filter(({ length }) => length === 1).map(([key]) => key));
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, part]) =>
      gone.has(key) ? [] : [[key, withoutParts(part, inside(key))]],
    ),
  );
}

/** Types return sentences; in a problem's line, the text continues after the place. */
function asClause(sentence: string): string {
  const clause = /[^.]\.$/.test(sentence) ? sentence.slice(0, -1) : sentence;
  return /^[A-Z][a-z ]/.test(clause) ? `${clause.charAt(0).toLowerCase()}${clause.slice(1)}` : clause;
}
