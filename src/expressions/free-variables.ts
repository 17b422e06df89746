import { BUILT_IN_FUNCTIONS } from "./built-in-functions.ts";

/** A variable that an expression reads but doesn't bind. */
export interface VariableUse {
  /** Without `$`. */
  readonly name: string;
  /** The static field names that follow it: `$inputs.period.from` has `["period", "from"]`. */
  readonly path: readonly string[];
  /** Offset of the `$` in the expression, in UTF-16 units. */
  readonly position: number;
}

/** A node of jsonata's compiled tree. Its many shapes are undocumented, so only the keys that are read here are declared. */
export interface TreeNode {
  readonly [key: string]: unknown;
}

/** A frame of the interpreter: the names bound so far, and those that will be bound before a function in it is called. */
interface Frame {
  readonly bound: Set<string>;
  readonly later: ReadonlySet<string>;
  readonly isFunction: boolean;
  readonly outer: Frame | undefined;
}

export function isTreeNode(value: unknown): value is TreeNode {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof RegExp);
}

/** Keys whose values aren't children, or are visited separately because their order determines what is bound. */
const NOT_CHILDREN = new Set([
  "slot",
  "ancestor",
  "seekingParent",
  "signature",
  "stages",
  "predicate",
  "group",
]);

/** The children of a node, except those in `NOT_CHILDREN`. */
function children(node: TreeNode): unknown[] {
  return Object.keys(node)
    .filter((key) => !NOT_CHILDREN.has(key))
    .map((key) => node[key]);
}

/** Calls `visit` for each direct child of a node: nodes, lists of nodes, and plain values. */
export function everyChild(node: TreeNode, visit: (child: unknown) => void): void {
  for (const child of [...children(node), node["stages"], node["predicate"], node["group"]]) visit(child);
}

/** Calls `visit` for every node of the tree, parents first. */
export function everyNode(value: unknown, visit: (node: TreeNode) => void): void {
  if (Array.isArray(value)) for (const item of value) everyNode(item, visit);
  if (!isTreeNode(value)) return;
  visit(value);
  everyChild(value, (child) => everyNode(child, visit));
}

type Uses = Map<string, VariableUse>;

/** Every free variable of a compiled tree, in the order of evaluation; built-in functions are left out. */
export function freeVariables(tree: unknown): readonly VariableUse[] {
  const uses: Uses = new Map();
  visit(tree, newFrame(tree, undefined, false), uses);
  return [...uses.values()];
}

function visit(value: unknown, frame: Frame, uses: Uses): void {
  if (Array.isArray(value)) for (const item of value) visit(item, frame, uses);
  if (!isTreeNode(value)) return;
  switch (value["type"]) {
    case "variable":
      use(value, [], frame, uses);
      break;
    case "bind":
      // The right side first: `$x := $x + 1` reads an outer `$x`.
      visit(value["rhs"], frame, uses);
      if (isTreeNode(value["lhs"])) frame.bound.add(text(value["lhs"]["value"]));
      return;
    case "block":
      visit(value["expressions"], newFrame(value["expressions"], frame, false), uses);
      break;
    case "lambda":
      visitLambda(value, frame, uses);
      break;
    case "path":
      visitPath(value, newFrame([], frame, false), uses);
      return;
    default:
      visit(children(value), frame, uses);
  }
  visitTail(value, frame, uses);
}

function use(node: TreeNode, path: readonly string[], frame: Frame, uses: Uses): void {
  const name = text(node["value"]);
  if (name === "" || name === "$" || isBound(name, frame)) return;
  // `$eval` counts as a variable that doesn't exist: see `compileExpression`.
  if (BUILT_IN_FUNCTIONS.has(name) && name !== "eval") return;
  // jsonata returns the offset after the token.
  const position = typeof node["position"] === "number" ? Math.max(0, node["position"] - name.length - 1) : 0;
  uses.set(JSON.stringify([position, name, path]), { name, path, position });
}

function visitLambda(node: TreeNode, frame: Frame, uses: Uses): void {
  // A thunk is how jsonata wraps a tail call. It is evaluated in place.
  if (node["thunk"] === true) return visit(node["body"], frame, uses);
  const inner = newFrame(node["body"], frame, true);
  const parameters: unknown = node["arguments"];
  if (Array.isArray(parameters)) {
    for (const parameter of parameters) if (isTreeNode(parameter)) inner.bound.add(text(parameter["value"]));
  }
  visit(node["body"], inner, uses);
}

function visitPath(node: TreeNode, frame: Frame, uses: Uses): void {
  const steps: unknown[] = Array.isArray(node["steps"]) ? node["steps"] : [];
  for (const [index, step] of steps.entries()) {
    if (index === 0 && isTreeNode(step) && step["type"] === "variable") {
      use(step, staticFields(steps), frame, uses);
      visitTail(step, frame, uses);
    } else {
      visit(step, frame, uses);
    }
  }
  visitTail(node, frame, uses);
}

/** The modifiers of a step bind and read in this order: `@$focus`, `#$index`, filters, grouping. */
function visitTail(node: TreeNode, frame: Frame, uses: Uses): void {
  for (const key of ["focus", "index"]) if (typeof node[key] === "string") frame.bound.add(node[key]);
  for (const key of ["predicate", "stages"]) {
    const stages: unknown = node[key];
    if (!Array.isArray(stages)) continue;
    for (const stage of stages) {
      if (isTreeNode(stage) && stage["type"] === "index") frame.bound.add(text(stage["value"]));
      else visit(stage, frame, uses);
    }
  }
  visit(node["group"], frame, uses);
}

function newFrame(content: unknown, outer: Frame | undefined, isFunction: boolean): Frame {
  const later = new Set<string>();
  collectBindings(content, later);
  return { bound: new Set(), later, isFunction, outer };
}

/** The names bound by `:=` in one frame: blocks and functions inside have their own. */
function collectBindings(value: unknown, into: Set<string>): void {
  if (Array.isArray(value)) for (const item of value) collectBindings(item, into);
  if (!isTreeNode(value)) return;
  if (value["type"] === "block" || (value["type"] === "lambda" && value["thunk"] !== true)) return;
  if (value["type"] === "bind" && isTreeNode(value["lhs"])) into.add(text(value["lhs"]["value"]));
  for (const child of [...children(value), value["stages"], value["predicate"], value["group"]]) {
    collectBindings(child, into);
  }
}

function isBound(name: string, from: Frame): boolean {
  let called = false;
  for (let frame: Frame | undefined = from; frame !== undefined; frame = frame.outer) {
    // A function's body runs when it is called, so it sees names that are bound after it. Recursion needs that.
    if (frame.bound.has(name) || (called && frame.later.has(name))) return true;
    if (frame.isFunction) called = true;
  }
  return false;
}

function staticFields(steps: readonly unknown[]): readonly string[] {
  const path: string[] = [];
  for (const [index, step] of steps.entries()) {
    if (!isTreeNode(step)) break;
    if (index > 0) {
      if (step["type"] !== "name") break;
      path.push(text(step["value"]));
    }
    // A step after a filter, a binding or a grouping is no longer a field of this value.
    if (["stages", "predicate", "focus", "index", "group"].some((key) => step[key] !== undefined)) break;
  }
  return path;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
