import { listSteps, type FinishedStep, type RunStep } from "#db/run-steps.ts";
import type { ClaimedRun } from "#db/runs.ts";
import { decodeRecords } from "#domain/record-lines.ts";
import { answerLine } from "#domain/shown-answer.ts";
import type { FileValue, Value } from "#domain/value.ts";
import { must } from "#lib/assert.ts";
import { failpoint } from "#lib/failpoint.ts";
import { randomBase62 } from "#lib/new-id.ts";
import type { Flow } from "#nodes/define-node.ts";
import { RunStopped, type RunFailure } from "./run-ended.ts";
import type { NodeOutput, PlannedNode, RunContext } from "./run-context.ts";
import type { EngineServices } from "./services.ts";
import { readSmall, streamOf } from "./small-bytes.ts";
import { redactFile } from "./redact-file.ts";
import { showAnswer } from "./show-answer.ts";
import { encodeRecords, type RecordCounts } from "./spool.ts";
import { lastAnswer, type StepNotes } from "./step-notes.ts";

/** What the run has already done, by node: the only source after a crash. */
export async function readJournal(
  { db, blobs }: Pick<EngineServices, "db" | "blobs">,
  run: Pick<ClaimedRun, "id">,
): Promise<ReadonlyMap<string, NodeOutput>> {
  const steps = await listSteps(db, run.id);
  const outputs = new Map<string, NodeOutput>();
  for (const step of steps) {
    if (step.status === "done") outputs.set(step.nodeId, await outputOf(blobs, step));
  }
  return outputs;
}

type Blobs = RunContext["services"]["blobs"];

async function outputOf(blobs: Blobs, step: RunStep): Promise<NodeOutput> {
  const open = opener(blobs, step.output, step.blobKey);
  if (step.outputKind === "records") {
    const counts = { total: step.recordsTotal ?? 0, valid: step.recordsValid ?? 0 };
    const stored = must(open, "the step's records");
    return { kind: "records", open: () => decodeRecords(stored()), counts };
  }
  const value = await readValue(open, step.outputKind, {
    filename: step.filename?.toString("utf8") ?? null,
    contentType: step.contentType?.toString("utf8") ?? null,
    sizeBytes: step.output?.length ?? step.blobBytes ?? 0,
  });
  return { kind: "value", value };
}

/** What reads a stored output, from its row or from the store; null: there is none. */
function opener(
  blobs: Blobs,
  output: Buffer | null,
  key: string | null,
): (() => AsyncIterable<Uint8Array>) | null {
  if (output !== null) return () => streamOf(output);
  return key === null ? null : () => blobs.open(key);
}

async function readValue(
  open: (() => AsyncIterable<Uint8Array>) | null,
  kind: RunStep["outputKind"],
  file: Omit<FileValue, "form" | "open">,
): Promise<Value> {
  if (open === null) return { form: "absent" };
  if (kind === "file") return { form: "file", open, ...file };
  const chunks: Uint8Array[] = [];
  for await (const chunk of open()) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString("utf8");
  return kind === "json" ? { form: "json", json: JSON.parse(text) } : { form: "text", text };
}

/** Whether the journal has the node's start as well: it changes something outside, or a person is asked about what it keeps. */
function isBegun({ type, config }: PlannedNode): boolean {
  return type.isGate === true || type.effect(config) === "write";
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
  const beganMs = performance.now();
  await failpoint("step.before_start");
  const { accountId } = run.run;
  if (isBegun(planned) && !(await run.journal.startStep(nodeId))) throw new RunStopped("lease_lost");
  let stored: string | null = null;
  const changesBefore = run.redact.changes;
  try {
    await failpoint("step.after_start");
    const flow = await carry();
    const counts: RecordCounts = { total: 0, valid: 0 };
    const isRecords = flow?.kind === "records";
    const bytes = isRecords ? encodeRecords(flow.batches, run.redact, counts) : valueBytes(flow, run);
    const small = bytes === null ? null : await readSmall(bytes);
    const key = `steps/${accountId}/${run.run.id}/${randomBase62(16)}`;
    const blob = small?.stream ? await blobs.put(key, small.stream) : null;
    stored = blob?.key ?? null;
    const redacted = run.redact.changes - changesBefore;
    // docs/decisions/0014: the operator learns that the target echoes what it is told.
    if (redacted > 0) log.push(JSON.stringify({ message: "redacted", texts: redacted }));
    const step: Omit<FinishedStep, "lease" | "accountId"> = {
      nodeId,
      outputKind: isRecords ? "records" : valueKind(flow),
      output: small?.content ?? null,
      blob,
      ...fileNames(flow, run),
      recordsTotal: isRecords ? counts.total : null,
      recordsValid: isRecords ? counts.valid : null,
      log: log.join("\n"),
      tookMs: performance.now() - beganMs,
    };
    await failpoint("step.before_finish");
    // When its transaction breaks off, nobody knows whether the journal names the object: then the sweep decides.
    stored = null;
    if (!(await run.journal.finishStep(step))) {
      await blobs.remove(blob === null ? [] : [blob.key]);
      throw new RunStopped("lease_lost");
    }
    await failpoint("step.after_finish");
    const open = opener(blobs, step.output, blob?.key ?? null);
    if (!isRecords) {
      const { filename, contentType } = step;
      const sizeBytes = step.output?.length ?? blob?.sizeBytes ?? 0;
      const value = await readValue(open, step.outputKind, { filename, contentType, sizeBytes });
      return { kind: "value", value };
    }
    const kept = must(open, "the step's records");
    return { kind: "records", open: () => decodeRecords(kept()), counts };
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

function valueKind(flow: Flow | null): FinishedStep["outputKind"] {
  return flow?.kind === "value" ? flow.value.form : "absent";
}

/** What the target says of a file is its word, and cleaned of secrets like all that it says. */
function fileNames(
  flow: Flow | null,
  { redact }: RunContext,
): Pick<FinishedStep, "filename" | "contentType"> {
  if (flow?.kind !== "value" || flow.value.form !== "file") return { filename: null, contentType: null };
  const { filename, contentType } = flow.value;
  const clean = (text: string | null): string | null => text && redact.text(text);
  return { filename: clean(filename), contentType: clean(contentType) };
}

function valueBytes(flow: Flow | null, run: RunContext): AsyncIterable<Uint8Array> | null {
  if (flow?.kind !== "value" || flow.value.form === "absent") return null;
  const { value } = flow;
  if (value.form === "file") return redactFile(value, run);
  const text = value.form === "text" ? value.text : JSON.stringify(value.json);
  return (async function* () {
    yield Buffer.from(await run.redact.body(text), "utf8");
  })();
}
