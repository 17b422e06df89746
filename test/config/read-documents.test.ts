import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readDocuments } from "#actions/config/read-documents.ts";
import { formatProblem } from "#domain/config-problem.ts";

const read = (text: string) => {
  const { documents, problems } = readDocuments([{ file: "f", text }]);
  return { documents, values: documents.map(({ value }) => value), problems: problems.map(formatProblem) };
};

test("several documents of a file are read, and empty ones are skipped", () => {
  const { values, problems } = read("# only a comment\n---\na: 1\n---\nb: [x, {c: null}]\n---\n");
  assert.deepEqual(values, [{ a: 1 }, { b: ["x", { c: null }] }]);
  assert.deepEqual(problems, []);
});

test("each document has its own text, with the comments before it, in it and after it", () => {
  const { documents } = read("# first\n---\na: 1 # one\n# end\n---\n# second\nb: 2\n...\n---\nc: |\n  ---\n");
  assert.deepEqual(
    documents.map(({ text }) => text),
    ["# first\n---\na: 1 # one\n# end\n", "# second\nb: 2\n...\n", "c: |\n  ---\n"],
  );
  for (const { text, value } of documents) assert.deepEqual(read(text).values, [value]);
});

test("JSON is read too, indented with tabs as well", () => {
  assert.deepEqual(read('{\n\t"account": "acme",\n\t"list": [1,\n\t\t2.5e3]\n}\n').values, [
    { account: "acme", list: [1, 2500] },
  ]);
});

test("YAML 1.2: no, on and dates are text", () => {
  assert.deepEqual(read("a: no\nb: on\nc: 2020-01-01\nd: 0o17\ne: true\n").values, [
    { a: "no", b: "on", c: "2020-01-01", d: 15, e: true },
  ]);
});

test("keys are text whatever they look like", () => {
  assert.deepEqual(read("200: ok\ntrue: t\n").values, [{ 200: "ok", true: "t" }]);
});

test("a place in a document has a line and a column: of the key, or of its value", () => {
  const [document] = read("a:\n  - b: 1\n    c: {d: x}\n  - &anchor {e: 2}\n  - *anchor\nempty:\n").documents;
  assert.ok(document);
  assert.deepEqual(document.position(["a", 0, "c", "d"]), { line: 3, column: 12 });
  assert.deepEqual(document.position(["a", 0, "c", "d"], "key"), { line: 3, column: 9 });
  assert.deepEqual(
    document.position(["a", 0, "missing"]),
    { line: 2, column: 5 },
    "what does not exist is where it belongs",
  );
  assert.deepEqual(document.position(["a", 2, "e"]), { line: 4, column: 17 }, "through an alias");
  assert.deepEqual(document.position(["empty"]), { line: 6, column: 1 });
  assert.deepEqual(document.position([]), { line: 1, column: 1 });
});

test("lines and columns survive CRLF and a byte order mark", () => {
  const [document] = read("\ufeffa: 1\r\nb:\r\n  c: 2\r\n").documents;
  assert.deepEqual(document?.position(["b", "c"]), { line: 3, column: 6 });
});

const REFUSED: readonly (readonly [name: string, text: string, problems: readonly string[]])[] = [
  ["a tab as indentation", "a:\n\tb: 1\n", ["f:2:1 a tab can't indent YAML; use spaces"]],
  [
    "keys that stand twice, all of them",
    "a: 1\nb: {c: 1, c: 2}\na: 2\n",
    ["f:2:11 b.c the key `c` occurs twice; remove one", "f:3:1 a the key `a` occurs twice; remove one"],
  ],
  [
    "a list as a document",
    "- a\n",
    ["f:1:1 a document must have keys; the first one is `account`, `strategy` or `blueprint`"],
  ],
  [
    "text as a document",
    "hello\n",
    ["f:1:1 a document must have keys; the first one is `account`, `strategy` or `blueprint`"],
  ],
  [
    "an expression without quotes",
    "url: {{ $x }}\n",
    ['f:1:7 an expression in {{ }} must be in quotes: "{{ … }}"'],
  ],
  ["a list as a key", "? [a]\n: b\n", ["f:1:3 a key must be text"]],
  [
    "`__proto__` as a key",
    "a: {__proto__: {b: 1}}\n",
    ["f:1:5 a.__proto__ the key `__proto__` can't be used; choose another name"],
  ],
  [
    "an alias without an anchor",
    "a: *b\n",
    ["f:1:4 a the alias `*b` has no anchor before it; put text that begins with * in quotes"],
  ],
  ["an alias to what holds it", "a: &x [*x]\n", ["f:1:8 nested deeper than 64 levels"]],
  [
    "a number that is none in JSON",
    "a: .nan\n",
    ["f:1:4 a `.nan` is not a JSON number; put it in quotes if it is text"],
  ],
  [
    "a number that would lose digits",
    "a: 9007199254740993\n",
    ["f:1:4 a the number `9007199254740993` is too large to be kept exactly; put it in quotes"],
  ],
  ["U+0000", 'a: "\\0"\n', ["f:1:4 a the text contains U+0000 or half a surrogate pair; remove it"]],
  [
    "half a surrogate pair",
    'a: "\\ud800"\n',
    ["f:1:4 a the text contains U+0000 or half a surrogate pair; remove it"],
  ],
  ["text that never ends", 'a: "x\nb: 1\n', ['f:3:1 YAML syntax: Missing closing "quote']],
];

