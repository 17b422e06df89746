// What is no mistake and yet leaves something to chance: printed, and applied all the same.
import assert from "node:assert/strict";
import { test } from "node:test";
import { validateConfig } from "#actions/config/apply-config.ts";
import { formatProblem } from "#domain/config-problem.ts";

function warningsOf(text: string): readonly string[] {
  const { checked, problems } = validateConfig([{ file: "f", text }], { anyAccount: true });
  assert.deepEqual(problems, []);
  return checked.flatMap(({ warnings }) => warnings).map((each) => formatProblem(each).slice("f:".length));
}

const strategy = (login: string): string => `strategy: strat_it
account: acme
hosts: [https://portal.example.com]
fields: [{ key: word, type: password }]
login: ${login}`;

const STEPS = 'steps: [{ request: { method: POST, url: /in, form: { w: "{{ $credential.word }}" } } }]';

const LOGINS: readonly (readonly [name: string, login: string, warnings: readonly RegExp[]])[] = [
  [
    "that can't fail",
    `{ type: http, ${STEPS} }`,
    [/^5:29 login\.steps any page with status 200 counts as logged in.*add a `check`/],
  ],
  ["with an expectation", `{ type: http, ${STEPS.replace("} } }]", "} }, expect: { url: /home } }]")} }`, []],
  [
    "with something to find",
    `{ type: http, ${STEPS.replace("} } }]", "} }, extract: { t: { json: t } } }]")} }`,
    [],
  ],
  [
    "that may find nothing",
    `{ type: http, ${STEPS.replace("} } }]", "} }, extract: { t: { json: t, required: false } } }]")} }`,
    [/any page with status 200/],
  ],
  [
    "that is kept without a check",
    `{ type: http, cache: 1h, ${STEPS.replace("} } }]", "} }, expect: { url: /home } }]")} }`,
    [/^5:8 login a cached session is used until it expires/],
  ],
  ["that is not kept", `{ type: http, cache: 0, check: { request: { url: /me } }, ${STEPS} }`, []],
  [
    "that sends nothing",
    "{ type: bearer, token: word }",
    [/^5:8 login this login sends nothing.*add a `check`/],
  ],
  ["that sends its check", "{ type: bearer, token: word, check: { request: { url: /me } } }", []],
  ["that is none", "{ type: none }", []],
];
for (const [name, login, warnings] of LOGINS) {
  test(`a login ${name}: ${warnings.length === 0 ? "no warning" : "a warning"}`, () => {
    const found = warningsOf(strategy(login));
    assert.equal(found.length, warnings.length, found.join("\n"));
    for (const [index, warning] of warnings.entries()) assert.match(found[index] ?? "", warning);
  });
}

const blueprint = (nodes: string): string => `blueprint: b
account: acme
hosts: [https://portal.example.com]
nodes:
  - { id: given, type: input, refKey: given, accepts: json }
${nodes}
  - { id: out, type: output, refKey: out, from: rows }`;
const ROWS = "  - { id: rows, type: parse, from: given, format: json }";
const READ = "{ id: extra, type: http, request: { url: https://portal.example.com/x }";

test("a read whose expression may find nothing is warned of, unless it says how many there must be or what the answer has", () => {
  const read = (keys: string): string => `  - ${READ.replace("extra", "rows")}${keys} }`;
  const found = warningsOf(blueprint(read(", records: 'items[n > 1]'")));
  assert.deepEqual(
    [found.length, /^6:\d+ nodes\[1\]\.records if this expression finds nothing/.test(found[0] ?? "")],
    [1, true],
    found[0],
  );
  for (const keys of [
    ", records: items",
    ", records: 'items[n > 1]', expect: { min_records: 0 }",
    ", records: 'items[n > 1]', expect: { text: items }",
  ])
    assert.deepEqual(warningsOf(blueprint(read(keys))), [], keys);
});

test("a write whose `expect` says what is right, and nothing what is wrong, is warned of", () => {
  const write = (keys: string): readonly string[] =>
    warningsOf(
      blueprint(
        `${ROWS}\n  - { id: sent, type: http, request: { method: POST, url: https://portal.example.com/x }${keys} }`,
      ),
    );
  const found = write(", expect: { text: filed }");
  assert.deepEqual(
    [found.length, /nodes\[2\]\.expect an answer that doesn't meet this/.test(found[0] ?? "")],
    [1, true],
    found[0],
  );
  for (const keys of [
    "",
    ", expect: { text: filed }, refused: { status: [409] }",
    ", expect: { text: filed }, verify: { request: { url: https://portal.example.com/y }, when: there }",
  ])
    assert.deepEqual(write(keys), [], keys);
});

test("a node whose records nothing reads is warned of by its place; what writes, asks or is read by an expression is not", () => {
  assert.deepEqual(warningsOf(blueprint(ROWS)), []);
  const unread = `${ROWS}\n  - ${READ}, records: items }\n  - { id: more, type: filter, from: rows, where: a > 1 }`;
  assert.deepEqual(warningsOf(blueprint(unread)), [
    "7:5 nodes[2] nothing reads the output of the node `extra`; name it in a `from`, or remove it",
    "8:5 nodes[3] nothing reads the output of the node `more`; name it in a `from`, or remove it",
  ]);
  const used = [
    `  - ${READ}, records: items }`,
    "  - { id: rows, type: map, from: parsed, fields: { n: $count($nodes.extra) } }",
    "  - { id: parsed, type: parse, from: given, format: json }",
    "  - { id: asked, type: review, from: rows, title: Look }",
  ];
  assert.deepEqual(warningsOf(blueprint(used.join("\n"))), []);
});
