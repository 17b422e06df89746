// docs/decisions/0030: what is not built yet is refused by name and place, never accepted and ignored.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { blueprint, openBench, type Bench } from "./bench.ts";

let bench: Bench;

before(async () => {
  bench = await openBench([
    'strategy: strat_known\naccount: acme\nhosts: ["{TARGET}"]\nfields: [{ key: token, type: password }]\nlogin: { type: bearer, token: token }',
  ]);
});
after(() => bench?.[Symbol.asyncDispose]());

/** The problems of each document, without their lines: several documents are refused as one set. */
async function problemsOf(documents: readonly string[]): Promise<readonly string[]> {
  return (await bench.refusals(...documents)).map((line) => line.replace(/^\d+:\d+ /, ""));
}

test("every key of an http node that is not built, `$token` in a read, and the formats of parse", async () => {
  const http = (rest: string, request = "") =>
    `- { id: n, type: http, credential: it, request: { url: /x${request} }, ${rest} }`;
  const cases: readonly (readonly [node: string, at: string, says: RegExp])[] = [
    [http("save: text"), "nodes[1].save", /file/],
    [http("save: file, records: $"), "nodes[1]", /one of `records`, `parse`, `extract` and `save`/],
    [http("save: file, for_each: list, max_bytes: 20000000"), "nodes[1].max_bytes", /part of its record/],
    [http("save: file, effect: write"), "nodes[1].save", /the answer of a write is not a file/],
    [
      http("records: $", ', query: { t: "{{ $token }}" }'),
      "nodes[1].request.query.t",
      /`\$token` exists only in writes/,
    ],
    [http("parse: { format: docx }"), "nodes[1].parse.format", /must be one of/],
    [
      "- { id: n, type: parse, from: word, format: csv, sheet: one }",
      "nodes[1].sheet",
      /not a key of the format csv/,
    ],
    [
      "- { id: n, type: map, from: list.valid, fields: { a: a } }",
      "nodes[1].from",
      /no handles to read from/,
    ],
  ];
  const documents = cases.map(([node], index) =>
    blueprint(
      `case-${index}`,
      `- { id: word, type: input, refKey: word }\n${node}\n- { id: list, type: parse, from: word, format: json }\n- { id: out, type: output, refKey: out, from: list }`,
      "credentials: { it: { strategy: strat_known } }",
    ),
  );
  const problems = await problemsOf(documents);
  assert.equal(problems.length, cases.length, problems.join("\n"));
  for (const [index, [node, at, says]] of cases.entries()) {
    const [place, ...message] = String(problems[index]).split(" ");
    assert.equal(place, at, node);
    assert.match(message.join(" "), says, node);
  }
});

test("what could never work is refused too: variables that don't exist at a place, and an input that would wait for nodes", async () => {
  const node = (rest: string, index: number) =>
    blueprint(
      `wrong-${index}`,
      `- { id: word, type: input, refKey: word }\n- { id: list, type: parse, from: word, format: json }\n${rest}\n- { id: out, type: output, refKey: out, from: list }`,
      "credentials: { it: { strategy: strat_known } }",
    );
  const cases: readonly (readonly [string, string])[] = [
    [
      "- { id: n, type: map, from: list, fields: { a: $credential.token } }",
      "nodes[2].fields.a secrets are never in scope in a Blueprint; only a strategy's `login` sees `$credential`",
    ],
    [
      '- { id: n, type: http, credential: it, request: { url: "/x?t={{ $credential.token }}" }, records: $ }',
      "nodes[2].request.url secrets are never in scope in a Blueprint; only a strategy's `login` sees `$credential`",
    ],
    [
      "- { id: n, type: map, from: list, fields: { a: $inputs.words } }",
      "nodes[2].fields.a no INPUT has the refKey `words`; did you mean `word`?",
    ],
    [
      "- { id: n, type: map, from: list, fields: { a: $counts.total } }",
      "nodes[2].fields.a `$counts` exists only in `when`",
    ],
    [
      "- { id: n, type: http, credential: it, when: $isValid, request: { url: /x }, records: $ }",
      "nodes[2].when `$isValid` exists only where a node works per record",
    ],
    [
      "- { id: n, type: http, credential: it, when: $counts.total > 1, request: { url: /x }, records: $ }",
      "nodes[2].when `$counts` counts the records of the node's `from`, and this node reads none",
    ],
    [
      "- { id: n, type: input, refKey: n, when: $count($nodes.list) > 0 }",
      "nodes[2].when an input comes before all other nodes, so its `when` can't read `$nodes`; put the `when` on the node that reads it",
    ],
    [
      "- { id: n, type: http, credential: it, request: { url: https://elsewhere.example/x }, records: $ }",
      `nodes[2].request.url \`https://elsewhere.example\` is not among the \`hosts\` of the strategy \`strat_known\`; they are \`${bench.target.url}\`; write a path like \`/api/items\`, or add the origin there`,
    ],
  ];
  assert.deepEqual(
    await problemsOf(cases.map(([rest], index) => node(rest, index))),
    cases.map(([, problem]) => problem),
  );
});

test("one wrong document refuses the whole set, and nothing of it is kept", async () => {
  const good = blueprint(
    "good",
    "- { id: word, type: input, refKey: word }\n- { id: list, type: parse, from: word, format: json }\n- { id: out, type: output, refKey: out, from: list }",
  );
  assert.equal(
    (await bench.refusals(good, good.replace("good", "bad").replace("format: json", "format: docx"))).length,
    1,
  );
  assert.equal((await bench.trigger("good")).status, 404);
});
