import type { Blueprint, BlueprintNode } from "#domain/blueprint.ts";
import { findExpressions } from "#domain/config-expressions.ts";
import { executionOrder } from "#domain/config-order.ts";
import type { JsonObject } from "#domain/json.ts";
import { analyseExpression, analyseTemplate, type VariableUse } from "#expressions/analyse.ts";
import { must } from "#lib/assert.ts";
import { edgesOf, type NodeType } from "#nodes/define-node.ts";
import { nodeTypes, OWN_TYPE_REMEDY } from "#nodes/registry.ts";
import { RunFailure } from "./run-ended.ts";

export interface PlannedNode {
  readonly node: BlueprintNode;
  readonly type: NodeType;
  readonly config: JsonObject;
  readonly gives: "records" | "value" | "results";
  /** Ids of its sources, in the order of `NodeContext.from`. */
  readonly edges: readonly string[];
  /** The `<id>` of every `$nodes.<id>` in its expressions. */
  readonly readsNodes: readonly string[];
  /** For a loop: the `<id>` of every `$steps.<id>`. */
  readonly readsSteps: readonly string[];
  /** Whether its `when` uses `$counts` of its `from`. */
  readonly asksCounts: boolean;
  /** Whether its records are stored during the run, because they are read more than once or counted before use. */
  readonly kept: boolean;
  /** Whether it is executed without waiting while it is small. */
  readonly mayBeAtOnce: boolean;
}

/** The execution plan of a Blueprint version. */
export interface RunPlan {
  readonly nodes: readonly PlannedNode[];
  readonly blueprint: Blueprint;
  /** Of its hosts. */
  readonly origins: readonly string[];
}

const plans = new WeakMap<Blueprint, RunPlan>();

/** The plan of a version, cached as long as its document. */
export function planOnce(blueprint: Blueprint): RunPlan {
  let plan = plans.get(blueprint);
  if (!plan) plans.set(blueprint, (plan = planRun(blueprint)));
  return plan;
}

/** The nodes in execution order. */
function planRun(blueprint: Blueprint): RunPlan {
  const loose = blueprint.nodes.map((node) => {
    const type = typeOf(node);
    const uses = variableUses(node, type);
    return {
      node,
      type,
      config: node.config,
      gives: type.gives(node.config),
      edges: edgesOf(node),
      readsNodes: namesIn(uses, "nodes"),
      readsSteps: namesIn(uses, "steps"),
      asksCounts: uses.some((use) => use.name === "counts"),
      mayBeAtOnce: mayBeAtOnce(node, type) && namesIn(uses, "nodes").length === 0,
    };
  });
  const order = executionOrder(
    blueprint,
    new Map(loose.map(({ node, edges, readsNodes }) => [node.id, [...edges, ...readsNodes]])),
  );
  const kept = (id: string): boolean => {
    const readers = loose.filter(({ edges, readsNodes }) => edges.includes(id) || readsNodes.includes(id));
    return (
      readers.length > 1 ||
      readers.some(
        ({ edges, readsNodes, asksCounts }) => readsNodes.includes(id) || (asksCounts && edges.includes(id)),
      )
    );
  };
  const nodes = order.map((id) => {
    const planned = must(
      loose.find(({ node }) => node.id === id),
      `node ${id}`,
    );
    return { ...planned, kept: kept(id) };
  });
  return { nodes, blueprint, origins: blueprint.hosts.map((host) => new URL(host).origin) };
}

/** A pure node that is neither optional nor executed separately, and unpacks nothing that the door must inspect. */
const mayBeAtOnce = ({ when, milestone, timeoutMs, config }: BlueprintNode, type: NodeType): boolean =>
  type.runAtOnce !== undefined &&
  type.effect(config) === "none" &&
  when === null &&
  milestone === null &&
  timeoutMs === null &&
  type.unpacks?.(config) !== true;

/** The distinct first names after a variable. */
const namesIn = (uses: readonly VariableUse[], variable: string): readonly string[] => [
  ...new Set(uses.filter(({ name }) => name === variable).flatMap(({ path }) => path.slice(0, 1))),
];

/** Applied documents have known types, but an operator's own type may be missing in this process. */
function typeOf({ id, type }: BlueprintNode): NodeType {
  const known = nodeTypes.get(type);
  if (known) return known;
  const reason = `Node ${id}: this worker has no node type "${type}"; ${OWN_TYPE_REMEDY}. Add it there, and start the worker again.`;
  throw new RunFailure("internal", reason);
}

function variableUses(node: BlueprintNode, type: NodeType): readonly VariableUse[] {
  const sources = findExpressions(type.schema, node.config).flatMap((place) =>
    place.form === "expression"
      ? [analyseExpression(place.source)]
      : analyseTemplate(place.template).map(({ analysis }) => analysis),
  );
  if (node.when !== null) sources.push(analyseExpression(node.when));
  return sources.flatMap((analysis) => (analysis.ok ? analysis.uses : []));
}
