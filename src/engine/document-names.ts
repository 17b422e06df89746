import type { Blueprint } from "#domain/blueprint.ts";

/**
 * Every word of a Blueprint's document, and every text as a whole: the keys that its expressions and settings name are among them.
 * To leave such a key where a target writes it says nothing that the document's author did not know.
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

/** A version's document is the same object for all of its runs, and never changes. */
const namesByBlueprint = new WeakMap<Blueprint, ReadonlySet<string>>();
