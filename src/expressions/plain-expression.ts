import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import { compileExpression } from "./compile.ts";
import { isTreeNode, type TreeNode } from "./free-variables.ts";
import {
  NEEDS_SANDBOX,
  finite,
  PLAIN_FUNCTIONS,
  TEXT_CHARACTERS_MAX,
  textOf,
  truth,
  type PlainValue,
} from "./plain-functions.ts";

/**
 * Most expressions are a path, a comparison or a call of a small function. These are evaluated here, without a thread: each step
 * takes bounded time and produces a bounded value, so they can't hang or grow. The result is the same as JSONata's
 * (test/expressions/plain-expression.test.ts compares the two). Wherever that isn't certain (a list in a path, a wrong type, an
 * error), the result is `NEEDS_SANDBOX`, and a thread evaluates the expression on that record.
 */
export interface PlainScope {
  readonly root: Json | undefined;
  /** The scope's own variables, which shadow those of the binding. */
  readonly own: { readonly [name: string]: Json } | undefined;
  readonly bound: { readonly [name: string]: Json };
}

export type PlainExpression = (scope: PlainScope) => PlainValue;

/** A deeper tree is a program and goes to a thread. */
const LEVELS_MAX = 40;
const NODES_MAX = 200;

/** Returns null if the expression is more complex than this, or doesn't compile. */
export function compilePlain(source: string): PlainExpression | null {
  const compiled = compileExpression(source);
  if (!compiled.ok) return null;
  const state = { nodes: 0 };
  return build(compiled.tree, state, 0);
}

interface Building {
  nodes: number;
}

/** Keys of a node that don't change its value. A node with any other key isn't compiled. */
const HARMLESS = new Set(["type", "value", "position", "name"]);

function build(node: unknown, state: Building, level: number): PlainExpression | null {
  if (!isTreeNode(node) || level > LEVELS_MAX || (state.nodes += 1) > NODES_MAX) return null;
  const inner = (child: unknown): PlainExpression | null => build(child, state, level + 1);
  const own = Object.keys(node).filter((key) => !HARMLESS.has(key));
  const has = (...keys: readonly string[]): boolean => own.every((key) => keys.includes(key));
  switch (node["type"]) {
    case "string":
    case "number":
    case "value":
      return has() ? literal(node["value"]) : null;
    case "variable":
      return has() ? variable(node["value"]) : null;
    case "path":
      return has("steps") ? path(node["steps"]) : null;
    case "block": {
      const { expressions } = node;
      return has("expressions") && Array.isArray(expressions) && expressions.length === 1
        ? inner(expressions[0])
        : null;
    }
    case "binary":
      return has("lhs", "rhs") ? binary(node, inner) : null;
    case "unary":
      return node["value"] === "-" && has("expression") ? negative(inner(node["expression"])) : null;
    case "condition":
      return has("condition", "then", "else") ? condition(node, inner) : null;
    case "function":
      return has("procedure", "arguments") ? call(node, inner) : null;
    default:
      return null;
  }
}

type Inner = (child: unknown) => PlainExpression | null;

function literal(value: unknown): PlainExpression | null {
  if (value === null || typeof value === "boolean" || typeof value === "string") return () => value;
  return typeof value === "number" && Number.isFinite(value) ? () => value : null;
}

/** An unbound name may be a built-in function. `$` and `$$` are the root. */
function variable(name: unknown): PlainExpression | null {
  if (typeof name !== "string" || name === "" || name === "$") return null;
  return ({ own, bound }) => {
    if (own !== undefined && Object.hasOwn(own, name)) return own[name];
    return Object.hasOwn(bound, name) ? bound[name] : NEEDS_SANDBOX;
  };
}

function path(steps: unknown): PlainExpression | null {
  if (!Array.isArray(steps)) return null;
  const nodes: readonly unknown[] = steps;
  const [first, ...rest] = nodes;
  const start =
    isTreeNode(first) && first["type"] === "variable" && Object.keys(first).every((key) => HARMLESS.has(key))
      ? variable(first["value"])
      : null;
  const names = (start === null ? nodes : rest).map(nameOf);
  if (names.includes(null)) return null;
  return (scope) => {
    let value: PlainValue = start === null ? scope.root : start(scope);
    if (start === null && !isJsonObject(value)) return NEEDS_SANDBOX;
    for (const name of names) {
      // A list is mapped over, and flattened.
      if (value === NEEDS_SANDBOX || Array.isArray(value)) return NEEDS_SANDBOX;
      if (!isJsonObject(value)) return undefined;
      value = field(value, name ?? "");
    }
    return value;
  };
}

function nameOf(step: unknown): string | null {
  if (!isTreeNode(step) || step["type"] !== "name" || typeof step["value"] !== "string") return null;
  return Object.keys(step).every((key) => HARMLESS.has(key)) ? step["value"] : null;
}

/** To jsonata, an object with one of these markers is a function. Inherited properties are left to a thread, too. */
function field(value: JsonObject, name: string): PlainValue {
  if ("_jsonata_function" in value || "_jsonata_lambda" in value) return NEEDS_SANDBOX;
  if (Object.hasOwn(value, name)) return value[name];
  return name in value ? NEEDS_SANDBOX : undefined;
}

function negative(expression: PlainExpression | null): PlainExpression | null {
  return (
    expression &&
    ((scope) => {
      const value = expression(scope);
      if (value === undefined) return undefined;
      return typeof value === "number" ? finite(-value) : NEEDS_SANDBOX;
    })
  );
}

