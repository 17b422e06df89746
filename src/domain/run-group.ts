import { isJsonObject, type Json } from "./json.ts";

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
export const GROUP_KEY_PATTERN = "^\\$(metadata|credentials)\\.([A-Za-z_][A-Za-z0-9_]*|`[^`]+`)$";
const GROUP_KEY = new RegExp(GROUP_KEY_PATTERN);

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
