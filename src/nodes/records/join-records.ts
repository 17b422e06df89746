import { limits } from "#domain/limits.ts";
import type { DataRecord, RecordBatches } from "#domain/record.ts";
import { compareJson, digestJson } from "./compare-json.ts";
import type { Flow, NodeContext } from "#nodes/define-node.ts";
import { keyRecords, type KeyPart, type KeySource } from "./record-keys.ts";
import { inBatches } from "./record-flow.ts";
import { Cursor, sizeOf, sortKeyed, type KeyedBatches, type KeyedRecord } from "./sort-keyed.ts";

interface Side {
  readonly from: readonly Flow[];
  readonly sources: readonly KeySource[];
}

export interface Join {
  readonly left: Side;
  readonly right: Side;
  readonly keepsUnmatched: boolean;
}

/** A record's position and digest. The digest is null if a part of its key is null or missing. */
type Digested = { readonly digest: string | null; readonly index: number; readonly record: DataRecord };
type DigestedBatches = AsyncGenerator<readonly Digested[], void, undefined>;
type Context = Pick<NodeContext, "expressions" | "spill">;

/** The most of the right side that is kept in memory. */
const HELD_RECORDS_MAX = 10_000;
const HELD_CHARACTERS_MAX = 4_000_000;

/** Joins in the order of the left side; matches of one record are in the order of the right side. */
export async function* joinRecords(context: Context, join: Join): RecordBatches {
  const right = digested(context, join.right);
  try {
    const { held, isAll } = await hold(right);
    if (isAll) yield* batched(joinHeld(context, join, held));
    else yield* joinSorted(context, join, keyed(chained(held, right)));
  } finally {
    await right.return();
  }
}

async function* digested({ expressions }: Context, { from, sources }: Side): DigestedBatches {
  for await (const { first, entries } of keyRecords(from, expressions, sources)) {
    yield entries.map(({ key, record }, index) => ({
      digest: key.every(hasValue) ? digestJson(key) : null,
      index: first + index,
      record,
    }));
  }
}

const hasValue = (part: KeyPart): boolean => part.length === 1 && part[0] !== null;

/** Reads as much of the right side as fits in memory. Records that can't match are left out. */
async function hold(right: DigestedBatches): Promise<{ held: readonly Digested[]; isAll: boolean }> {
  const held: Digested[] = [];
  let characters = 0;
  while (held.length < HELD_RECORDS_MAX && characters < HELD_CHARACTERS_MAX) {
    const step = await right.next();
    if (step.done === true) return { held, isAll: true };
    const matching = step.value.filter(({ digest }) => digest !== null);
    held.push(...matching);
    for (const { record } of matching) characters += sizeOf(record.data);
  }
  return { held, isAll: false };
}

/** Joins with the right side in memory while the left side is streamed. */
async function* joinHeld(context: Context, join: Join, held: readonly Digested[]): AsyncIterable<DataRecord> {
  const matches = Map.groupBy(held, ({ digest }) => digest);
  for await (const batch of digested(context, join.left)) {
    for (const { digest, record } of batch) {
      const found = digest === null ? undefined : matches.get(digest);
      if (found) for (const match of found) yield merged(record, match.record);
      else if (join.keepsUnmatched) yield record;
    }
  }
}

/** Sorts both sides by digest and merges them; the result is sorted back into the order of the left side. */
async function* joinSorted(context: Context, join: Join, right: KeyedBatches): RecordBatches {
  const sort = (entries: KeyedBatches): KeyedBatches => sortKeyed(entries, compareJson, context.spill);
  const pairs = matched(context, sort(keyed(digested(context, join.left))), sort(right), join.keepsUnmatched);
  for await (const batch of sort(pairs)) yield batch.map(({ record }) => record);
}

async function* matched(
  context: Context,
  left: KeyedBatches,
  right: KeyedBatches,
  keepsUnmatched: boolean,
): KeyedBatches {
  await using cursor = new Cursor(right);
  await cursor.next();
  let group: Group | null = null;
  for await (const batch of left) {
    for (const { key, record } of batch) {
      const [digest = null, index = null] = key;
      // Records without a digest sort first and belong to no group.
      if (typeof digest === "string" && group?.digest !== digest)
        group = await readGroup(context, cursor, digest);
      const open = digest === null ? null : group?.open;
      if (open) {
        for await (const matches of open())
          yield matches.map((match) => ({ key: [index], record: merged(record, match) }));
      } else if (keepsUnmatched) yield [{ key: [index], record }];
    }
  }
}

/** The records of the right side with the same digest. `open` is null if there are none. */
interface Group {
  readonly digest: string;
  readonly open: (() => RecordBatches) | null;
}

async function readGroup({ spill }: Context, cursor: Cursor, digest: string): Promise<Group> {
  const isBefore = (entry: KeyedRecord): boolean => compareJson(entry.key[0] ?? null, digest) < 0;
  while (cursor.head !== null && isBefore(cursor.head)) await cursor.next();
  const held: DataRecord[] = [];
  let characters = 0;
  while (cursor.head?.key[0] === digest) {
    held.push(cursor.head.record);
    characters += sizeOf(cursor.head.record.data);
    await cursor.next();
    if (held.length < HELD_RECORDS_MAX && characters < HELD_CHARACTERS_MAX) continue;
    return { digest, open: await spill(batched(restOfGroup(held, cursor, digest))) };
  }
  const open = async function* (): RecordBatches {
    yield* inBatches(held);
  };
  return { digest, open: held.length === 0 ? null : open };
}

async function* restOfGroup(
  held: readonly DataRecord[],
  cursor: Cursor,
  digest: string,
): AsyncIterable<DataRecord> {
  yield* held;
  while (cursor.head?.key[0] === digest) {
    yield cursor.head.record;
    await cursor.next();
  }
}

async function* chained(
  held: readonly Digested[],
  rest: DigestedBatches,
): AsyncIterable<readonly Digested[]> {
  yield* inBatches(held);
  for await (const batch of rest) yield batch.filter(({ digest }) => digest !== null);
}

async function* keyed(batches: AsyncIterable<readonly Digested[]>): KeyedBatches {
  for await (const batch of batches)
    yield batch.map(({ digest, index, record }) => ({ key: [digest, index], record }));
}

async function* batched(records: AsyncIterable<DataRecord>): RecordBatches {
  let batch: DataRecord[] = [];
  for await (const record of records) {
    batch.push(record);
    if (batch.length < limits.recordBatchSizeMax) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/** If both have a field, the left one's is used. The result has the errors of both, and is valid if both are. */
function merged(left: DataRecord, right: DataRecord): DataRecord {
  return {
    // `fromEntries` defines: a field `__proto__` stays a field.
    data: Object.fromEntries([
      ...Object.entries(left.data),
      ...Object.entries(right.data).filter(([name]) => !Object.hasOwn(left.data, name)),
    ]),
    errors: [...left.errors, ...right.errors],
    isValid: left.isValid && right.isValid,
  };
}
