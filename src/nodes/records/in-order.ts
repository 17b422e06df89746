import type { Json } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import type { DataRecord, RecordBatches } from "#domain/record.ts";
import type { NodeContext } from "#nodes/define-node.ts";

/** The most characters of an item's records that are buffered in memory; more are buffered on the worker's disk. */
const HELD_CHARACTERS_MAX = 65_536;
/** The most items that are completed or in progress after one that is not. */
const WAITING_MAX = 200;
/** A batch of small records is full at this many characters. */
const BATCH_CHARACTERS_MAX = 262_144;

interface Waiting {
  held: (() => RecordBatches) | null;
  isDone: boolean;
  readonly ended: Promise<void>;
}

/**
 * Processes several items concurrently and yields their records in the order of the items. After one fails, no other is started;
 * those in progress end at their next page, and the first failure is thrown. With a concurrency of one, records are streamed and
 * not buffered.
 */
export async function* inOrder<Item>(
  context: NodeContext,
  items: AsyncIterable<Item>,
  atOnce: number,
  recordsOf: (context: NodeContext, item: Item) => RecordBatches,
): RecordBatches {
  if (atOnce === 1) {
    for await (const item of items) yield* recordsOf(context, item);
    return;
  }
  const stop = new AbortController();
  const inner = { ...context, signal: AbortSignal.any([context.signal, stop.signal]) };
  const source = items[Symbol.asyncIterator]();
  const waiting: Waiting[] = [];
  const failures: unknown[] = [];
  let underWay = 0;
  let freed = Promise.withResolvers<void>();
  const begin = (item: Item): void => {
    underWay += 1;
    const work = async (): Promise<void> => {
      try {
        entry.held = await hold(inner, recordsOf(inner, item));
      } catch (error) {
        failures.push(error);
        // The others must stop even while no records are requested.
        stop.abort(error);
      }
      entry.isDone = true;
      underWay -= 1;
      freed.resolve();
    };
    const entry: Waiting = { held: null, isDone: false, ended: Promise.resolve().then(work) };
    waiting.push(entry);
  };
  try {
    for (let isOver = false; failures.length === 0;) {
      while (!isOver && underWay < atOnce && waiting.length < WAITING_MAX) {
        const step = await source.next();
        if (step.done === true) isOver = true;
        else begin(step.value);
      }
      const [first] = waiting;
      if (first === undefined) break;
      freed = Promise.withResolvers();
      if (!first.isDone) await Promise.race([first.ended, freed.promise]);
      if (first.held === null) continue;
      waiting.shift();
      yield* first.held();
    }
  } finally {
    stop.abort(new Error("the other records are no longer needed"));
    await Promise.all(waiting.map(async ({ ended }) => await ended));
    await source.return?.();
  }
  if (failures.length > 0) throw failures[0];
}

/** Buffers all records and returns a function that reads them: from memory if they are few, else from the worker's disk. */
async function hold(context: NodeContext, batches: RecordBatches): Promise<() => RecordBatches> {
  const source = batches[Symbol.asyncIterator]();
  const kept: (readonly DataRecord[])[] = [];
  let room = HELD_CHARACTERS_MAX;
  try {
    for (;;) {
      const step = await source.next();
      if (step.done === true) return () => again(kept);
      kept.push(step.value);
      room -= charactersOf(step.value, room);
      if (room < 0) return await context.spill(keptThenRest(kept, source));
    }
  } finally {
    await source.return?.();
  }
}

async function* again(kept: readonly (readonly DataRecord[])[]): RecordBatches {
  yield* kept;
}

async function* keptThenRest(
  kept: (readonly DataRecord[])[],
  source: AsyncIterator<readonly DataRecord[]>,
): RecordBatches {
  yield* kept.splice(0);
  for (let step = await source.next(); step.done !== true; step = await source.next()) yield step.value;
}

/** Approximate; stops counting at `enough`. */
function charactersOf(batch: readonly DataRecord[], enough: number): number {
  let count = 0;
  const walk = (value: Json): void => {
    if (count > enough) return;
    count += 8;
    if (typeof value === "string") count += value.length;
    else if (typeof value === "object" && value !== null)
      for (const [key, item] of Object.entries(value)) {
        count += key.length;
        walk(item);
        if (count > enough) return;
      }
  };
  for (const { data, errors } of batch) {
    walk(data);
    count += errors.length * 100;
    if (count > enough) break;
  }
  return count;
}

/** Merges small batches. */
export async function* mergeSmallBatches(batches: RecordBatches): RecordBatches {
  let waiting: DataRecord[] = [];
  let room = BATCH_CHARACTERS_MAX;
  for await (const batch of batches) {
    if (waiting.length + batch.length > limits.recordBatchSizeMax || room < 0) {
      if (waiting.length > 0) yield waiting;
      [waiting, room] = [[], BATCH_CHARACTERS_MAX];
    }
    room -= charactersOf(batch, room);
    waiting.push(...batch);
  }
  if (waiting.length > 0) yield waiting;
}
