// A field's name alone is read without a thread: it must give what a thread gives.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Json } from "#domain/json.ts";
import { openEvaluator } from "#expressions/evaluator.ts";

const evaluator = openEvaluator();
const bound = evaluator.bind({});
after(async () => {
  bound.release();
  await evaluator.close();
});

const VALUES: readonly Json[] = [
  null,
  true,
  false,
  0,
  -1.5,
  1e21,
  "",
  "text",
  [],
  [[]],
  [[], []],
  [1],
  [[1]],
  [[1, 2]],
  [1, [2, [3]]],
  [null],
  [null, null],
  [{ n: 1 }],
  [{ n: 1 }, { n: 2 }],
  {},
  { items: [] },
  { sequence: true, length: 3 },
];
const NAMES = [
  "items",
  "n1",
  "a_b",
  "toString",
  "constructor",
  "hasOwnProperty",
  "and",
  "in",
  "true",
  "null",
];

test("a field's name gives in this thread what the expression gives in its own", async () => {
  for (const name of NAMES) {
    const roots: (Json | undefined)[] = [
      ...VALUES.map((value) => ({ [name]: value, other: 1 })),
      {},
      [{ [name]: 1 }, { [name]: 2 }],
      "text",
      null,
      undefined,
    ];
    for (const root of roots) {
      const scope = root === undefined ? {} : { root };
      const [[here] = []] = await bound.evaluateBatch([name], [scope]);
      // Two expressions, one of which is no name, go to the thread together.
      const [[there] = []] = await bound.evaluateBatch([name, "1 + 1"], [scope]);
      assert.deepEqual(here, there, `${name} of ${JSON.stringify(root)}`);
    }
  }
});