for (const [name, text, problems] of REFUSED) {
  test(`${name} is refused, with its place and a remedy`, () =>
    assert.deepEqual(read(text).problems, problems));
}

test("tags are refused, those of other languages too", () => {
  const { values, problems } = read("a: !!js/function 'x'\nb: !!binary aGk=\nc: !!set {d}\n");
  assert.deepEqual(values, []);
  assert.deepEqual(
    problems.map((problem) => problem.slice(0, 32)),
    [
      "f:1:4 tags are not supported: Un",
      "f:2:4 tags are not supported: Un",
      "f:3:4 tags are not supported: Un",
    ],
  );
});

test("an alias bomb is refused before it is expanded", () => {
  const names = Array.from("abcdefghij");
  const lines = names.map(
    (name, index) =>
      `${name}: &${name} [${Array(9)
        .fill(index === 0 ? "x" : `*${names[index - 1]}`)
        .join(", ")}]`,
  );
  const { values, problems } = read(lines.join("\n"));
  assert.deepEqual(values, []);
  assert.equal(problems.length, 1);
  assert.match(problems[0] ?? "", /expands to more than 250000 values; use fewer aliases$/);
});

const HOSTILE: readonly (readonly [name: string, text: string])[] = [
  ["100,000 open brackets", `a: ${"[".repeat(100_000)}`],
  ["100,000 nested lists", `a: ${"[".repeat(100_000)}${"]".repeat(100_000)}`],
  ["200,000 nested block lists", "- ".repeat(200_000)],
  ["50,000 nested maps", "{a: ".repeat(50_000)],
  ["100,000 explicit keys", "? ".repeat(100_000)],
  ["240,000 aliases", `a: &x 1\nb: [${"*x ,".repeat(240_000)}1]`],
  ["a megabyte and more of text", `a: ${"x".repeat(1_100_000)}`],
];

for (const [name, text] of HOSTILE) {
  test(`${name} give a problem, never a throw, and no document`, () => {
    const cpuBefore = process.threadCpuUsage();
    const { values, problems } = read(text);
    assertBounded(cpuBefore);
    assert.deepEqual(values, []);
    assert.ok(problems.length > 0);
    assert.ok(problems.every((problem) => problem.length < 400));
  });
}

/** The longest takes 1.2 s. */
function assertBounded(before: NodeJS.CpuUsage): void {
  const { user, system } = process.threadCpuUsage(before);
  assert.ok(user + system < 10e6, `${user + system} µs of CPU time`);
}

test("100,000 keys and 100,000 documents are read in bounded time", () => {
  const cpuBefore = process.threadCpuUsage();
  const keys = Array.from({ length: 100_000 }, (_, index) => `k${index}:`).join("\n");
  assert.equal(Object.keys(read(keys).values[0] ?? {}).length, 100_000);
  assert.deepEqual(read("---\n".repeat(100_000)), { documents: [], values: [], problems: [] });
  assertBounded(cpuBefore);
});

test("no text makes the reader throw", () => {
  const piece = fc.constantFrom(
    "a",
    ":",
    " ",
    "\n",
    "- ",
    "{",
    "}",
    "[",
    "]",
    "&x ",
    "*x",
    "!t ",
    '"',
    "'",
    "|",
    ">",
    "#",
    "?",
    "\t",
    "---\n",
    "%",
    "{{",
    ",",
    "~",
    "1",
    "<<",
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
      const { documents } = readDocuments([{ file: "f", text: pieces.join("") }]);
      for (const document of documents) document.position(["a", 0]);
    }),
    { numRuns: 3_000 },
  );
});
