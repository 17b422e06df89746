import type { FinishedStep, RunStep } from "#db/runs/run-steps.ts";
import { limits } from "#domain/limits.ts";
import type { DataRecord } from "#domain/record.ts";
import { decodeRecords, readRecords } from "#domain/record-lines.ts";
import type { FileValue, Value } from "#domain/value.ts";
import { must } from "#lib/assert.ts";
import { randomBase62 } from "#lib/new-id.ts";
import type { Flow } from "#nodes/define-node.ts";
import { redactFile } from "#engine/redaction/redact-file.ts";
import type { NodeOutput, RunContext } from "#engine/run-context.ts";
import { readSmall, streamOf } from "./small-bytes.ts";
import { encodeRecords, type RecordCounts } from "./spool.ts";

/** An output in the form that its row stores. */
export type KeptOutput = Pick<
  FinishedStep,
  "outputKind" | "output" | "blob" | "filename" | "contentType" | "recordsTotal" | "recordsValid"
>;

/** Stores the output of a node or step: in the row if it is small, otherwise as an object. Secrets of the run are redacted. */
export async function storeOutput(run: RunContext, flow: Flow | null): Promise<KeptOutput> {
  const few = flow?.kind === "records" && flow.whole ? fewRecords(flow.whole, run) : null;
  if (few !== null) return few;
  const counts: RecordCounts = { total: 0, valid: 0 };
  const isRecords = flow?.kind === "records";
  const bytes = isRecords ? encodeRecords(flow.batches, run.redact, counts) : valueBytes(flow, run);
  const small = bytes === null ? null : await readSmall(bytes);
  const key = `steps/${run.run.accountId}/${run.run.id}/${randomBase62(16)}`;
  const blob = small?.stream ? await run.services.blobs.put(key, small.stream) : null;
  return {
    outputKind: isRecords ? "records" : valueKind(flow),
    output: small?.content ?? null,
    blob,
    ...fileNames(flow, run),
    recordsTotal: isRecords ? counts.total : null,
    recordsValid: isRecords ? counts.valid : null,
  };
}

/** Records that fit the row, without a stream; null: they don't fit. */
function fewRecords(records: readonly DataRecord[], { redact }: RunContext): KeptOutput | null {
  const output = redact.fewLines(records, limits.rowContentBytesMax);
  if (output === null) return null;
  const recordsValid = records.filter(({ isValid }) => isValid).length;
  const none = { blob: null, filename: null, contentType: null };
  return { outputKind: "records", output, ...none, recordsTotal: records.length, recordsValid };
}

const bytesOf = (text: string | null): Buffer | null => (text === null ? null : Buffer.from(text, "utf8"));

/** The stored output, for its readers. */
export async function reopenOutput(blobs: Blobs, { blob, ...kept }: KeptOutput): Promise<NodeOutput> {
  return await openOutput(blobs, {
    ...kept,
    blobKey: blob?.key ?? null,
    blobBytes: blob?.sizeBytes ?? null,
    filename: bytesOf(kept.filename),
    contentType: bytesOf(kept.contentType),
  });
}

type Blobs = RunContext["services"]["blobs"];

/** An output in the form of its row. */
type StoredOutput = Pick<
  RunStep,
  "outputKind" | "output" | "blobKey" | "blobBytes" | "filename" | "contentType"
> &
  Partial<Pick<RunStep, "recordsTotal" | "recordsValid">>;

/** Reads the output of a node or step, from its row or the object store. */
export async function openOutput(blobs: Blobs, step: StoredOutput): Promise<NodeOutput> {
  const open = opener(blobs, step.output, step.blobKey);
  if (step.outputKind === "records") {
    const counts = { total: step.recordsTotal ?? 0, valid: step.recordsValid ?? 0 };
    const stored = must(open, "the step's records");
    const { output } = step;
    return {
      kind: "records",
      open: () => decodeRecords(stored()),
      counts,
      ...(output !== null &&
        counts.total <= limits.recordBatchSizeMax && {
          whole: () => ({ kind: "records", records: readRecords(output) }),
        }),
    };
  }
  const value = await readValue(open, step.outputKind, {
    filename: step.filename?.toString("utf8") ?? null,
    contentType: step.contentType?.toString("utf8") ?? null,
    sizeBytes: step.output?.length ?? step.blobBytes ?? 0,
  });
  return { kind: "value", value };
}

/** A reader of a stored output, from its row or the object store; null: there is none. */
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

function valueKind(flow: Flow | null): FinishedStep["outputKind"] {
  return flow?.kind === "value" ? flow.value.form : "absent";
}

/** A file's name and type come from the target, so they are redacted like everything else. */
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
