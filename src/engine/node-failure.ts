import { StoreFailed } from "#blobs/store.ts";
import { isConnectionLost, isLockedOut } from "#db/connection/database-errors.ts";
import { ExpressionError } from "#domain/expression.ts";
import { OutboundError } from "#domain/http-exchange.ts";
import { describeError } from "#lib/log.ts";
import { NodeFailure } from "#nodes/define-node.ts";
import { RunFailure, RunStopped } from "./run-ended.ts";
import type { PlannedNode, RunContext } from "./run-context.ts";
import { bothNets } from "./redaction/both-nets.ts";
import { showAnswer } from "./redaction/show-answer.ts";
import { lastAnswer, type StepNotes } from "./step-notes.ts";

export const overTime = (nodeId: string): RunFailure =>
  new RunFailure("timeout", `Node ${nodeId} took longer than its timeout.`);

/** Not a failure of the run: it is stopped, or continues when the database or the object store is back. */
export const isServiceFailure = (error: unknown): boolean =>
  error instanceof RunStopped ||
  error instanceof StoreFailed ||
  isConnectionLost(error) ||
  isLockedOut(error);

/** The failure together with the answer that caused it, for operators. */
export async function failureWith(
  run: RunContext,
  planned: PlannedNode,
  error: unknown,
  notes: StepNotes,
): Promise<RunFailure> {
  const failure = failureOf(run, planned, error);
  const isOfAnswer = error instanceof NodeFailure || error instanceof ExpressionError;
  const answer = error instanceof NodeFailure ? (error.answer ?? lastAnswer(notes)) : lastAnswer(notes);
  if (!isOfAnswer || answer === null) return failure;
  // A body in a file may be unavailable; it is only an explanation.
  const shown = await showAnswer(answer, run.redact, "node").catch(() => null);
  return new RunFailure(failure.kind, failure.message, { answer: shown });
}

const usualKind = ({ type, config }: PlannedNode): "data" | "target" =>
  type.isGate === true || type.effect(config) === "none" ? "data" : "target";

/** Converts anything that a node throws into the run's failure. Our own messages contain no data; others are not repeated. */
export function failureOf(run: RunContext, planned: PlannedNode, error: unknown): RunFailure {
  if (error instanceof RunFailure) return error;
  // Only the node's own time limit aborts with this kind of signal.
  if (error instanceof DOMException && error.name === "TimeoutError") return overTime(planned.node.id);
  const place = `Node ${planned.node.id}: `;
  // Targets can influence them, for example by the host of a redirect, or by the names in a browser's page.
  const nets = bothNets(run.door, run.redact);
  if (error instanceof OutboundError) return new RunFailure("target", nets.message(place + error.message));
  if (error instanceof NodeFailure)
    return new RunFailure(error.kind ?? usualKind(planned), nets.message(place + error.message));
  if (error instanceof ExpressionError) return new RunFailure("data", place + error.message);
  run.services.log.error(
    { runId: run.run.id, node: planned.node.id, ...describeError(error) },
    "a node failed unexpectedly",
  );
  return new RunFailure("internal", `${place}an unexpected error (${describeError(error).error}).`);
}
