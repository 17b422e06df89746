import type { TSchema } from "typebox";
import { findExpressions } from "#domain/config-expressions.ts";
import type { ConfigPath } from "#domain/config-problem.ts";
import type { Json, JsonObject } from "#domain/json.ts";
import { analyseTemplate } from "./analyse.ts";
import { compileExpression } from "./compile.ts";
import { everyChild, everyNode, isTreeNode, type TreeNode } from "./free-variables.ts";

/** An expression of a login whose outcome would disclose something about a secret field. */
export interface SecretUse {
  readonly path: ConfigPath;
  readonly form: "expression" | "template";
  /** The field that it names; null if it accesses the credential by any means other than `$credential.<field>`. */
  readonly field: string | null;
}

export type IsSecret = (field: string) => boolean;

/**
 * Functions that a template may apply to a secret: they return a string for every string, and none of them tests whether it
 * contains another one, as `$replace`, `$split` and `$substringBefore` do.
 */
const TEXT_FUNCTIONS: ReadonlySet<unknown> = new Set([
  ...["string", "trim", "uppercase", "lowercase", "substring", "pad", "join"],
  ...["base64encode", "base64decode", "encodeUrl", "encodeUrlComponent"],
]);

/**
 * Finds expressions of a login that could disclose a secret bit by bit, through a trace or an error (docs/decisions/0014). It is an
 * allow-list. A bare expression may read fields that are not secret, and test secret ones with `$exists($credential.<field>)`. A
 * template may also insert secret fields into strings, lists and objects; its conditions follow the rule for bare expressions.
 * Expressions that don't compile are reported elsewhere.
 */
export function findSecretUses(
  schema: TSchema,
  login: Json,
  isSecret: IsSecret,
  path: ConfigPath = [],
): readonly SecretUse[] {
  return findExpressions(schema, login, path).flatMap((place): readonly SecretUse[] => {
    const { form } = place;
    if (place.form === "expression") return useIn(place.source, place.path, form, isSecret);
    return analyseTemplate(place.template).flatMap((each) =>
      each.analysis.ok ? useIn(each.expression, [...place.path, ...each.path], form, isSecret) : [],
    );
  });
}

/** The `isSecret` argument of `findSecretUses`, from the fields of a strategy document or of a parsed strategy. */
export function secretFields(
  fields: readonly { readonly key: string; readonly secret: boolean }[],
): IsSecret {
  // An unknown field counts as secret.
  const open = new Set(fields.filter(({ secret }) => !secret).map(({ key }) => key));
  return (field) => !open.has(field);
}

function useIn(
  source: string,
  path: ConfigPath,
  form: SecretUse["form"],
  isSecret: IsSecret,
): readonly SecretUse[] {
  const compiled = compileExpression(source);
  if (!compiled.ok) return [];
  const { tree } = compiled;
  // An expression that rebinds the name of a built-in function is not analysed any further.
  const own = isRedefined(tree) ? NOTHING_BUILT_IN : { exists: true, texts: TEXT_FUNCTIONS };
  const found = form === "template" ? insertedUse(tree, own, isSecret) : decidingUse(tree, own, isSecret);
  return found === null ? [] : [{ path, form, field: found.field }];
}

interface BuiltIn {
  readonly exists: boolean;
  readonly texts: ReadonlySet<unknown>;
}
const NOTHING_BUILT_IN: BuiltIn = { exists: false, texts: new Set() };

interface Found {
  readonly field: string | null;
}

/** The first use of the credential that is not allowed in a condition. */
function decidingUse(value: unknown, own: BuiltIn, isSecret: IsSecret): Found | null {
  let found: Found | null = null;
  const visit = (part: unknown): void => {
    if (found !== null) return;
    if (Array.isArray(part)) for (const each of part) visit(each);
    if (!isTreeNode(part)) return;
    const read = plainField(part);
    if (read !== null && !isSecret(read.field)) return;
    if (read !== null) found = { field: read.field };
    else if (part["type"] === "variable" && part["value"] === "credential") found = { field: null };
    else if (!isExistence(part, own)) everyChild(part, visit);
  };
  visit(value);
  return found;
}

