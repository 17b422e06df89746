import { shorten } from "#domain/config-problem.ts";
import { isJsonObject, type Json } from "#domain/json.ts";
import type { LocatorConfig } from "./locator.ts";

/** An element that has a name, as assistive technology sees it. */
export interface Named {
  readonly role: string;
  readonly name: string;
}

const NAMES_MAX = 2_000;
const SHOWN_MAX = 4;

/**
 * The named elements of the driver's snapshot of a page. Only roles and names: values of fields are left out. `clean` removes secrets
 * from a name, before it is shortened.
 */
export function namesOf(snapshot: unknown, clean: (text: string) => string): readonly Named[] {
  const found: Named[] = [];
  const visit = (part: Json): void => {
    if (found.length >= NAMES_MAX) return;
    if (Array.isArray(part)) for (const each of part) visit(each as Json);
    if (!isJsonObject(part)) return;
    const { role, name, children } = part;
    if (typeof role === "string" && typeof name === "string" && role !== "text" && name.trim() !== "")
      found.push({ role, name: shorten(clean(name.trim())) });
    if (children !== undefined) visit(children);
  };
  visit(snapshot as Json);
  return found;
}

/** Roles of elements that have a value. */
export const FIELD_ROLES: readonly string[] = [
  "textbox",
  "searchbox",
  "combobox",
  "checkbox",
  "radio",
  "spinbutton",
  "switch",
];

/**
 * The names that the locator may mean: of the same role first, then by shared words, then by the letters that differ; at most four, and
 * none of another role unless it shares a word.
 */
export function nearestTo(locator: LocatorConfig, names: readonly Named[]): readonly Named[] {
  const wanted = locator.name ?? locator.label ?? locator.text ?? locator.placeholder ?? locator.title ?? "";
  const isOfRole = ({ role }: Named): boolean =>
    locator.role === undefined
      ? locator.label !== undefined && FIELD_ROLES.includes(role)
      : role === locator.role;
  const once = [...new Map(names.map((each) => [`${each.role} ${each.name}`, each])).values()];
  return once
    .map((each) => ({
      each,
      same: isOfRole(each),
      shared: sharedWords(wanted, each.name),
      distance: distance(wanted.toLowerCase(), each.name.toLowerCase()),
    }))
    .filter(({ same, shared }) => same || shared > 0)
    .sort((a, b) => Number(b.same) - Number(a.same) || b.shared - a.shared || a.distance - b.distance)
    .slice(0, SHOWN_MAX)
    .map(({ each }) => each);
}

const wordsOf = (text: string): readonly string[] => text.toLowerCase().match(/[\p{L}\p{N}]{2,}/gu) ?? [];

function sharedWords(a: string, b: string): number {
  const words = new Set(wordsOf(a));
  return wordsOf(b).filter((word) => words.has(word)).length;
}

/** The number of letters to insert, delete or replace. Names are short: they were shortened above. */
function distance(a: string, b: string): number {
  let last = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++)
      row.push(
        Math.min(
          (last[j] ?? 0) + 1,
          (row[j - 1] ?? 0) + 1,
          (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1),
        ),
      );
    last = row;
  }
  return last[b.length] ?? 0;
}
