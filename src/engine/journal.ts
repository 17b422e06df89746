import { listSteps } from "#db/runs/run-steps.ts";
import type { ClaimedRun } from "#db/runs/runs.ts";
import { answerLine } from "#domain/shown-answer.ts";
import { failpoint } from "#lib/failpoint.ts";
import type { Flow } from "#nodes/define-node.ts";
import { keepOutput, openOutput, reopenOutput } from "./outputs/kept-output.ts";
import { RunStopped, type RunFailure } from "./run-ended.ts";
import type { NodeOutput, PlannedNode, RunContext } from "./run-context.ts";
import type { EngineServices } from "./services.ts";
import { showAnswer } from "./redaction/show-answer.ts";
import { lastAnswer, type StepNotes } from "./step-notes.ts";

/** What the run has already done, by node: the only source after a crash. */
export async function readJournal(
  { db, blobs }: Pick<EngineServices, "db" | "blobs">,
  run: Pick<ClaimedRun, "id">,
): Promise<ReadonlyMap<string, NodeOutput>> {
  const steps = await listSteps(db, run.id);
  const outputs = new Map<string, NodeOutput>();
  for (const step of steps) {
    if (step.status === "done") outputs.set(step.nodeId, await openOutput(blobs, step));
  }
  return outputs;
}

/** Whether the journal has the node's start as well: it changes something outside, keeps turns, or a person is asked about what it keeps. */
function isBegun({ type, config }: PlannedNode): boolean {
  return type.isGate === true || type.hasTurns === true || type.effect(config) === "write";
}

/**
 * A node that touches the outside: its output and `done` when it has, and `started` before it does unless it only reads. Throws
 * RunStopped when the lease is lost: what was fetched is then nobody's.
 */
export async function checkpoint(
  run: RunContext,
  planned: PlannedNode,
  log: string[],
  carry: () => Promise<Flow | null>,
): Promise<NodeOutput> {
  const { blobs } = run.services;
  const nodeId = planned.node.id;
  const beganMs = run.services.clock.now();
  await failpoint("step.before_start");
  if (isBegun(planned) && !(await run.journal.startStep(nodeId))) throw new RunStopped("lease_lost");
  let stored: string | null = null;
  const changesBefore = run.redact.changes;
  try {
    await failpoint("step.after_start");
    const kept = await keepOutput(run, await carry());
    stored = kept.blob?.key ?? null;
    const redacted = run.redact.changes - changesBefore;
    // docs/decisions/0014: the operator learns that the target echoes what it is told.
    if (redacted > 0) log.push(JSON.stringify({ message: "redacted", texts: redacted }));
    const step = { nodeId, ...kept, log: log.join("\n"), tookMs: run.services.clock.now() - beganMs };
    await failpoint("step.before_finish");
    // When its transaction breaks off, nobody knows whether the journal names the object: then the sweep decides.
    stored = null;
    if (!(await run.journal.finishStep(step))) {
      await blobs.remove(kept.blob === null ? [] : [kept.blob.key]);
      throw new RunStopped("lease_lost");
    }
    await failpoint("step.after_finish");
    return await reopenOutput(blobs, kept);
  } catch (error) {
    if (stored !== null) await blobs.remove([stored]);
    throw error;
  }
}

/**
 * Notes in the journal why a node that touches the outside failed, and with what answer, for the operator; of any other the run's row
 * says it. The answer is in the step alone, which goes with the run's data.
 */
export async function noteFailure(
  { journal }: RunContext,
  { node, type, config }: PlannedNode,
  { message, answer }: RunFailure,
  log: readonly string[],
  tookMs: number,
): Promise<void> {
  if (type.effect(config) === "none") return;
  const lines = answer === null ? log : [...log, answerLine(answer)];
  await journal.failStep(node.id, message, tookMs, lines.join("\n"));
}

/** The same of an answer that leaves open whether a write was done: who decides looks at it. */
export async function noteWaiting(
  run: RunContext,
  { node, type, config }: PlannedNode,
  notes: StepNotes,
): Promise<void> {
  const answer = lastAnswer(notes);
  if (type.effect(config) !== "write" || answer === null) return;
  const line = answerLine(await showAnswer(answer, run.redact, "node"));
  await run.journal.noteStep(node.id, [...notes.log, line].join("\n"));
}