/** The first use of the credential that does more than insert a field into a string. */
function insertedUse(node: unknown, own: BuiltIn, isSecret: IsSecret): Found | null {
  const deciding = decidingUse(node, own, isSecret);
  if (deciding === null || !isTreeNode(node)) return deciding;
  if (plainField(node) !== null) return null;
  const decided = (part: unknown): Found | null => decidingUse(part, own, isSecret);
  const inserted = (part: unknown): Found | null => insertedUse(part, own, isSecret);
  if (CHOOSING.some((key) => node[key] !== undefined)) return deciding;
  switch (node["type"]) {
    case "binary":
      return node["value"] === "&" ? first(inserted, [node["lhs"], node["rhs"]]) : deciding;
    case "unary":
      if (node["value"] === "[") return first(inserted, list(node["expressions"]));
      if (node["value"] !== "{") return deciding;
      return first((pair) => decided(list(pair)[0]) ?? inserted(list(pair)[1]), list(node["lhs"]));
    case "block":
      return first(inserted, list(node["expressions"]));
    case "condition":
      return decided(node["condition"]) ?? first(inserted, [node["then"], node["else"]]);
    case "function": {
      const { procedure } = node;
      const [text, ...more] = list(node["arguments"]);
      const isText =
        isTreeNode(procedure) && procedure["type"] === "variable" && own.texts.has(procedure["value"]);
      return isText && more.every(isLiteral) ? inserted(text) : deciding;
    }
    default:
      return deciding;
  }
}

const isLiteral = (node: unknown): boolean =>
  isTreeNode(node) && (node["type"] === "string" || node["type"] === "number");

/** Keys that filter, group or bind the value of a node. */
const CHOOSING = ["predicate", "stages", "group", "focus", "index"] as const;

/** `$credential.<field>` and paths below the field, without filters, grouping or bindings. */
function plainField(node: TreeNode): { readonly field: string; readonly depth: number } | null {
  if (node["type"] !== "path" || CHOOSING.some((key) => node[key] !== undefined)) return null;
  const [root, ...names] = list(node["steps"]);
  const isPlain = (step: unknown, type: string): step is TreeNode =>
    isTreeNode(step) && step["type"] === type && CHOOSING.every((key) => step[key] === undefined);
  if (!isPlain(root, "variable") || root["value"] !== "credential") return null;
  const keys = names.flatMap((step) => (isPlain(step, "name") ? [String(step["value"])] : []));
  const [field] = keys;
  return field === undefined || keys.length < names.length ? null : { field, depth: keys.length };
}

/** `$exists($credential.<field>)`, only for the field itself: the end user determines what it contains. */
function isExistence(node: TreeNode, own: BuiltIn): boolean {
  const { procedure, arguments: given } = node;
  if (node["type"] !== "function" || CHOOSING.some((key) => node[key] !== undefined)) return false;
  if (!own.exists || !isTreeNode(procedure) || procedure["type"] !== "variable") return false;
  const [only, ...more] = list(given);
  return (
    procedure["value"] === "exists" && more.length === 0 && isTreeNode(only) && plainField(only)?.depth === 1
  );
}

/** Whether an expression binds `$exists`, or a function that templates may use, to something else. */
function isRedefined(tree: TreeNode): boolean {
  let found = false;
  const take = (name: unknown): void => {
    if (name === "exists" || TEXT_FUNCTIONS.has(name)) found = true;
  };
  everyNode(tree, (node) => {
    if (node["type"] === "bind" && isTreeNode(node["lhs"])) take(node["lhs"]["value"]);
    if (node["type"] === "lambda")
      for (const each of list(node["arguments"])) if (isTreeNode(each)) take(each["value"]);
    take(node["focus"]);
    take(node["index"]);
    if (node["type"] === "index") take(node["value"]);
  });
  return found;
}

function first(find: (part: unknown) => Found | null, parts: readonly unknown[]): Found | null {
  for (const part of parts) {
    const found = find(part);
    if (found !== null) return found;
  }
  return null;
}

const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** Explains the finding and its remedy. */
export function explainSecretUse({ form, field }: SecretUse): string {
  const allowed =
    form === "expression"
      ? "a condition may compare only fields that are not secret, and test a secret one only with `$exists($credential.<field>)`"
      : "a template may insert secret fields unchanged or through string functions, but its conditions may use only fields that are not secret";
  const what =
    field === null
      ? "`$credential` may only be read as `$credential.<field>`"
      : `the outcome would disclose something about the secret field \`${field}\``;
  return `${what}; ${allowed}`;
}

/** The same, for a parsed strategy's login. */
export function findSecretUsesOf(
  schema: TSchema,
  strategy: {
    readonly login: JsonObject;
    readonly fields: readonly { readonly key: string; readonly secret: boolean }[];
  },
): readonly SecretUse[] {
  return findSecretUses(schema, strategy.login, secretFields(strategy.fields));
}
