import { Type } from "#lib/type.ts";
import { isJsonObject, type Json } from "./json.ts";
import { SAYS } from "./schema-notes.ts";

/** A value of a run by which runs of a Blueprint are told apart: a metadata item, or the credential in a slot. */
export interface GroupKey {
  readonly of: "metadata" | "credentials";
  readonly name: string;
}

/** How many runs of a Blueprint, or of those with the same values of the keys, may be executed at once. */
export interface BlueprintConcurrency {
  readonly limit: number;
  readonly keys: readonly GroupKey[];
}

/** `$metadata.tenant`, or a name in backticks as in JSONata. */
const GROUP_KEY_PATTERN = "^\\$(metadata|credentials)\\.([A-Za-z_][A-Za-z0-9_]*|`[^`]+`)$";
const GROUP_KEY = new RegExp(GROUP_KEY_PATTERN);

const KEYS_MAX = 5;
const LIMIT_MAX = 10_000;
const closed = { additionalProperties: false };

const groupKey = Type.String({
  pattern: GROUP_KEY_PATTERN,
  [SAYS]:
    "`$metadata.` or `$credentials.` with a name, in backticks if it has other characters than letters, digits and `_`",
});

/** The key `concurrency` of a Blueprint document. */
export const concurrencySchema = Type.Optional(
  Type.Object(
    {
      limit: Type.Integer({
        minimum: 1,
        maximum: LIMIT_MAX,
        description: "How many may be executed at once",
      }),
      key: Type.Optional(
        Type.Union([groupKey, Type.Array(groupKey, { minItems: 1, maxItems: KEYS_MAX })], {
          description: "What runs must have in common to count together; default: all count together",
        }),
      ),
    },
    { ...closed, description: "How many runs of the Blueprint may be executed at once" },
  ),
);

/** Undefined: it is no key. */
export function readGroupKey(text: string): GroupKey | undefined {
  const [, of, name = ""] = GROUP_KEY.exec(text) ?? [];
  if (of === undefined) return undefined;
  return { of: of === "metadata" ? "metadata" : "credentials", name: name.replaceAll("`", "") };
}

/** Reads the `concurrency` of a Blueprint document that `apply` has checked. */
export function readConcurrency(value: Json | undefined): BlueprintConcurrency | null {
  if (!isJsonObject(value) || typeof value["limit"] !== "number") return null;
  const { limit, key = [] } = value;
  const written = Array.isArray(key) ? key : [key];
  return {
    limit,
    keys: written.flatMap((each) => (typeof each === "string" ? (readGroupKey(each) ?? []) : [])),
  };
}

/** Values of the run, by key; null where it has none. Runs without a value count together. */
export function groupValues(
  { keys }: BlueprintConcurrency,
  run: {
    readonly metadata: ReadonlyMap<string, string>;
    readonly credentials: ReadonlyMap<string, string>;
  },
): readonly (string | null)[] {
  return keys.map(({ of, name }) => run[of].get(name) ?? null);
}
