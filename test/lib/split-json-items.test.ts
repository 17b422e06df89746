import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { splitJsonItems } from "#lib/split-json-items.ts";

async function itemsOf(text: string, chunkBytes: number): Promise<readonly string[]> {
  const bytes = Buffer.from(text);
  const chunks = async function* (): AsyncIterable<Uint8Array> {
    for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
  };
  return (await Array.fromAsync(splitJsonItems(chunks()))).flat().map(String);
}

test("the items are what was stored, wherever the chunks end", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ data: fc.dictionary(fc.string({ unit: "grapheme" }), fc.jsonValue()) })),
      fc.integer({ min: 1, max: 40 }),
      async (records, chunkBytes) => {
        const stored = `{"totalRecords":${records.length},"records":${JSON.stringify(records)}}`;
        assert.deepEqual(
          await itemsOf(stored, chunkBytes),
          records.map((record) => JSON.stringify(record)),
        );
      },
    ),
    { numRuns: 300 },
  );
});

test("a text that is truncated is an error", async () => {
  await assert.rejects(itemsOf('{"totalRecords":2,"records":[{"a":"]"},{"a', 7), /is truncated/);
});
