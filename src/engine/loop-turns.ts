import type { BoundExpressions, Scope } from "#domain/expression.ts";
import type { BlueprintNode } from "#domain/blueprint.ts";
import { failpoint } from "#lib/failpoint.ts";
import { must } from "#lib/assert.ts";
import {
  edgesOf,
  type LoopTurns,
  type NodeContext,
  type NodeWrites,
  type StepOutput,
} from "#nodes/define-node.ts";
import { stepIdOf, stepIds } from "#nodes/loop/loop-steps.ts";
import { nodeTypes } from "#nodes/registry.ts";
import { storeOutput, openOutput, reopenOutput } from "./outputs/kept-output.ts";
import { RunStopped } from "./run-ended.ts";
import type { PlannedNode, RunContext } from "./run-context.ts";

/** The context of a step, which is like any node's. */
type OpenContext = (run: RunContext, step: PlannedNode) => NodeContext;

/** The iterations of one loop, with their journal. */
export function loopTurns(run: RunContext, planned: PlannedNode, open: OpenContext): LoopTurns {
  const loop = planned.node.id;
  const stepOf = new Map(stepIds(planned.config).map((id) => [stepIdOf(loop, id), id]));
  return {
    isRead: (step) => planned.readsSteps.includes(step),
    known: async (first, count) => {
      const turns = new Map<number, Map<string, () => Promise<StepOutput>>>();
      for (const { nodeId, ordinal, ...stored } of await run.journal.listTurns(
        [...stepOf.keys()],
        first,
        count,
      )) {
        const turn = turns.get(ordinal) ?? new Map<string, () => Promise<StepOutput>>();
        const step = must(stepOf.get(nodeId), "the step of a turn");
        turn.set(step, async () => await openOutput(run.services.blobs, stored));
        turns.set(ordinal, turn);
      }
      return turns;
    },
    execute: async (step, { ordinal, scope, given }) => {
      const asNode = planStep(loop, step);
      const outputs = new Map(
        asNode.edges.map(
          (id) => [id, must(given.get(id) ?? run.outputs.get(id), `the output of ${id}`)] as const,
        ),
      );
      const context = open({ ...run, outputs: withCounts(outputs) }, asNode);
      const flow = await asNode.type.run(ofTurn(context, ordinal, scope), asNode.config);
      // As for a node: the door could not inspect packed content before.
      const clean =
        flow?.kind === "records" && asNode.type.unpacks?.(asNode.config) === true
          ? ({ kind: "records", batches: run.door.enterRecords(flow.batches) } as const)
          : flow;
      return await keep(run, asNode.node.id, ordinal, clean);
    },
  };
}

const withCounts = (outputs: ReadonlyMap<string, StepOutput>): RunContext["outputs"] =>
  new Map(
    [...outputs].map(([id, output]) => [
      id,
      output.kind === "records" ? { counts: null, ...output } : output,
    ]),
  );

/** Journals a step's output. Throws RunStopped when the lease is lost. */
async function keep(
  run: RunContext,
  nodeId: string,
  ordinal: number,
  flow: Parameters<typeof storeOutput>[1],
): Promise<StepOutput> {
  const kept = await storeOutput(run, flow);
  const { recordsTotal: _total, recordsValid: _valid, ...turn } = kept;
  await failpoint("turn.before_keep");
  if (!(await run.journal.storeIteration({ nodeId, ordinal, ...turn }))) {
    await run.services.blobs.remove(kept.blob === null ? [] : [kept.blob.key]);
    throw new RunStopped("lease_lost");
  }
  await failpoint("turn.after_keep");
  return await reopenOutput(run.services.blobs, kept);
}

const plans = new WeakMap<BlueprintNode, PlannedNode>();

/** A step as a node, whose id in the journal follows the loop's. */
function planStep(loop: string, step: BlueprintNode): PlannedNode {
  const found = plans.get(step);
  if (found) return found;
  const type = must(nodeTypes.get("http"), "the type of a step");
  const made: PlannedNode = {
    node: { ...step, id: stepIdOf(loop, step.id) },
    type,
    config: step.config,
    gives: type.gives(step.config),
    edges: edgesOf(step),
    readsNodes: [],
    readsSteps: [],
    asksCounts: false,
    kept: false,
    mayBeAtOnce: false,
  };
  plans.set(step, made);
  return made;
}

/** The iteration's record is the root of all templates; its ordinal identifies the step's only write. */
function ofTurn(context: NodeContext, ordinal: number, scope: Scope): NodeContext {
  return {
    ...context,
    expressions: inScope(context.expressions, scope),
    writes: writesAt(context.writes, ordinal),
    askAgain: async (times) => await context.askAgain({ ...times, ordinal }),
  };
}

function inScope(expressions: BoundExpressions, turn: Scope): BoundExpressions {
  const over = (scope: Scope = {}): Scope => {
    const isOfAnswer = scope.root !== undefined || scope.rootText !== undefined;
    return {
      ...(isOfAnswer ? { root: scope.root, rootText: scope.rootText } : { root: turn.root }),
      variables: { ...turn.variables, ...scope.variables },
    };
  };
  return {
    evaluate: async (source, scope) => await expressions.evaluate(source, over(scope)),
    render: async (template, scope) => await expressions.render(template, over(scope)),
    evaluateBatch: async (sources, rows) => await expressions.evaluateBatch(sources, rows.map(over)),
  };
}

/** A node without `for_each` has one write, at 0. */
function writesAt(writes: NodeWrites, ordinal: number): NodeWrites {
  return {
    token: () => writes.token(ordinal),
    known: async () => {
      const known = (await writes.known(ordinal, 1)).get(ordinal);
      return new Map(known === undefined ? [] : [[0, known]]);
    },
    begin: async () => await writes.begin(ordinal),
    commit: async () => await writes.commit(ordinal),
    goOn: () => writes.goOn(),
    send: async (request) => await writes.send(request, ordinal),
    finish: async (_only, outcome) => await writes.finish(ordinal, outcome),
    refuse: async () => await writes.refuse(ordinal),
    ruleOut: async () => await writes.ruleOut(ordinal),
    doubt: async (_only, detail, request) => await writes.doubt(ordinal, detail, request),
    askOperator: () => writes.askOperator(),
  };
}
