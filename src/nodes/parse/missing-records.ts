import { quoteList } from "#domain/config-problem.ts";
import type { BoundExpressions, Scope } from "#domain/expression.ts";
import type { Json } from "#domain/json.ts";
import { NodeFailure, type NodeContext } from "#nodes/define-node.ts";
import type { ListPath } from "./stream-json.ts";

/**
 * Called with the reason why there are no records. `isChanged`: not even the place of the records exists, so it is not an empty
 * list, and the answer is not the one that the document was written for.
 */
export type ReportMissing = (why: string, isChanged: boolean) => void;

/** Whether it matters that records are missing: the document can say that none is fine. */
interface MissingRecordsConfig {
  readonly expect?: { readonly min_records?: number | undefined } | undefined;
}

/**
 * In versions of the second edition, a change fails the node; everything else is a warning in its step's log. `place` is the
 * beginning of the message.
 */
export function reportMissing(
  context: Pick<NodeContext, "node" | "warn">,
  { expect }: MissingRecordsConfig,
  place: string,
): ReportMissing {
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
  string: "a string",
  number: "a number",
  boolean: "true or false",
  null: "null",
};

/** Explains what an answer contains when nothing was found at a path of names. */
export async function findMissing(
  expressions: BoundExpressions,
  root: Pick<Scope, "root" | "rootText">,
  path: ListPath,
  tell: ReportMissing,
): Promise<void> {
  if (path.length === 0) return;
  const parent = path.length === 1 ? "$" : path.slice(0, -1).join(".");
  const sources = [`$type(${path.join(".")})`, `$type(${parent})`, "$keys($)", "$type($)"];
  const [outcomes] = await expressions.evaluateBatch(sources, [root]);
  const [found, above, keys, whole] = (outcomes ?? []).map((outcome) => (outcome.ok ? outcome.value : null));
  // The place exists and is null: there are no records.
  if (found === "null") return;
  const isThere = above === "object" || above === "array";
  tell(`no \`${path.join(".")}\`; ${describe(whole, keys)}`, !isThere);
}

function describe(kind: Json | undefined, keys: Json | undefined): string {
  if (kind !== "object")
    return `the answer is ${(typeof kind === "string" ? KINDS[kind] : undefined) ?? "nothing"}`;
  const all: readonly Json[] = Array.isArray(keys) ? keys : keys === undefined || keys === null ? [] : [keys];
  // Lists only short names, and never truncates one: the redactor must be able to find complete values.
  const names = all
    .flatMap((key) => (typeof key === "string" ? [key] : []))
    .filter(({ length }) => length <= LISTED_CHARACTERS_MAX);
  if (all.length === 0) return "the answer is an empty object";
  return `the answer has the fields ${quoteList(names.slice(0, LISTED_MAX))}${all.length > Math.min(names.length, LISTED_MAX) ? ", …" : ""}`;
}
