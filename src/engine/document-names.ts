import type { Blueprint } from "#domain/blueprint.ts";

/**
 * Every word of a Blueprint's document, and every complete string. They include the keys that its expressions and settings name.
 * Leaving such a key in a target's answer reveals nothing that the document's author did not know.
 */
export function namesOf(blueprint: Blueprint): ReadonlySet<string> {
  const known = namesByBlueprint.get(blueprint);
  if (known !== undefined) return known;
  const names = new Set<string>();
  JSON.stringify(blueprint, (_key, value: unknown) => {
    if (typeof value === "string") {
      names.add(value);
      for (const [word] of value.matchAll(/[\p{L}\p{N}_$-]+/gu)) names.add(word);
    }
    return value;
  });
  namesByBlueprint.set(blueprint, names);
  return names;
}

/** All runs of a version share one document object, which never changes. */
const namesByBlueprint = new WeakMap<Blueprint, ReadonlySet<string>>();
