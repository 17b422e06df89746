import { listSteps } from "#db/runs/run-steps.ts";
import type { ClaimedRun } from "#db/runs/runs.ts";
import type { Json } from "#domain/json.ts";
import { readEvidenceLine } from "#domain/page-evidence.ts";
import { answerLine } from "#domain/shown-answer.ts";
import { failpoint } from "#lib/failpoint.ts";
import type { Flow } from "#nodes/define-node.ts";
import { storeOutput, openOutput, reopenOutput } from "./outputs/kept-output.ts";
import { RunStopped, type RunFailure } from "./run-ended.ts";
import type { NodeOutput, PlannedNode, RunContext } from "./run-context.ts";
import type { EngineServices } from "./services.ts";
import { showAnswer } from "./redaction/show-answer.ts";
import { lastAnswer, type StepNotes } from "./step-notes.ts";

/** The work that the run has already done, by node: the only source after a crash. */
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

/** Whether the journal records the node's start as well: nodes that write, loops, and reviews. */
function recordsStart({ type, config }: PlannedNode): boolean {
  return type.isGate === true || type.hasTurns === true || type.effect(config) === "write";
}

/**
 * Executes a node with external effects: writes `started` before, unless it only reads, and its output with `done` after. Throws
 * RunStopped when the lease is lost; the fetched data is then discarded.
 */
export async function checkpoint(
  run: RunContext,
  planned: PlannedNode,
  log: string[],
  execute: () => Promise<Flow | null>,
): Promise<NodeOutput> {
  const { blobs } = run.services;
  const nodeId = planned.node.id;
  const beganMs = run.services.clock.now();
  await failpoint("step.before_start");
  if (recordsStart(planned) && !(await run.journal.startStep(nodeId))) throw new RunStopped("lease_lost");
  let stored: string | null = null;
  const changesBefore = run.redact.changes;
  try {
    await failpoint("step.after_start");
    const kept = await storeOutput(run, await execute());
    stored = kept.blob?.key ?? null;
    const redacted = run.redact.changes - changesBefore;
    // docs/decisions/0014: tells the operator that the target echoes secrets.
    if (redacted > 0) log.push(JSON.stringify({ message: "redacted", texts: redacted }));
    const step = { nodeId, ...kept, log: log.join("\n"), tookMs: run.services.clock.now() - beganMs };
    await failpoint("step.before_finish");
    // If the transaction broke off, it is unknown whether the journal names the object: then the sweep decides.
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
 * Records in the journal why a node with external effects failed, and the answer that it got, for the operator. For other nodes the
 * run's row has the reason. Only the step has the answer, so that it is purged with the run's data.
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

/** Records the answer, or the page, that leaves a write uncertain, for the operator who decides. */
export async function noteWaiting(
  run: RunContext,
  { node, type, config }: PlannedNode,
  notes: StepNotes,
): Promise<void> {
  const answer = lastAnswer(notes);
  const hasPage = notes.log.some((line) => readEvidenceLine(JSON.parse(line) as Json) !== null);
  if (type.effect(config) !== "write" || (answer === null && !hasPage)) return;
  const lines = answer === null ? [] : [answerLine(await showAnswer(answer, run.redact, "node"))];
  await run.journal.noteStep(node.id, [...notes.log, ...lines].join("\n"));
}
