import { findSqlSites } from "./sql-sites.ts";
import { calledName, isNode, parse, walk, type SyntaxNode } from "./syntax.ts";

export const KINDS = [
  "guard removed",
  "guard negated",
  "await removed",
  "sql term removed",
  "sql lock removed",
  "limit times ten",
  "audit removed",
  "redaction removed",
  "check removed",
] as const;
export type MutationKind = (typeof KINDS)[number];

/** A place of a file that can be broken in one way. */
export interface Site {
  readonly file: string;
  readonly kind: MutationKind;
  /** From 1. */
  readonly line: number;
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

/** Names of functions that refuse: called for that alone, they are the check of a role, a right or a rule. */
const CHECKS = /^(?:require|authorize|refuse|forbid)[A-Z]/;
const LIMIT_NAME = /(?:MAX|MS|BYTES|COUNT|AT_ONCE)$/;
const LIMITS_FILE = "src/domain/limits.ts";

/** All sites of a file, in the order of their kinds. */
export function findSites(file: string, text: string): readonly Site[] {
  const program = parse(file, text);
  if (program === null) throw new Error(`${file} can't be parsed`);
  const nodes = [...walk(program)];
  const found = [
    ...nodes.flatMap((node) => guardsOf(node, text)),
    ...nodes.flatMap((node) => callsOf(node, text)),
    ...nodes.flatMap((node) => limitsOf(node, text, file === LIMITS_FILE)),
    ...(file.startsWith("src/db/") ? nodes.flatMap((node) => sqlOf(node, text)) : []),
  ];
  return found.map((site) => ({
    file,
    line: text.slice(0, site.start).split("\n").length,
    ...site,
  }));
}

/** The file with this one place changed. */
export const applySite = (text: string, { start, end, replacement }: Site): string =>
  text.slice(0, start) + replacement + text.slice(end);

type FoundSite = Omit<Site, "file" | "line">;

function guardsOf(node: SyntaxNode, text: string): readonly FoundSite[] {
  const { consequent, alternate, test } = node;
  if (node.type !== "IfStatement" || alternate !== null || !isNode(consequent) || !isNode(test)) return [];
  const last = consequent.type === "BlockStatement" ? lastOf(consequent["body"]) : consequent;
  if (!isNode(last) || (last.type !== "ThrowStatement" && last.type !== "ReturnStatement")) return [];
  const { start, end } = node;
  return [
    { kind: "guard removed", start, end, replacement: ";" },
    {
      kind: "guard negated",
      start: test.start,
      end: test.end,
      replacement: `!(${text.slice(test.start, test.end)})`,
    },
  ];
}

const lastOf = (body: unknown): unknown => (Array.isArray(body) ? (body.at(-1) as unknown) : null);

/** Statements that stand alone, and redactions wherever they are. */
function callsOf(node: SyntaxNode, text: string): readonly FoundSite[] {
  const { start, end } = node;
  if (node.type === "CallExpression") return redactionsOf(node, text);
  const { expression } = node;
  if (node.type !== "ExpressionStatement" || !isNode(expression)) return [];
  const isAwaited = expression.type === "AwaitExpression";
  const call = isAwaited ? expression["argument"] : expression;
  const name = calledName(call);
  const sites: FoundSite[] = [];
  if (isAwaited && isNode(call))
    sites.push({
      kind: "await removed",
      start: expression.start,
      end: expression.end,
      replacement: `void ${text.slice(call.start, call.end)}`,
    });
  if (name === "recordAudit") sites.push({ kind: "audit removed", start, end, replacement: ";" });
  if (name !== null && CHECKS.test(name)) sites.push({ kind: "check removed", start, end, replacement: ";" });
  return sites;
}

function redactionsOf(node: SyntaxNode, text: string): readonly FoundSite[] {
  const [first] = Array.isArray(node["arguments"]) ? (node["arguments"] as readonly unknown[]) : [];
  const { callee } = node;
  if (!isNode(first) || !isNode(callee) || first.type === "SpreadElement") return [];
  if (!/(?:^|\.)redact(?:\.\w+)?$/i.test(text.slice(callee.start, callee.end))) return [];
  const replacement = `(${text.slice(first.start, first.end)})`;
  return [{ kind: "redaction removed", start: node.start, end: node.end, replacement }];
}

/** Numbers under the name of a limit: a constant, or a property of the table of limits. */
function limitsOf(node: SyntaxNode, text: string, isTable: boolean): readonly FoundSite[] {
  const isConstant = node.type === "VariableDeclarator";
  const value = isConstant ? node["init"] : node.type === "Property" && isTable ? node["value"] : null;
  const named = isConstant ? node["id"] : node["key"];
  if (!isNode(value) || !isNode(named)) return [];
  if (isConstant && !LIMIT_NAME.test(String(named["name"]))) return [];
  if (!isNumber(value)) return [];
  const replacement = `10 * (${text.slice(value.start, value.end)})`;
  return [{ kind: "limit times ten", start: value.start, end: value.end, replacement }];
}

function isNumber(node: unknown): boolean {
  if (!isNode(node)) return false;
  if (node.type === "Literal") return typeof node["value"] === "number";
  return node.type === "BinaryExpression" && isNumber(node["left"]) && isNumber(node["right"]);
}

function sqlOf(node: SyntaxNode, text: string): readonly FoundSite[] {
  const isText =
    node.type === "TemplateLiteral" || (node.type === "Literal" && typeof node["value"] === "string");
  if (!isText) return [];
  // Without the quotes, which are no part of a last term.
  const start = node.start + 1;
  return findSqlSites(text.slice(start, node.end - 1)).map((site) => ({
    ...site,
    start: start + site.start,
    end: start + site.end,
  }));
}
