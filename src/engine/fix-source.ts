import type { RecordBatches } from "#domain/record.ts";
import { decodeRecords } from "#domain/record-lines.ts";
import { must } from "#lib/assert.ts";
import { failpoint } from "#lib/failpoint.ts";
import { randomBase62 } from "#lib/new-id.ts";
import { RunStopped } from "./run-ended.ts";
import type { PlannedNode, RunContext } from "./run-context.ts";
import { encodeRecords, type RecordCounts } from "./outputs/spool.ts";

/**
 * Stores the records that a node processes one by one before the first write: after a crash each must keep its ordinal, even if
 * recomputing them has another result (`$now()`). Records that come from the journal are already fixed.
 */
export async function fixSource(run: RunContext, planned: PlannedNode): Promise<void> {
  const source = planned.node.config["for_each"];
  if (typeof source !== "string") return;
  if (planned.type.hasTurns !== true && planned.type.effect(planned.config) !== "write") return;
  const maker = must(
    run.plan.nodes.find(({ node }) => node.id === source),
    "the node of for_each",
  );
  if (maker.type.effect(maker.config) !== "none") return;
  const { blobs } = run.services;
  const found = await run.journal.findSource(planned.node.id);
  const { key, counts } = found === null ? await keep(run, planned, source) : { key: found, counts: null };
  run.outputs.set(source, { kind: "records", open: () => decodeRecords(blobs.open(key)), counts });
}

/** Records for the operator how many records a loop processes, if that is known. */
export async function noteTotal(run: RunContext, { node, type }: PlannedNode): Promise<void> {
  const source = node.config["for_each"];
  const output = type.hasTurns === true && typeof source === "string" ? run.outputs.get(source) : undefined;
  if (output?.kind === "records" && output.counts) await run.journal.noteTurns(node.id, output.counts.total);
}

async function keep(
  run: RunContext,
  planned: PlannedNode,
  source: string,
): Promise<{ readonly key: string; readonly counts: RecordCounts }> {
  const output = must(run.outputs.get(source), "the records of for_each");
  return await storeSource(
    run,
    planned,
    output.kind === "records" ? output.open() : (async function* () {})(),
  );
}

/** Stores a node's input records in its own journal entry. Throws RunStopped. */
export async function storeSource(
  run: RunContext,
  planned: PlannedNode,
  records: RecordBatches,
): Promise<{ readonly key: string; readonly counts: RecordCounts }> {
  const { blobs } = run.services;
  const counts: RecordCounts = { total: 0, valid: 0 };
  const key = `steps/${run.run.accountId}/${run.run.id}/${randomBase62(16)}`;
  const blob = await blobs.put(key, encodeRecords(records, run.redact, counts));
  await failpoint("step.before_source");
  const isOurs = await run.journal.saveSource(planned.node.id, blob);
  await failpoint("step.after_source");
  if (isOurs) return { key, counts };
  await blobs.remove([key]);
  throw new RunStopped("lease_lost");
}
