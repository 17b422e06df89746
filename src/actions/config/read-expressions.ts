import type { TSchema } from "typebox";
import type { ExpressionScopeKind } from "#domain/expression.ts";
import type { Json } from "#domain/json.ts";
import { findExpressions } from "#domain/config-expressions.ts";
import { quote, shorten, type ConfigFinding, type ConfigPath } from "#domain/config-problem.ts";
import type { AddedVariables } from "#nodes/define-node.ts";
import { analyseExpression, analyseTemplate } from "#expressions/analyse.ts";

/** One variable that an expression of the document reads: `$inputs.period.from` is `inputs` and `["period", "from"]`. */
export interface LocatedUse {
  readonly path: ConfigPath;
  readonly scope: ExpressionScopeKind;
  readonly name: string;
  readonly parts: readonly string[];
  /** Variables that the node type adds to those of the scope. */
  readonly added: readonly string[];
}

/**
 * Compiles every expression of a value, found by its schema's annotations, and lists the variables that they read. `requestScope`
 * is the meaning of the scope `request` here; `added` are additional variables by scope.
 */
export function readExpressions(
  schema: TSchema,
  value: Json,
  path: ConfigPath,
  requestScope: ExpressionScopeKind = "run",
  added: AddedVariables = {},
): { readonly uses: readonly LocatedUse[]; readonly findings: readonly ConfigFinding[] } {
  const uses: LocatedUse[] = [];
  const findings: ConfigFinding[] = [];
  for (const place of findExpressions(schema, value, path)) {
    const analysed =
      place.form === "expression"
        ? [{ path: place.path, expression: place.source, analysis: analyseExpression(place.source) }]
        : analyseTemplate(place.template).map((each) => ({ ...each, path: [...place.path, ...each.path] }));
    for (const { path: at, expression, analysis } of analysed) {
      if (!analysis.ok) {
        findings.push({
          path: at,
          message: explainCompileError(expression, analysis.message, analysis.position),
        });
        continue;
      }
      for (const use of analysis.uses) {
        const scope = place.scope === "request" ? requestScope : place.scope;
        uses.push({ path: at, scope, name: use.name, parts: use.path, added: added[place.scope] ?? [] });
      }
    }
  }
  return { uses, findings };
}

function explainCompileError(expression: string, message: string, position: number): string {
  // A template with unbalanced braces has its own message.
  if (message.startsWith("{{")) return shorten(message, 200);
  return `the expression ${shorten(message, 200)} (${quote(near(expression, position))})`;
}

/** A short expression as a whole; of a longer one, the text around the position. */
function near(expression: string, position: number): string {
  if (expression.length <= 60) return expression;
  const start = Math.max(0, position - 30);
  return `${start > 0 ? "…" : ""}${expression.slice(start, start + 58)}`;
}
