import { isJsonObject, type JsonObject } from "./json.ts";

/** Whether a value satisfies a schema. */
export type Check = (value: unknown) => boolean;

/**
 * A check of JSON values by a schema with the keywords that our own schemas have; null: it has others. The result is the same as Ajv's
 * (test/domain/plain-schema.test.ts compares them), which takes 30 ms to compile the schema of one node type: it generates code, and a
 * process needs that code only a few times.
 */
export function plainCheck(schema: unknown): Check | null {
  if (typeof schema === "boolean") return () => schema;
  if (!isJsonObject(schema)) return null;
  const checks: Check[] = [];
  for (const [keyword, argument] of Object.entries(schema)) {
    if (ANNOTATION.test(keyword)) continue;
    const check = KEYWORDS.get(keyword)?.(argument, schema) ?? null;
    if (check === null) return null;
    checks.push(check);
  }
  return (value) => checks.every((check) => check(value));
}

/** They restrict nothing; `format` neither, which only describes. */
const ANNOTATION = /^(?:title|description|default|format|x-.+)$/;

const isText = (value: unknown): value is string => typeof value === "string";
const isNumber = (value: unknown): value is number => typeof value === "number";
const isPrimitive = (value: unknown): boolean => typeof value !== "object" || value === null;

const TYPES: ReadonlyMap<string, Check> = new Map(
  Object.entries<Check>({
    array: (value) => Array.isArray(value),
    boolean: (value) => typeof value === "boolean",
    integer: (value) => Number.isInteger(value),
    null: (value) => value === null,
    number: (value) => Number.isFinite(value),
    object: isJsonObject,
    string: isText,
  }),
);

/** Texts and whole numbers, by their type or as the members of a list. */
const areComparedByIdentity = ({ type, enum: members }: JsonObject): boolean =>
  type === "string" || type === "integer" || (Array.isArray(members) && members.every(isText));

/** The check of a keyword; null: not with this argument. A keyword says nothing of values of another type. */
type Keyword = (argument: unknown, schema: JsonObject) => Check | null;

const KEYWORDS: ReadonlyMap<string, Keyword> = new Map(
  Object.entries<Keyword>({
    type: (type) => (isText(type) ? (TYPES.get(type) ?? null) : null),
    const: (wanted) => (isPrimitive(wanted) ? (value) => value === wanted : null),
    enum: (values) =>
      Array.isArray(values) && values.every(isPrimitive) ? (value) => values.includes(value) : null,
    anyOf: (branches) => {
      const checks = checksOf(branches);
      return checks && ((value) => checks.some((check) => check(value)));
    },
    minimum: byLimit((min) => (value) => !isNumber(value) || value >= min),
    maximum: byLimit((max) => (value) => !isNumber(value) || value <= max),
    // In code points. Most texts need no count: each has one or two units of UTF-16.
    minLength: byLimit(
      (min) => (value) =>
        !isText(value) || value.length >= 2 * min || (value.length >= min && Array.from(value).length >= min),
    ),
    maxLength: byLimit(
      (max) => (value) =>
        !isText(value) || value.length <= max || (value.length <= 2 * max && Array.from(value).length <= max),
    ),
    pattern: (pattern) => {
      if (!isText(pattern)) return null;
      const expression = new RegExp(pattern, "u");
      return (value) => !isText(value) || expression.test(value);
    },
    minItems: byLimit((min) => (value) => !Array.isArray(value) || value.length >= min),
    maxItems: byLimit((max) => (value) => !Array.isArray(value) || value.length <= max),
    items: (items) => {
      const check = plainCheck(items);
      return check && ((value) => !Array.isArray(value) || value.every(check));
    },
    // Other items are compared by their parts. What has the wrong type is refused by `items`.
    uniqueItems: (isWanted, { items }) =>
      isWanted === true && isJsonObject(items) && areComparedByIdentity(items)
        ? (value) => !Array.isArray(value) || new Set(value).size === value.length
        : null,
    minProperties: byLimit((min) => (value) => !isJsonObject(value) || Object.keys(value).length >= min),
    maxProperties: byLimit((max) => (value) => !isJsonObject(value) || Object.keys(value).length <= max),
    required: (names) =>
      Array.isArray(names) && names.every(isText)
        ? (value) => !isJsonObject(value) || names.every((name) => own(value, name) !== undefined)
        : null,
    properties: (properties) => {
      const checks = checksByName(properties);
      return (
        checks &&
        ((value) =>
          !isJsonObject(value) ||
          checks.every(([name, check]) => {
            const part = own(value, name);
            return part === undefined || check(part);
          }))
      );
    },
    patternProperties: (patterns) => {
      const checks = checksByName(patterns);
      if (checks === null) return null;
      const expressions = checks.map(([pattern, check]) => [new RegExp(pattern, "u"), check] as const);
      return (value) =>
        !isJsonObject(value) ||
        Object.entries(value).every(([key, part]) =>
          expressions.every(([expression, check]) => !expression.test(key) || check(part)),
        );
    },
    additionalProperties: (additional, { properties = {}, patternProperties = {} }) => {
      const check = plainCheck(additional);
      if (check === null || !isJsonObject(properties) || !isJsonObject(patternProperties)) return null;
      const patterns = Object.keys(patternProperties).map((pattern) => new RegExp(pattern, "u"));
      const isKnown = (key: string): boolean =>
        Object.hasOwn(properties, key) || patterns.some((pattern) => pattern.test(key));
      return (value) =>
        !isJsonObject(value) || Object.entries(value).every(([key, part]) => isKnown(key) || check(part));
    },
  }),
);

function byLimit(checkOf: (limit: number) => Check): Keyword {
  return (limit) => (isNumber(limit) ? checkOf(limit) : null);
}

const own = (value: JsonObject, name: string): unknown =>
  Object.hasOwn(value, name) ? value[name] : undefined;

function checksOf(schemas: unknown): readonly Check[] | null {
  if (!Array.isArray(schemas)) return null;
  const checks = schemas.map(plainCheck);
  return checks.includes(null) ? null : checks.filter((check) => check !== null);
}

function checksByName(schemas: unknown): readonly (readonly [name: string, check: Check])[] | null {
  if (!isJsonObject(schemas)) return null;
  const checks = checksOf(Object.values(schemas));
  return checks && Object.keys(schemas).map((name, index) => [name, checks[index] ?? NEVER] as const);
}

const NEVER: Check = () => false;
