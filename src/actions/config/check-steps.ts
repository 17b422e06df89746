import { suggestion } from "#domain/config-nearest.ts";
import { quote, type ConfigFinding } from "#domain/config-problem.ts";
import type { ExpressionScopeKind } from "#domain/expression.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import type { AddedVariables } from "#nodes/define-node.ts";
import { isWriteStep, stepSchema } from "#nodes/loop/loop-steps.ts";
import { checkCommon } from "./check-nodes.ts";
import { readExpressions, type LocatedUse } from "./read-expressions.ts";
import { readNode, type DraftNode } from "./read-nodes.ts";

interface Expressions {
  readonly uses: readonly LocatedUse[];
  readonly findings: readonly ConfigFinding[];
}

/** The steps of a loop as separate `http` nodes, whatever type they state; empty for any other node. */
export function stepDrafts(loop: DraftNode): readonly DraftNode[] {
  const { steps } = loop.value;
  if (loop.type !== "loop" || !Array.isArray(steps)) return [];
  return steps.flatMap((step: Json, index: number) =>
    isJsonObject(step) ? [readNode({ ...step, type: "http" }, [...loop.path, "steps", index])] : [],
  );
}

/** The loop without its steps, whose expressions have more variables. */
export function withoutSteps({ type, value }: DraftNode): JsonObject {
  if (type !== "loop") return value;
  return Object.fromEntries(Object.entries(value).filter(([key]) => key !== "steps"));
}

/** Additional variables of a step: the record, even where the root is an answer, and the outputs of earlier steps. */
const OF_TURN = ["record", "steps", "index", "isValid", "errors"];
const SCOPES: readonly ExpressionScopeKind[] = ["request", "response", "verify", "record"];

/** The expressions of all steps of a loop. */
export function readStepExpressions(loop: DraftNode): Expressions {
  const read = stepDrafts(loop).map((step) => {
    const added: AddedVariables = Object.fromEntries(
      SCOPES.map((scope) => [scope, [...OF_TURN, ...(step.addedVariables[scope] ?? [])]]),
    );
    const scope = isWriteStep(step.value) ? "record-write" : "record";
    return readExpressions(stepSchema, step.value, step.path, scope, added);
  });
  return {
    uses: read.flatMap(({ uses }) => uses),
    findings: read.flatMap(({ findings }) => findings),
  };
}

/** The variables that the steps' expressions read. `own`: those of the loop's other expressions. */
export function checkSteps(
  loop: DraftNode,
  drafts: readonly DraftNode[],
  own: readonly LocatedUse[],
): readonly ConfigFinding[] {
  const steps = stepDrafts(loop);
  const ids = steps.map(({ id }) => id ?? "");
  return [
    ...steps.flatMap(({ id, path }) =>
      drafts.some((node) => node.id !== null && node.id === id)
        ? [
            {
              path: [...path, "id"],
              message: `a node has the id ${quote(id ?? "")} already; choose another one`,
            },
          ]
        : [],
    ),
    ...steps.flatMap(checkCommon),
    ...readStepExpressions(loop).uses.flatMap((use) => {
      const at = Number(use.path[loop.path.length + 1]);
      return checkStepUse(use, ids.slice(0, at), ids);
    }),
    ...own.flatMap((use) => (loop.type === "loop" ? checkStepUse(use, ids, ids) : [])),
  ];
}

function checkStepUse(
  { name, parts, path }: LocatedUse,
  before: readonly string[],
  all: readonly string[],
): readonly ConfigFinding[] {
  if (name !== "steps") return [];
  const [step] = parts;
  if (step === undefined) return [{ path, message: "`$steps` must name a step, as in `$steps.<step id>`" }];
  if (before.includes(step)) return [];
  const message = all.includes(step)
    ? `the step ${quote(step)} has no output yet; only earlier steps have`
    : `the loop has no step ${quote(step)}${suggestion(step, before, "earlier steps are")}`;
  return [{ path, message }];
}
