import type { Json, JsonObject } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import type { DataRecord, RecordBatches } from "#domain/record.ts";
import { must } from "#lib/assert.ts";
import type { NodeContext } from "#nodes/define-node.ts";
import { inBatches } from "./record-flow.ts";

/** A record with its sort key. */
export interface KeyedRecord {
  readonly key: readonly Json[];
  readonly record: DataRecord;
}

export type KeyedBatches = AsyncIterable<readonly KeyedRecord[]>;
type CompareKeys = (left: readonly Json[], right: readonly Json[]) => number;
type Spill = NodeContext["spill"];
type Spilled = () => RecordBatches;

/** The most records that are sorted in memory at once, and the most chunks that are merged at once, each with one batch in memory. */
const BOUNDS = { recordsMax: 10_000, charactersMax: 4_000_000, mergedMax: 64 };

/**
 * Sorts any number of records in little memory: chunks are sorted, spilled and merged. Stable. A set that fits in one chunk is
 * never spilled.
 */
export async function* sortKeyed(
  entries: KeyedBatches,
  compare: CompareKeys,
  spill: Spill,
  bounds = BOUNDS,
): KeyedBatches {
  const spillSorted = async (chunk: KeyedRecord[]): Promise<Spilled> =>
    await spill(toSpill(ofChunk(sortChunk(chunk, compare))));
  let chunks: Spilled[] = [];
  let chunk: KeyedRecord[] = [];
  let characters = 0;
  for await (const batch of entries) {
    chunk.push(...batch);
    for (const { key, record } of batch) characters += sizeOf(key) + sizeOf(record.data);
    if (chunk.length < bounds.recordsMax && characters < bounds.charactersMax) continue;
    chunks.push(await spillSorted(chunk));
    chunk = [];
    characters = 0;
  }
  if (chunks.length === 0) {
    yield* inBatches(sortChunk(chunk, compare));
    return;
  }
  if (chunk.length > 0) chunks.push(await spillSorted(chunk));
  chunk = [];
  while (chunks.length > bounds.mergedMax)
    chunks = await mergeGroups(chunks, bounds.mergedMax, compare, spill);
  yield* mergeChunks(chunks, compare);
}

/** The approximate length of a value's JSON. Every value adds to it, so that many small ones count, too. */
export function sizeOf(json: Json): number {
  if (typeof json === "string") return 16 + json.length;
  if (typeof json !== "object" || json === null) return 16;
  let size = 16;
  for (const [name, part] of Object.entries(json as JsonObject)) size += 8 + name.length + sizeOf(part);
  return size;
}

function sortChunk(chunk: KeyedRecord[], compare: CompareKeys): KeyedRecord[] {
  return chunk.sort((left, right) => compare(left.key, right.key));
}

async function* ofChunk(chunk: readonly KeyedRecord[]): KeyedBatches {
  yield* inBatches(chunk);
}

/** Adjacent chunks are merged, so that equal keys keep their order. */
async function mergeGroups(
  chunks: readonly Spilled[],
  atOnce: number,
  compare: CompareKeys,
  spill: Spill,
): Promise<Spilled[]> {
  const merged: Spilled[] = [];
  for (let start = 0; start < chunks.length; start += atOnce) {
    merged.push(await spill(toSpill(mergeChunks(chunks.slice(start, start + atOnce), compare))));
  }
  return merged;
}

async function* mergeChunks(chunks: readonly Spilled[], compare: CompareKeys): KeyedBatches {
  await using heads = new AsyncDisposableStack();
  // Sorted by their first records. Among equals the earlier chunk comes first, so the sort is stable.
  const queue: Cursor[] = [];
  const cursors = chunks.map((open) => heads.use(new Cursor(fromSpill(open()))));
  const enqueue = async (cursor: Cursor): Promise<void> => {
    await cursor.next();
    if (cursor.head === null) return;
    let low = 0;
    let high = queue.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = must(queue[middle], "a chunk in the queue");
      const order = compare(cursor.head.key, other.head?.key ?? []);
      if (order < 0 || (order === 0 && cursors.indexOf(cursor) < cursors.indexOf(other))) high = middle;
      else low = middle + 1;
    }
    queue.splice(low, 0, cursor);
  };
  for (const cursor of cursors) await enqueue(cursor);
  let batch: KeyedRecord[] = [];
  for (let first = queue.shift(); first !== undefined; first = queue.shift()) {
    batch.push(must(first.head, "the head of a chunk"));
    await enqueue(first);
    if (batch.length < limits.recordBatchSizeMax) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/** Reads keyed records one by one. */
export class Cursor {
  /** Null before the first `next`, and at the end. */
  head: KeyedRecord | null = null;
  readonly #batches: AsyncIterator<readonly KeyedRecord[]>;
  #batch: readonly KeyedRecord[] = [];
  #place = 0;

  constructor(batches: KeyedBatches) {
    this.#batches = batches[Symbol.asyncIterator]();
  }

  async next(): Promise<void> {
    while (this.#place >= this.#batch.length) {
      const step = await this.#batches.next();
      if (step.done === true) {
        this.head = null;
        return;
      }
      this.#batch = step.value;
      this.#place = 0;
    }
    this.head = this.#batch[this.#place] ?? null;
    this.#place += 1;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#batches.return?.();
  }
}

/** The key is stored as data, under a name too short to be mistaken for a secret. */
async function* toSpill(entries: KeyedBatches): RecordBatches {
  for await (const batch of entries)
    yield batch.map(({ key, record }) => ({ ...record, data: { k: key, d: record.data } }));
}

async function* fromSpill(batches: RecordBatches): KeyedBatches {
  for await (const batch of batches) {
    yield batch.map(({ data, errors, isValid }) => ({
      key: data["k"] as readonly Json[],
      record: { data: data["d"] as JsonObject, errors, isValid },
    }));
  }
}
