import {
  failStep,
  finishStep,
  listSteps,
  startStep,
  type FinishedStep,
  type RunStep,
} from "#db/run-steps.ts";
import { decodeRecords } from "#domain/record-lines.ts";
import type { Value } from "#domain/value.ts";
import { must } from "#lib/assert.ts";
import { randomBase62 } from "#lib/new-id.ts";
import type { Flow } from "#nodes/define-node.ts";
import { RunStopped } from "./run-ended.ts";
import type { NodeOutput, PlannedNode, RunContext } from "./run-context.ts";
import { encodeRecords, type RecordCounts } from "./spool.ts";

/** What the run has already done, by node: the only source after a crash. */
export async function readJournal(
  run: Pick<RunContext, "services" | "run">,
): Promise<ReadonlyMap<string, NodeOutput>> {
  const steps = await listSteps(run.services.db, run.run.id);
  const outputs = new Map<string, NodeOutput>();
  for (const step of steps) {
    if (step.status === "done") outputs.set(step.nodeId, await outputOf(run.services.blobs, step));
  }
  return outputs;
}

type Blobs = RunContext["services"]["blobs"];

async function outputOf(blobs: Blobs, step: RunStep): Promise<NodeOutput> {
  if (step.outputKind === "records") {
    const key = must(step.blobKey, "the step's object");
    const counts = { total: step.recordsTotal ?? 0, valid: step.recordsValid ?? 0 };
    return { kind: "records", open: () => decodeRecords(blobs.open(key)), counts };
  }
  return { kind: "value", value: await readValue(blobs, step.outputKind, step.blobKey) };
}

async function readValue(blobs: Blobs, kind: RunStep["outputKind"], key: string | null): Promise<Value> {
  if (key === null) return { form: "absent" };
  const chunks: Uint8Array[] = [];
  for await (const chunk of blobs.open(key)) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString("utf8");
  return kind === "json" ? { form: "json", json: JSON.parse(text) } : { form: "text", text };
}

/**
 * A node that touches the outside: `started` before it does, its output and `done` after. Throws RunStopped when the lease is
 * lost: what was fetched is then nobody's.
 */
export async function checkpoint(
  run: RunContext,
  planned: PlannedNode,
  log: string[],
  carry: () => Promise<Flow | null>,
): Promise<NodeOutput> {
  const { db, blobs } = run.services;
  const nodeId = planned.node.id;
  if (!(await startStep(db, run.lease, run.run.accountId, nodeId))) throw new RunStopped("lease_lost");
  let stored: string | null = null;
  const changesBefore = run.redact.changes;
  try {
    const flow = await carry();
    const counts: RecordCounts = { total: 0, valid: 0 };
    const isRecords = flow?.kind === "records";
    const bytes = isRecords ? encodeRecords(flow.batches, run.redact, counts) : valueBytes(flow, run);
    const key = `steps/${run.run.accountId}/${run.run.id}/${randomBase62(16)}`;
    const blob = bytes === null ? null : await blobs.put(key, bytes);
    stored = blob?.key ?? null;
    const redacted = run.redact.changes - changesBefore;
    // Design, page 6, T14: the operator learns that the target echoes what it is told.
    if (redacted > 0) log.push(JSON.stringify({ message: "redacted", texts: redacted }));
    const step: FinishedStep = {
      nodeId,
      outputKind: isRecords ? "records" : valueKind(flow),
      blob,
      recordsTotal: isRecords ? counts.total : null,
      recordsValid: isRecords ? counts.valid : null,
      log: log.join("\n"),
    };
    if (!(await finishStep(db, run.lease, run.run.accountId, step))) throw new RunStopped("lease_lost");
    stored = null;
    if (!isRecords)
      return { kind: "value", value: await readValue(blobs, step.outputKind, blob?.key ?? null) };
    return { kind: "records", open: () => decodeRecords(blobs.open(key)), counts };
  } catch (error) {
    if (stored !== null) await blobs.remove([stored]);
    throw error;
  }
}

/** Notes in the journal why a node failed, for the operator. */
export async function noteFailure(run: RunContext, planned: PlannedNode, detail: string): Promise<void> {
  await failStep(run.services.db, run.lease, planned.node.id, detail);
}

function valueKind(flow: Flow | null): FinishedStep["outputKind"] {
  return flow?.kind === "value" ? flow.value.form : "absent";
}

function valueBytes(flow: Flow | null, run: RunContext): AsyncIterable<Uint8Array> | null {
  if (flow?.kind !== "value" || flow.value.form === "absent") return null;
  const { value } = flow;
  if (value.form === "file") return value.open();
  const text = value.form === "text" ? run.redact.body(value.text) : run.redact.json(value.json);
  return (async function* () {
    yield Buffer.from(text, "utf8");
  })();
}
