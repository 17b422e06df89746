import { formatPath, type ConfigPath } from "./config-problem.ts";
import { isJsonObject, type Json } from "./json.ts";

/** A place in which two versions of a document differ. `before` or `after` is absent where the place does not exist. */
export interface Difference {
  /** Like `nodes.lines.fields.total`: items of a list that have an `id` or a `key` are identified by it. */
  readonly path: string;
  readonly before?: Json;
  readonly after?: Json;
}

/** The changes from `before` to `after`, in the order of the document. */
export function diffDocuments(before: Json, after: Json): readonly Difference[] {
  return diff(before, after, []);
}

function diff(before: Json, after: Json, path: ConfigPath): readonly Difference[] {
  if (isJsonObject(before) && isJsonObject(after))
    return diffEntries(new Map(Object.entries(before)), new Map(Object.entries(after)), path);
  if (Array.isArray(before) && Array.isArray(after)) return diffLists(before, after, path);
  return JSON.stringify(before) === JSON.stringify(after) ? [] : [{ path: formatPath(path), before, after }];
}

function diffEntries(
  before: ReadonlyMap<string | number, Json>,
  after: ReadonlyMap<string | number, Json>,
  path: ConfigPath,
): readonly Difference[] {
  const keys = [...after.keys(), ...[...before.keys()].filter((key) => !after.has(key))];
  return keys.flatMap((key): readonly Difference[] => {
    const [was, is] = [before.get(key), after.get(key)];
    const at = [...path, key];
    if (was !== undefined && is !== undefined) return diff(was, is, at);
    return [
      {
        path: formatPath(at),
        ...(was !== undefined && { before: was }),
        ...(is !== undefined && { after: is }),
      },
    ];
  });
}

function diffLists(before: readonly Json[], after: readonly Json[], path: ConfigPath): readonly Difference[] {
  const [was, is] = [byName(before), byName(after)];
  if (was === null || is === null)
    return diffEntries(new Map(before.entries()), new Map(after.entries()), path);
  const common = (names: Iterable<string>): string =>
    [...names].filter((name) => was.has(name) && is.has(name)).join(", ");
  const [orderBefore, orderAfter] = [common(was.keys()), common(is.keys())];
  const moved =
    orderBefore === orderAfter
      ? []
      : [{ path: `${formatPath(path)} (order)`, before: orderBefore, after: orderAfter }];
  return [...moved, ...diffEntries(was, is, path)];
}

/** The items by their identifiers; null: some have none, or share one. */
function byName(items: readonly Json[]): ReadonlyMap<string, Json> | null {
  const named = new Map<string, Json>();
  for (const item of items) {
    const name = isJsonObject(item) ? (item["id"] ?? item["key"] ?? item["name"]) : undefined;
    if (typeof name !== "string" || named.has(name)) return null;
    named.set(name, item);
  }
  return named;
}
