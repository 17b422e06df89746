// A list of any length is read item by item, and gives what reading the whole gives.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Json } from "#domain/json.ts";
import { streamList, type ListPath } from "#nodes/parse/stream-json.ts";
import { dataOf, fileValue, runNode } from "./node-context.ts";

async function* chunked(text: string | Buffer, size: number): AsyncIterable<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function read(text: string | Buffer, path: ListPath, size: number) {
  const list = streamList(chunked(text, size), path, "It");
  const items: Json[] = [];
  for (;;) {
    const step = await list.next();
    if (step.done === true) return { items, whole: step.value };
    assert.equal(step.value.first, items.length, "items are numbered through");
    items.push(...step.value.items);
  }
}

const problem = async (text: string | Buffer, path: ListPath = ["items"], size = 5): Promise<string> =>
  await read(text, path, size).then(
    (found) => assert.fail(`${text.toString()} gave ${JSON.stringify(found)}`),
    (error: unknown) => (error as Error).message,
  );

test("whatever the items are and wherever the chunks end, they are those of JSON.parse", async () => {
  const path = fc.constantFrom<ListPath>([], ["items"], ["a", "items"], ['it"e\\ms'], ["__proto__", "x"]);
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.jsonValue({ maxDepth: 3 })),
      path,
      fc.jsonValue({ maxDepth: 2 }),
      fc.integer({ min: 1, max: 40 }),
      fc.constantFrom(undefined, 1),
      async (items, names, beside, size, space) => {
        const list = JSON.parse(JSON.stringify(items)) as Json;
        const document = names.reduceRight<string>(
          (inner, name) =>
            `{ "items2": ${JSON.stringify(beside, null, space)}, ${JSON.stringify(name)} : ${inner}, "deep": {"items": ${JSON.stringify(beside)}} }`,
          JSON.stringify(list, null, space),
        );
        assert.deepEqual(await read(document, names, size), { items: list, whole: null });
      },
    ),
    { numRuns: 300 },
  );
});

test("what is no list at that path is given whole", async () => {
  for (const [text, path] of [
    ['{"items":{"a":[1]}}', ["items"]],
    ['{"other":[1]}', ["items"]],
    // A name that is too long to be the path's is not the one before it.
    [`{"items":1,"${"x".repeat(5_000)}":[1]}`, ["items"]],
    ['{"items":null}', ["items"]],
    ['{"x":{"items":[1]}}', ["items"]],
    ['[{"items":[1]},{"items":[2]}]', ["items"]],
    ['{"a":[{"items":[1]}]}', ["a", "items"]],
    ['{"a":[1]}', []],
    ["7", []],
    [' "text" ', []],
  ] as const)
    assert.deepEqual(
      await read(text, path, 3),
      { items: [], whole: { whole: JSON.parse(text) as Json } },
      text,
    );
});

test("what isn't JSON fails, around the list as in it", async () => {
  for (const text of [
    '{"items":[1,2]',
    '{"items":[1,2',
    '{"items":[1,,2]}',
    '{"items":[,1]}',
    '{"items":[1,]}',
    '{"items":[1 2]}',
    '{"items":[1}}',
    '{"items":[1]]',
    '{"items":["a]}',
    '{"items":[1]} x',
    '{"items":[1],}',
    "{items:[1]}",
    '{"items":[01]}',
  ])
    assert.equal(await problem(text), "It is not JSON.", text);
  assert.equal(await problem("", []), "It is empty, not JSON.");
  assert.equal(await problem('{"items":[1],"items":[2]}'), "It has `items` twice.");
  assert.match(
    await problem(Buffer.concat([Buffer.from('{"items":["'), Buffer.from([0xff]), Buffer.from('"]}')])),
    /not utf-8/,
  );
});

test("depth and the length of an item are limited before anything is parsed", async () => {
  const deep = "[".repeat(600) + "]".repeat(600);
  assert.match(await problem(`{"items":[${deep}]}`), /nested deeper than 500 levels/);
  assert.match(await problem(`{"other":${deep}}`), /nested deeper than 500 levels/);
  // It never ends: what fails is its length.
  assert.match(
    await problem(`{"items":[{"a":"${"x".repeat(10_000_100)}`, ["items"], 65_536),
    /item 0 is longer than/,
  );
  assert.match(await problem("[".repeat(5_000_000), [], 65_536), /nested deeper than 500 levels/);
});

test("a parse node streams a list at a path, and evaluates what is more than a path", async () => {
  const file = fileValue(Buffer.from('{"data":{"items":[{"n":1},{"n":2}]},"more":true}'));
  for (const records of ["data.items", "data.items[n > 0]"]) {
    const { flow } = await runNode(
      { type: "parse", from: "a", format: "json", records },
      { from: [{ kind: "value", value: file }] },
    );
    assert.deepEqual(await dataOf(flow), [{ n: 1 }, { n: 2 }]);
  }
  const { flow } = await runNode(
    { type: "parse", from: "a", format: "json", records: "data.items" },
    { from: [{ kind: "value", value: fileValue(Buffer.from('{"data":{"items":[{"n":1},2]}}')) }] },
  );
  await assert.rejects(dataOf(flow), /The file: records: item 1 is a number/);
});
