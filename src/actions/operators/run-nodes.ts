import { contentOf } from "#actions/runs/export-results.ts";
import type { Needs } from "#actions/services.ts";
import { findCachedVersion } from "#db/config-documents.ts";
import { findDetailedRun, listDetailedSteps, type DetailedRun } from "#db/operators/operator-runs.ts";
import { findGoodRunBefore, findRunInput, findStoredRecords } from "#db/operators/operator-run-nodes.ts";
import type { Database } from "#db/connection/pool.ts";
import { listResults } from "#db/runs/run-results.ts";
import { findRunOfAnyAccount } from "#db/runs/runs.ts";
import { withoutHandles, withoutHandlesIn } from "#domain/handle-text.ts";
import { readRunReference } from "#domain/ids.ts";
import { limits } from "#domain/limits.ts";
import { readTallies } from "#domain/node-tally.ts";
import { notFound } from "#domain/problem.ts";
import { decodeRecords } from "#domain/record-lines.ts";
import type { DataRecord } from "#domain/record.ts";
import { splitJsonItems } from "#lib/split-json-items.ts";
import { resultKeysOf } from "#nodes/types/output.ts";

async function requireRun(db: Database, reference: string): Promise<DetailedRun> {
  const parsed = readRunReference(reference);
  const found = parsed && (await findRunOfAnyAccount(db, parsed));
  const run = found && (await findDetailedRun(db, found.id));
  if (!run) throw notFound("Run");
  return run;
}

/** Records of a node, by its id. */
type Counts = ReadonlyMap<string, { readonly total: number | null; readonly valid: number | null }>;

async function countsOf(db: Database, run: DetailedRun): Promise<Counts> {
  const steps = await listDetailedSteps(db, run.id);
  const texts = [...steps.map(({ tally }) => tally), run.tally].map((lines) => lines?.toString("utf8") ?? "");
  return new Map([
    ...readTallies(texts)
      .filter(({ state }) => state !== "skipped")
      .map(({ node, total, valid }) => [node, { total, valid }] as const),
    ...steps
      .filter(({ status }) => status !== "started")
      .map((step) => [step.nodeId, { total: step.recordsTotal, valid: step.recordsValid }] as const),
  ]);
}

/** The records of each node, beside those of the last completed run of the Blueprint before it. Throws Problem 404. */
export async function compareRun(db: Database, reference: string) {
  const run = await requireRun(db, reference);
  const goodId = await findGoodRunBefore(db, run.id);
  const good = goodId === undefined ? undefined : await findDetailedRun(db, goodId);
  if (!good) return { with: null, nodes: [] };
  const [now, before] = [await countsOf(db, run), await countsOf(db, good)];
  const errors = (counts: { total: number | null; valid: number | null } | undefined): number | null =>
    typeof counts?.total === "number" && typeof counts.valid === "number"
      ? counts.total - counts.valid
      : null;
  return {
    with: {
      id: good.id,
      name: good.name?.toString("utf8") ?? null,
      created_at: good.createdAt.toISOString(),
      blueprint_version: good.blueprintVersion,
    },
    nodes: [...new Set([...before.keys(), ...now.keys()])].map((node) => ({
      node,
      records: now.get(node)?.total ?? null,
      records_before: before.get(node)?.total ?? null,
      errors: errors(now.get(node)),
      errors_before: errors(before.get(node)),
    })),
  };
}

type Stored = Needs<"db" | "blobs">;

export interface SampleQuery {
  limit?: number;
  /** Only records with errors. */
  invalid?: boolean;
}

/**
 * The first records of a node's output, as far as they are stored: those of steps, and those that became results. Stops when the
 * caller is gone. Throws Problem 404.
 */
export async function getNodeSample(
  services: Stored,
  named: { readonly run: string; readonly node: string },
  query: SampleQuery,
  gone: AbortSignal,
) {
  const run = await requireRun(services.db, named.run);
  const records = await recordsOf(services, run, named.node);
  const items = [];
  let ordinal = 0;
  for await (const batch of records ?? []) {
    for (const { data, errors, isValid } of batch) {
      if (isValid && query.invalid === true) ordinal++;
      else if (items.length < (query.limit ?? limits.pageItems))
        items.push({
          ordinal: ordinal++,
          data: withoutHandlesIn(data),
          errors: errors.map((error) => ({ ...error, message: withoutHandles(error.message) })),
          is_valid: isValid,
        });
    }
    if (items.length >= (query.limit ?? limits.pageItems) || gone.aborted) break;
  }
  return { is_stored: records !== null, items };
}

/** null: none are stored. */
async function recordsOf(
  { db, blobs }: Stored,
  run: DetailedRun,
  node: string,
): Promise<AsyncIterable<readonly DataRecord[]> | null> {
  if (run.purgedAt !== null) return null;
  const stored = await findStoredRecords(db, run.id, node);
  if (stored?.content) return decodeRecords(once(stored.content));
  if (stored?.blobKey) return decodeRecords(blobs.open(stored.blobKey));
  const version =
    run.blueprintId === null || run.blueprintVersion === null
      ? undefined
      : await findCachedVersion(db, "blueprint", {
          accountId: run.accountId,
          id: run.blueprintId,
          version: run.blueprintVersion,
        });
  const output = version?.nodes.find(({ id, type }) => id === node && type === "output");
  if (!output) return null;
  const keys = new Set(resultKeysOf(output).map(({ key }) => key));
  const results = (await listResults(db, run.id)).filter(({ key }) => keys.has(key));
  return results.length === 0 ? null : resultRecords(blobs, run.id, results);
}

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}

async function* resultRecords(
  blobs: Stored["blobs"],
  runId: string,
  results: Awaited<ReturnType<typeof listResults>>,
): AsyncIterable<readonly DataRecord[]> {
  for (const result of results)
    for await (const batch of splitJsonItems(contentOf(blobs, result, runId)))
      // In the form that this service wrote.
      yield batch.map((item) => JSON.parse(item.toString("utf8")) as DataRecord);
}

/** The part of an input that is shown. */
const SHOWN_BYTES = 65_536;

/** The beginning of an input. Throws Problem 404. */
export async function getRunInput(
  { db, blobs }: Stored,
  named: { readonly run: string; readonly refKey: string },
) {
  const run = await requireRun(db, named.run);
  const input = await findRunInput(db, run.id, named.refKey);
  if (!input) throw notFound("Input");
  const bytes = input.content ?? (await beginningOf(blobs.open(input.blobKey ?? "")));
  const shown = bytes.subarray(0, SHOWN_BYTES);
  return {
    kind: input.kind,
    filename: input.filename?.toString("utf8") ?? null,
    content_type: input.contentType?.toString("utf8") ?? null,
    size_bytes: input.sizeBytes ?? bytes.length,
    text: shown.includes(0) ? null : shown.toString("utf8"),
    is_cut: (input.sizeBytes ?? bytes.length) > shown.length,
  };
}

async function beginningOf(bytes: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of bytes) {
    chunks.push(chunk);
    size += chunk.length;
    if (size >= SHOWN_BYTES) break;
  }
  return Buffer.concat(chunks);
}
