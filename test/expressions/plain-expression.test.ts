// What is evaluated without a thread must give what a thread gives.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import fc from "fast-check";
import type { Json, JsonObject } from "#domain/json.ts";
import { openEvaluator } from "#expressions/evaluator.ts";
import { compilePlain } from "#expressions/plain-expression.ts";
import { NEEDS_SANDBOX, PLAIN_FUNCTIONS } from "#expressions/plain-functions.ts";

const BOUND = { inputs: { period: { from: "2024-01-01" }, list: [1, 2] }, metadata: { order: "A-1" } };

const evaluator = openEvaluator();
const bound = evaluator.bind(BOUND);
after(async () => {
  bound.release();
  await evaluator.close();
});

/** In the thread: the value or the reason. */
async function there(source: string, root: Json | undefined, own?: JsonObject): Promise<unknown> {
  return await bound
    .evaluate(source, { root, variables: own })
    .catch((error: unknown) => (error instanceof Error ? error.message : error));
}

/** True if the expression needed no thread on this root; then it gives what a thread gives. */
async function agrees(source: string, root: Json | undefined, own?: JsonObject): Promise<boolean> {
  const plain = compilePlain(source);
  if (plain === null) return false;
  const value = plain({ root, own, bound: BOUND });
  if (value === NEEDS_SANDBOX) return false;
  assert.deepEqual(value, await there(source, root, own), `${source} of ${JSON.stringify(root)}`);
  return true;
}

const VALUES: readonly Json[] = [
  ...[
    null,
    true,
    false,
    0,
    -1.5,
    1e21,
    0.1 + 0.2,
    2.5,
    3.5,
    "",
    "text",
    " a  b ",
    "12",
    "-1.5e3",
    "0x10",
    "𝒳é",
  ],
  ...[
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
  ],
  ...[{}, { items: [] }, { sequence: true, length: 3 }],
];
const NAMES = [
  "items",
  "n1",
  "a_b",
  "toString",
  "constructor",
  "__proto__",
  "`two words`",
  "and",
  "true",
  "null",
];

test("a field's name gives in this thread what the expression gives in its own", async () => {
  for (const name of NAMES) {
    const key = name.replaceAll("`", "");
    const roots: (Json | undefined)[] = [
      ...VALUES.map(
        (value) => JSON.parse(`{${JSON.stringify(key)}:${JSON.stringify(value)},"other":1}`) as Json,
      ),
      {},
      [{ [key]: 1 }, { [key]: 2 }],
      ...["text", null, undefined],
    ];
    for (const root of roots) await agrees(name, root);
  }
});

test("every plain function and operator gives what a thread gives, or leaves it to one", async () => {
  const calls = [...PLAIN_FUNCTIONS.keys()].map((name) => {
    const [called = "", count] = name.split("/");
    return count === "1" ? `$${called}(a)` : `$${called}(a, b)`;
  });
  const operators = ["=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "&", "and", "or", "??", "?:"];
  const sources = [
    ...calls,
    ...operators.map((operator) => `a ${operator} b`),
    ...[
      "-a",
      "a ? b : 1",
      "a ? b",
      "$exists(a)",
      "a.items",
      "a.length",
      'a in ["text", 0, null]',
      "(a)",
      "$not(a.b)",
    ],
  ];
  const values = [undefined, ...VALUES];
  for (const source of sources) {
    let plain = 0;
    for (const [index, a] of values.entries()) {
      const others = source.includes("b") ? [undefined, ...values.slice(index % 3)] : [undefined];
      for (const b of others.slice(0, 12)) {
        const root = { ...(a === undefined ? {} : { a }), ...(b === undefined ? {} : { b }) };
        if (await agrees(source, root)) plain += 1;
      }
    }
    assert.ok(plain > 0, `${source} is never evaluated here`);
  }
});

test("variables are the scope's own before those of the binding, and may hide a function", async () => {
  assert.ok(await agrees("$inputs.period.from", {}));
  assert.ok(await agrees("$inputs.period.none", {}));
  assert.ok(await agrees("$metadata.order & '/' & $index", {}, { index: 3 }));
  assert.ok(await agrees("$inputs.period", {}, { inputs: { period: 1 } }));
  assert.ok(await agrees("$not($isValid)", {}, { isValid: true }));
  assert.equal(await agrees("$inputs.list.n", {}), false);
  assert.equal(await agrees("$number(a)", { a: "1" }, { number: 1 }), false);
  assert.equal(compilePlain("$sum")?.({ root: {}, own: undefined, bound: BOUND }), NEEDS_SANDBOX);
});

const leaf = fc.constantFrom("a", "b.c", "d", "1", "2.5", "'x'", "true", "null", "$index", "$metadata.order");
const tree = fc.letrec<{ expression: string }>((tie) => ({
  expression: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    leaf,
    fc
      .tuple(
        tie("expression"),
        fc.constantFrom("+", "-", "*", "/", "&", "=", "<", ">=", "and", "or"),
        tie("expression"),
      )
      .map(([left, operator, right]) => `(${left} ${operator} ${right})`),
    fc
      .tuple(
        fc.constantFrom("number", "string", "not", "exists", "boolean", "uppercase", "round"),
        tie("expression"),
      )
      .map(([name, inner]) => `$${name}(${inner})`),
    fc
      .tuple(tie("expression"), tie("expression"), tie("expression"))
      .map(([a, b, c]) => `(${a} ? ${b} : ${c})`),
  ),
}));

test("expressions made of them agree on any data", async () => {
  const root = fc.record(
    { a: fc.jsonValue({ maxDepth: 1 }), b: fc.record({ c: fc.jsonValue({ maxDepth: 0 }) }), d: fc.string() },
    { requiredKeys: [] },
  );
  await fc.assert(
    fc.asyncProperty(tree.expression, root, async (source, data) => {
      await agrees(source, JSON.parse(JSON.stringify(data)) as Json, { index: 7 });
    }),
    { numRuns: 400 },
  );
});

test("a batch mixes what is evaluated here with what a thread evaluates, cell by cell", async () => {
  const rows = [
    { root: { a: 1, list: [1, 2] } },
    { root: { a: [{ n: 1 }, { n: 2 }] } },
    { root: { a: "x" } },
  ];
  const outcomes = await bound.evaluateBatch(["a", "a.n", "$sum(list)", "a + 1"], rows);
  assert.deepEqual(
    outcomes.map((row) => row.map((outcome) => (outcome.ok ? outcome.value : outcome.message))),
    [
      [1, undefined, 3, 2],
      [
        [{ n: 1 }, { n: 2 }],
        [1, 2],
        undefined,
        "expression `a + 1`: the left side of + must be a number (at character 3)",
      ],
      ["x", undefined, undefined, "expression `a + 1`: the left side of + must be a number (at character 3)"],
    ],
  );
});

test("nothing grows here: a long text, or one made of many, is left to a thread", () => {
  const plain = (source: string, root: Json) => compilePlain(source)?.({ root, own: undefined, bound: {} });
  const long = "x".repeat(60_000);
  assert.equal(plain("a & a", { a: long }), NEEDS_SANDBOX);
  assert.equal(plain("$uppercase(a)", { a: long + long }), NEEDS_SANDBOX);
  assert.equal(compilePlain(Array.from({ length: 300 }, () => "a").join(" & ")), null);
});