function condition(node: TreeNode, inner: Inner): PlainExpression | null {
  const [asked, then] = [inner(node["condition"]), inner(node["then"])];
  const otherwise = node["else"] === undefined ? () => undefined : inner(node["else"]);
  if (asked === null || then === null || otherwise === null) return null;
  return (scope) => {
    const value = asked(scope);
    const known = value === NEEDS_SANDBOX ? NEEDS_SANDBOX : truth(value);
    if (known === NEEDS_SANDBOX) return NEEDS_SANDBOX;
    return known ? then(scope) : otherwise(scope);
  };
}

function call(node: TreeNode, inner: Inner): PlainExpression | null {
  const { procedure, arguments: given } = node;
  if (!isTreeNode(procedure) || procedure["type"] !== "variable" || !Array.isArray(given)) return null;
  const name = String(procedure["value"]);
  const values = given.map(inner).filter((value) => value !== null);
  if (values.length !== given.length) return null;
  const [first, second] = values;
  if (first === undefined) return null;
  const hides = ({ own, bound }: PlainScope): boolean =>
    (own !== undefined && Object.hasOwn(own, name)) || Object.hasOwn(bound, name);
  if (name === "exists" && values.length === 1)
    return (scope) => {
      const value = hides(scope) ? NEEDS_SANDBOX : first(scope);
      return value === NEEDS_SANDBOX ? NEEDS_SANDBOX : value !== undefined;
    };
  const apply = PLAIN_FUNCTIONS.get(`${name}/${values.length}`);
  if (apply === undefined) return null;
  return (scope) => {
    const value = hides(scope) ? NEEDS_SANDBOX : first(scope);
    if (value === NEEDS_SANDBOX) return NEEDS_SANDBOX;
    if (second === undefined) return value === undefined ? undefined : apply(value);
    const other = second(scope);
    // A wrong type is an error even if the other operand has no value.
    return value === undefined || other === undefined ? NEEDS_SANDBOX : apply(value, other);
  };
}

function binary(node: TreeNode, inner: Inner): PlainExpression | null {
  const operator = String(node["value"]);
  const left = inner(node["lhs"]);
  const list = operator === "in" ? literalList(node["rhs"]) : null;
  const right = list === null ? inner(node["rhs"]) : () => undefined;
  if (left === null || right === null) return null;
  if (list !== null)
    return (scope) => {
      const value = left(scope);
      return value === NEEDS_SANDBOX ? NEEDS_SANDBOX : list.has(value);
    };
  if (operator === "and" || operator === "or") {
    return (scope) => {
      const value = left(scope);
      const known = value === NEEDS_SANDBOX ? NEEDS_SANDBOX : truth(value);
      if (known === NEEDS_SANDBOX || known === (operator === "or")) return known;
      const other = right(scope);
      return other === NEEDS_SANDBOX ? NEEDS_SANDBOX : truth(other);
    };
  }
  const apply = OPERATORS.get(operator);
  if (apply === undefined) return null;
  return (scope) => {
    const value = left(scope);
    if (value === NEEDS_SANDBOX) return NEEDS_SANDBOX;
    const other = right(scope);
    return other === NEEDS_SANDBOX ? NEEDS_SANDBOX : apply(value, other);
  };
}

/** `["a", "b"]`: the values of a list of literals. */
function literalList(node: unknown): ReadonlySet<PlainValue> | null {
  if (!isTreeNode(node) || node["type"] !== "unary" || node["value"] !== "[") return null;
  const { expressions } = node;
  if (!Array.isArray(expressions)) return null;
  const items: readonly unknown[] = expressions;
  const values = items.map((item) =>
    isTreeNode(item) && (item["type"] === "string" || item["type"] === "number" || item["type"] === "value")
      ? item["value"]
      : undefined,
  );
  return values.includes(undefined) ? null : new Set(values as Json[]);
}

type Operator = (left: Json | undefined, right: Json | undefined) => PlainValue;

const isScalar = (value: Json | undefined): boolean => typeof value !== "object" || value === null;

const equality =
  (wanted: boolean): Operator =>
  (left, right) => {
    if (left === undefined || right === undefined) return false;
    return isScalar(left) && isScalar(right) ? (left === right) === wanted : NEEDS_SANDBOX;
  };

const arithmetic =
  (apply: (left: number, right: number) => number): Operator =>
  (left, right) =>
    typeof left === "number" && typeof right === "number" ? finite(apply(left, right)) : NEEDS_SANDBOX;

/** Two strings or two numbers. */
const comparison =
  (apply: (left: number | string, right: number | string) => boolean): Operator =>
  (left, right) => {
    if (typeof left === "number" && typeof right === "number") return apply(left, right);
    return typeof left === "string" && typeof right === "string" ? apply(left, right) : NEEDS_SANDBOX;
  };

function joined(left: Json | undefined, right: Json | undefined): PlainValue {
  const text = left === undefined ? "" : textOf(left);
  const other = right === undefined ? "" : textOf(right);
  if (text === NEEDS_SANDBOX || other === NEEDS_SANDBOX) return NEEDS_SANDBOX;
  return text.length + other.length > TEXT_CHARACTERS_MAX ? NEEDS_SANDBOX : text + other;
}

const OPERATORS: ReadonlyMap<string, Operator> = new Map<string, Operator>([
  ["=", equality(true)],
  ["!=", equality(false)],
  ["<", comparison((left, right) => left < right)],
  ["<=", comparison((left, right) => left <= right)],
  [">", comparison((left, right) => left > right)],
  [">=", comparison((left, right) => left >= right)],
  ["+", arithmetic((left, right) => left + right)],
  ["-", arithmetic((left, right) => left - right)],
  ["*", arithmetic((left, right) => left * right)],
  ["/", arithmetic((left, right) => left / right)],
  ["%", arithmetic((left, right) => left % right)],
  ["&", joined],
]);
