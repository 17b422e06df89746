// docs/blueprints.md#nodes: `when` on every node type, with and without `$counts`; `from` lists, order, milestones and timeouts.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { cpuSecondsOf } from "../../bench/cpu.ts";
import { blueprint, dataOf, openBench, type Bench } from "./bench.ts";

let bench: Bench;

const GIVEN =
  "- { id: given, type: input, refKey: given, default: '[]' }\n- { id: list, type: parse, from: given, format: json }\n";
const MODE = "- { id: mode, type: input, refKey: mode, default: run }\n";
const IF = "when: $inputs.mode = 'run'";
const out = (from: string) => `\n- { id: out, type: output, refKey: out, from: ${from} }`;
const counted = (condition: string, rest: string) =>
  `${GIVEN}- { id: marked, type: validate, from: list, rules: [{ assert: ok }] }\n- { id: it, from: marked, when: ${condition}, ${rest} }`;

const CASES: Readonly<Record<string, string>> = {
  "when-input": `${MODE}- { id: given, type: input, refKey: given, ${IF} }\n- { id: list, type: parse, from: given, format: json }${out("list")}`,
  "when-parse": `${MODE}${GIVEN.replace("format: json", `format: json, ${IF}`)}${out("list")}`,
  "when-map": `${MODE}${GIVEN}- { id: it, type: map, from: list, fields: { a: a }, ${IF} }${out("it")}`,
  "when-filter": `${MODE}${GIVEN}- { id: it, type: filter, from: list, where: "true", ${IF} }${out("it")}`,
  "when-validate": `${MODE}${GIVEN}- { id: it, type: validate, from: list, rules: [{ assert: "true" }], ${IF} }${out("it")}`,
  "when-output": `${MODE}${GIVEN}- { id: out, type: output, refKey: out, from: list, ${IF} }`,
  "when-http": `${MODE}- { id: it, type: http, request: { url: "{TARGET}/list" }, records: $, ${IF} }${out("it")}`,
  "when-http-value": `${MODE}- { id: got, type: http, request: { url: "{TARGET}/list" }, ${IF} }\n- { id: it, type: parse, from: got, format: json }${out("it")}`,
  "when-nodes": `${GIVEN}- { id: it, type: http, when: $count($nodes.list) > 1, request: { url: "{TARGET}/list" }, records: $ }${out("[list, it]")}`,
  "when-metadata": `${GIVEN}- { id: it, type: map, from: list, when: $exists($metadata.po), fields: { a: a } }${out("it")}`,
  "when-text": `${GIVEN}- { id: it, type: map, from: list, when: $inputs.given, fields: { a: a } }${out("it")}`,
  "counts-map": `${counted("$counts.invalid > 0", "type: map, fields: { a: a }")}${out("it")}`,
  "counts-filter": `${counted("$counts.total = 2 and $counts.valid = 1", "type: filter, where: $isValid")}${out("it")}`,
  "counts-validate": `${counted("$counts.valid > 0", "type: validate, rules: [{ assert: a > 0 }]")}${out("it")}`,
  "counts-output": counted("$counts.invalid = 0", "type: output, refKey: out"),
  "counts-handles": `${GIVEN}- { id: out, type: output, refKey: out, when: $counts.total > 1, handles: { x: { from: list }, y: { from: list, where: a = 1 } } }`,
  "counts-http": `- { id: got, type: http, request: { url: "{TARGET}/list" }, records: $ }\n- { id: it, type: map, from: got, when: $counts.total = 2, fields: { a: a } }${out("it")}`,
  "counts-list": `${GIVEN}- { id: more, type: parse, from: given, format: json }\n- { id: it, type: map, from: [list, more], when: $counts.total = 4, fields: { a: a } }${out("it")}`,
  "counts-skipped": `${GIVEN}- { id: gone, type: map, from: list, when: "false", fields: { a: a } }\n- { id: it, type: map, from: [gone, list], when: $counts.total = 2, fields: { a: a } }${out("it")}`,
  order: `- { id: out, type: output, refKey: out, from: last }
- { id: last, type: map, from: second, fields: { a: a, seen: $nodes.first.a } }
- { id: second, type: http, milestone: second_page, request: { url: "{TARGET}/list", query: { after: "{{ $join($nodes.first.a) }}" } }, records: $ }
- { id: first, type: http, milestone: first_page, request: { url: "{TARGET}/first" }, records: $ }`,
  "map-timeout": `${GIVEN}- { id: it, type: map, from: list, timeout: 400ms, fields: { a: "$count([1..30000][$ % 7 = 3])" } }${out("it")}`,
  "map-milestone": `${GIVEN}- { id: it, type: map, from: list, milestone: adding_up, timeout: 20s, fields: { a: "$count([1..30000][$ % 7 = 3])" } }${out("it")}`,
};

before(async () => {
  const documents = Object.entries(CASES).map(([key, nodes]) =>
    blueprint(key, nodes, 'hosts: ["{TARGET}"]\nmetadata: [{ name: po }]'),
  );
  const computing = CASES["map-timeout"] ?? "";
  const slow = blueprint("run-timeout", computing.replace("timeout: 400ms, ", ""), "timeout: 600ms");
  const slowOutput = blueprint(
    "output-timeout",
    `${computing.replace("timeout: 400ms, ", "")}, timeout: 400ms }`.replace(" }, timeout", ", timeout"),
  );
  bench = await openBench([...documents, slow, slowOutput]);
  bench.target.on("GET /list", { json: [{ a: "x" }, { a: "y" }] });
  bench.target.on("GET /first", { json: [{ a: "p" }, { a: "q" }], delayMs: 150 });
});
after(() => bench?.[Symbol.asyncDispose]());

