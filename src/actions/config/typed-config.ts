import Type, { type TObject, type TProperties } from "typebox";
import { matchesSchema } from "#domain/matches-schema.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import type { ConfigFinding, ConfigPath } from "#domain/config-problem.ts";
import { checkShape } from "./check-shape.ts";

/** What the parts that a type defines (a node's, a login's) have in common for the check. */
interface ConfigType {
  readonly schema: TObject;
}

const merged = new WeakMap<TObject, TObject>();

/** The keys that every node (or login) has, with those of its type: one list, so that a misspelling finds the nearest of all. */
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
 * The shape of a node or a login, and its type's own `check`. That one may only see a config that satisfies the schema, so a
 * config with wrong keys is checked without them if that is possible: the author gets as many mistakes at once as there are.
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
  const shape = checkShape(withCommonKeys(common, type), value, path);
  const config = soundPart(
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

/** Whether a request may have a body is a matter of its method: of one that was refused nothing can be said. */
function withoutBodies(
  own: readonly ConfigFinding[],
  refused: readonly ConfigFinding[],
): readonly ConfigFinding[] {
  const parentOf = ({ path }: ConfigFinding): string => JSON.stringify(path.slice(0, -1));
  const methods = new Set(refused.filter(({ path }) => path.at(-1) === "method").map(parentOf));
  return own.filter((finding) => !(BODIES.has(finding.path.at(-1) ?? "") && methods.has(parentOf(finding))));
}

/** Without as little as possible: the wrong parts themselves, or else the whole keys in which they stand. */
function soundPart(schema: TObject, config: JsonObject, wrong: readonly ConfigPath[]): JsonObject | null {
  if (matchesSchema(schema, config)) return config;
  const pruned = withoutParts(config, wrong);
  if (isJsonObject(pruned) && matchesSchema(schema, pruned)) return pruned;
  const wrongKeys = wrong.map(([key]) => key);
  const sound: Readonly<Record<string, Json>> = Object.fromEntries(
    Object.entries(config).filter(([key]) => !wrongKeys.includes(key)),
  );
  return matchesSchema(schema, sound) ? sound : null;
}

/** A copy without the keys at these paths. Items of lists stay: others would change their places. */
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

/** Types write sentences; a problem's line goes on behind its place. */
function asClause(sentence: string): string {
  const clause = /[^.]\.$/.test(sentence) ? sentence.slice(0, -1) : sentence;
  return /^[A-Z][a-z ]/.test(clause) ? `${clause.charAt(0).toLowerCase()}${clause.slice(1)}` : clause;
}
