import type { Static } from "typebox";
import type { BlueprintNode } from "#domain/blueprint.ts";
import { ExpressionError, type Scope } from "#domain/expression.ts";
import type { Json, JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import { readConfig } from "#domain/read-config.ts";
import type { DataRecord, RecordBatches } from "#domain/record.ts";
import { must } from "#lib/assert.ts";
import {
  defineNode,
  flowFrom,
  NodeFailure,
  type KnownSteps,
  type LoopTurns,
  type NodeContext,
  type StepOutput,
} from "#nodes/define-node.ts";
import { inLanes } from "#lib/lanes.ts";
import { loopFindings, loopWarnings } from "#nodes/loop/loop-check.ts";
import { isWriteStep, loopSchema, stepNodes, stepsOf } from "#nodes/loop/loop-steps.ts";
import { inBatches, indexedBatches, recordScopes, recordsFromJson } from "#nodes/records/record-flow.ts";

/** docs/nodes/loop.md. */
export const node = defineNode({
  type: "loop",
  description:
    "Executes a list of requests for each record, in order, and outputs a record for each iteration.",
  schema: loopSchema,
  takes: "none",
  effect: (config) => (stepsOf(config).some(isWriteStep) ? "write" : "read"),
  hasTurns: true,
  addsVariables: () => ({ record: ["record", "steps"] }),
  check: loopFindings,
  warn: loopWarnings,
  run: async (context, raw) => ({
    kind: "records",
    batches: recordsOfTurns(context, readConfig(loopSchema, raw), stepNodes(raw, context.node.edition)),
  }),
});

interface Loop {
  readonly context: NodeContext;
  readonly turns: LoopTurns;
  readonly steps: readonly BlueprintNode[];
  readonly gives: string | undefined;
}

/** The input of an iteration. */
interface Turn {
  readonly ordinal: number;
  readonly record: DataRecord;
  readonly scope: Scope;
  /** Stored outputs of its steps, after a crash or a wait. */
  readonly known: KnownSteps;
}

const NOTHING_KNOWN: KnownSteps = new Map();
/** Number of iterations whose journal is read at once: each step may have stored some kilobytes. */
const TURNS_READ = 100;

async function* recordsOfTurns(
  context: NodeContext,
  { for_each: source, gives, concurrency = 1 }: Static<typeof loopSchema>,
  steps: readonly BlueprintNode[],
): RecordBatches {
  const loop: Loop = { context, turns: must(context.turns, "the turns of a loop"), steps, gives };
  for await (const { first, batch } of indexedBatches([flowFrom(context, source)])) {
    for (let start = 0; start < batch.length; start += TURNS_READ) {
      const records = batch.slice(start, start + TURNS_READ);
      const known = await loop.turns.known(first + start, records.length);
      const scopes = recordScopes(records, first + start);
      const given = await inLanes(records, concurrency, async (record, index) => {
        const ordinal = first + start + index;
        const scope = must(scopes[index], "the scope of a record");
        return await executeIteration(loop, {
          ordinal,
          record,
          scope,
          known: known.get(ordinal) ?? NOTHING_KNOWN,
        });
      });
      yield* inBatches(given.flat());
    }
  }
}

/** Executes the remaining steps of one iteration and returns its output. */
async function executeIteration(loop: Loop, turn: Turn): Promise<readonly DataRecord[]> {
  const { context, steps, gives } = loop;
  const given = new Map<string, StepOutput>();
  const shown: Record<string, Json> = {};
  const { record, scope } = turn;
  const seen = (): Scope => ({
    root: scope.root,
    variables: { ...scope.variables, record: record.data, steps: { ...shown } },
  });
  for (const step of steps) {
    context.signal.throwIfAborted();
    try {
      const before = turn.known.get(step.id);
      const output = before
        ? await before()
        : await executeStep(loop, step, { ...turn, scope: seen() }, given);
      given.set(step.id, output);
      const value = loop.turns.isRead(step.id) ? await showOutput(output) : undefined;
      if (value !== undefined) shown[step.id] = value;
    } catch (error) {
      throw placed(error, `step ${step.id}, record ${turn.ordinal}`);
    }
  }
  if (gives === undefined) return [record];
  try {
    const json = await context.expressions.evaluate(gives, seen());
    return recordsFromJson(json, "gives").map(({ data }) => ({ ...record, data }));
  } catch (error) {
    throw placed(error, `record ${turn.ordinal}`);
  }
}

async function executeStep(
  { context, turns }: Loop,
  step: BlueprintNode,
  { ordinal, scope }: Turn,
  given: ReadonlyMap<string, StepOutput>,
): Promise<StepOutput> {
  if (step.when !== null) {
    const wanted = await context.expressions.evaluate(step.when, scope);
    if (wanted !== undefined && typeof wanted !== "boolean")
      throw new NodeFailure("`when` must evaluate to true or false.");
    if (wanted !== true) return { kind: "value", value: { form: "absent" } };
  }
  return await turns.execute(step, { ordinal, scope, given });
}

/** `$steps.<id>`: the data of the step's records, or its value; nothing for a file. */
async function showOutput(output: StepOutput): Promise<Json | undefined> {
  if (output.kind === "value") {
    const { value } = output;
    return value.form === "text" ? value.text : value.form === "json" ? value.json : undefined;
  }
  const data: JsonObject[] = [];
  for await (const batch of output.open()) {
    data.push(...batch.map((record) => record.data));
    if (data.length > limits.stepVariableRecordsMax)
      throw new NodeFailure(
        `it returned more than ${limits.stepVariableRecordsMax} records, too many for \`$steps\`.`,
      );
  }
  return data;
}

/** The same failure with its place. */
function placed(error: unknown, place: string): unknown {
  if (error instanceof NodeFailure || error instanceof ExpressionError)
    error.message = `${place}: ${error.message}`;
  return error;
}