const GOOD = [
  { a: 1, ok: true },
  { a: 2, ok: true },
];
const MIXED = [
  { a: 1, ok: true },
  { a: 2, ok: false },
];
const counts = (run: Awaited<ReturnType<Bench["run"]>>) => {
  assert.equal(run.status.status, "completed", String(run.detail));
  return Object.fromEntries(
    Object.entries(run.results).map(([key, { totalRecords }]) => [key, totalRecords]),
  );
};

test("when false skips a node of any type, and what is downstream sees an empty set; when true it works", async () => {
  for (const type of ["input", "parse", "map", "filter", "validate", "output", "http", "http-value"]) {
    assert.deepEqual(counts(await bench.run(`when-${type}`, { given: GOOD })), { out: 2 }, type);
    const before = bench.target.all.length;
    assert.deepEqual(
      counts(await bench.run(`when-${type}`, { given: GOOD, mode: "skip" })),
      { out: 0 },
      type,
    );
    assert.equal(bench.target.all.length, before, `${type} sends nothing when it is skipped`);
  }
});

test("when reads $nodes and $metadata; what is neither true, false nor nothing fails the node", async () => {
  assert.deepEqual(counts(await bench.run("when-nodes", { given: GOOD })), { out: 4 });
  assert.deepEqual(counts(await bench.run("when-nodes", { given: [{}] })), { out: 1 });
  assert.deepEqual(counts(await bench.run("when-metadata", { given: GOOD })), { out: 0 });
  assert.deepEqual(counts(await bench.run("when-metadata", { given: GOOD, po: "" })), { out: 2 });
  const run = await bench.run("when-text", { given: GOOD });
  assert.deepEqual([run.status.status, run.kind], ["failed", "data"]);
  assert.match(String(run.detail), /^Node it: `when` must evaluate to true or false/);
});

test("$counts are those of the node's from, before it runs", async () => {
  const cases: readonly (readonly [key: string, mixed: number, good: number])[] = [
    ["counts-map", 2, 0],
    ["counts-filter", 1, 0],
    ["counts-validate", 2, 2],
    ["counts-output", 0, 2],
  ];
  for (const [key, mixed, good] of cases) {
    assert.deepEqual(counts(await bench.run(key, { given: MIXED })), { out: mixed }, key);
    assert.deepEqual(counts(await bench.run(key, { given: GOOD })), { out: good }, key);
  }
  assert.deepEqual(counts(await bench.run("counts-http")), { out: 2 });
  assert.deepEqual(counts(await bench.run("counts-list", { given: GOOD })), { out: 4 });
  assert.deepEqual(counts(await bench.run("counts-list", { given: [{}] })), { out: 0 });
  assert.deepEqual(counts(await bench.run("counts-skipped", { given: GOOD })), { out: 2 });
});

test("$counts of an output with handles are those of what its handles read", async () => {
  assert.deepEqual(counts(await bench.run("counts-handles", { given: GOOD })), { "out.x": 2, "out.y": 1 });
  assert.deepEqual(counts(await bench.run("counts-handles", { given: [{ a: 1 }] })), {
    "out.x": 0,
    "out.y": 0,
  });
});

test("nodes run by dependency, $nodes included, whatever order they are written in; milestones are shown", async () => {
  const run = await bench.run("order");
  assert.deepEqual(dataOf(run), [
    { a: "x", seen: ["p", "q"] },
    { a: "y", seen: ["p", "q"] },
  ]);
  assert.equal(bench.target.seen("GET /list").at(-1)?.query.get("after"), "pq");
  assert.ok(run.steps.includes("running/first_page"), run.steps.join(", "));
  assert.equal(run.steps.at(-1), "completed/completed");
  assert.ok(run.steps.every((step) => !step.includes("unknown")));
});

test("a milestone of a node without requests is shown while it works", async () => {
  const given = Array.from({ length: 15 }, () => ({}));
  const run = await bench.run("map-milestone", { given });
  assert.deepEqual(counts(run), { out: 15 });
  assert.ok(run.steps.includes("running/adding_up"), run.steps.join(", "));
});

test("a timeout ends a node, and a run, that only computes", async () => {
  // The service runs in this process.
  const { pid } = process;
  const given = Array.from({ length: 400 }, () => ({}));
  for (const [key, story] of [
    ["map-timeout", "Node it took longer than its timeout."],
    ["output-timeout", "Node out took longer than its timeout."],
    ["run-timeout", "The run took longer than its Blueprint's timeout."],
  ] as const) {
    const before = cpuSecondsOf([pid]);
    const run = await bench.run(key, { given });
    assert.deepEqual([run.kind, run.detail], ["timeout", story]);
    const seconds = cpuSecondsOf([pid]) - before;
    // To its end it would compute for more than ten. NaN where no /proc says it.
    assert.ok(!(seconds > 3), `${key} took ${seconds} s of CPU time`);
  }
});
