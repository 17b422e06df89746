import { quoteList } from "#domain/config-problem.ts";
import type { BoundExpressions, Scope } from "#domain/expression.ts";
import type { Json } from "#domain/json.ts";
import { NodeFailure, type NodeContext } from "#nodes/define-node.ts";
import type { ListPath } from "./stream-json.ts";

/**
 * Told why there are no records where there could be some. `isChanged`: not even the place where they would be is there, so it is no
 * list without items but another answer than the document was written for.
 */
export type TellMissing = (why: string, isChanged: boolean) => void;

/** The document can say that none is fine. */
interface MissingMatters {
  readonly expect?: { readonly min_records?: number | undefined } | undefined;
}

/**
 * A change fails the node, in versions of the second edition; everything else is a warning in its step's log. `place` begins the
 * message.
 */
export function tellMissing(
  context: Pick<NodeContext, "node" | "warn">,
  { expect }: MissingMatters,
  place: string,
): TellMissing {
  return (why, isChanged) => {
    if (isChanged && context.node.edition >= 2 && expect?.min_records !== 0)
      throw new NodeFailure(`${place}: ${why}.`);
    context.warn(why);
  };
}

const LISTED_MAX = 20;
const LISTED_CHARACTERS_MAX = 40;
const KINDS: Readonly<Record<string, string>> = {
  array: "a list",
  string: "a text",
  number: "a number",
  boolean: "true or false",
  null: "null",
};

/** Nothing was found at a path of names: what is there instead? */
export async function findMissing(
  expressions: BoundExpressions,
  root: Pick<Scope, "root" | "rootText">,
  path: ListPath,
  tell: TellMissing,
): Promise<void> {
  if (path.length === 0) return;
  const parent = path.length === 1 ? "$" : path.slice(0, -1).join(".");
  const sources = [`$type(${path.join(".")})`, `$type(${parent})`, "$keys($)", "$type($)"];
  const [outcomes] = await expressions.evaluateBatch(sources, [root]);
  const [found, above, keys, whole] = (outcomes ?? []).map((outcome) => (outcome.ok ? outcome.value : null));
  // It is there, and says that there is none.
  if (found === "null") return;
  const isThere = above === "object" || above === "array";
  tell(`no \`${path.join(".")}\`; ${describe(whole, keys)}`, !isThere);
}

function describe(kind: Json | undefined, keys: Json | undefined): string {
  if (kind !== "object")
    return `the answer is ${(typeof kind === "string" ? KINDS[kind] : undefined) ?? "nothing"}`;
  const all: readonly Json[] = Array.isArray(keys) ? keys : keys === undefined || keys === null ? [] : [keys];
  // Short ones alone, and whole: what the redactor looks for must not be cut in two.
  const names = all
    .flatMap((key) => (typeof key === "string" ? [key] : []))
    .filter(({ length }) => length <= LISTED_CHARACTERS_MAX);
  if (all.length === 0) return "the answer is an empty object";
  return `the answer has: ${quoteList(names.slice(0, LISTED_MAX))}${all.length > Math.min(names.length, LISTED_MAX) ? ", …" : ""}`;
}
