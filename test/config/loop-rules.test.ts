// A loop's steps are checked as nodes are: mistakes are named where they stand.
import assert from "node:assert/strict";
import { test } from "node:test";
import { known } from "./blueprint-document.ts";
import { check, problemsOf } from "./problems-of.ts";
import { warnOf } from "#actions/config/warn-of.ts";

const LOOP = `blueprint: ledger
account: acme
credentials:
  portal: { strategy: strat_portal }
hosts: [https://ledger.example]
nodes:
  - { id: given, type: input, refKey: given, accepts: file }
  - { id: list, type: http, credential: portal, request: { url: /api/invoices }, records: items }
  - id: booked
    type: loop
    for_each: list
    steps:
      - { id: open, type: http, credential: portal, request: { url: "/api/invoices/{{ number }}" }, records: $ }
      - { id: pdf, type: http, credential: portal, request: { url: "/pdf/{{ $record.number }}" }, save: file }
      - id: send
        type: http
        when: $steps.open.state = 'open' and $index < 100 and $isValid
        retry: { attempts: 2 }
        request:
          method: POST
          url: https://ledger.example/entries
          multipart: { invoice: { file: pdf }, terms: { file: given }, total: "{{ $steps.open.total }}", token: "{{ $token }}" }
        records: "entries.{ 'id': id, 'of': $record.number }"
        verify: { request: { url: "https://ledger.example/entries?t={{ $token }}" }, when: $count(found) > $index - $index }
      - { id: wait, type: http, credential: portal, request: { url: /job }, until: { when: "done", every: 10s, for: 1h } }
    gives: "{ 'number': number, 'entry': $steps.send.id, 'at': $index }"
  - { id: out, type: output, refKey: ledger, from: booked }
`;

function changed(from: string, to: string): string {
  assert.equal(LOOP.split(from).length, 2, `"${from}" stands once in the Blueprint`);
  return LOOP.replace(from, () => to);
}

test("a loop with nothing wrong is accepted, with nothing to warn of", () => {
  const { checked, problems } = check([{ file: "f", text: LOOP }], known);
  assert.deepEqual(problems, []);
  assert.deepEqual(
    checked.flatMap(({ kind, document }) => warnOf(kind, document)),
    [],
  );
});

const RULES: readonly (readonly [rule: string, from: string, to: string, problem: RegExp])[] = [
  [
    "the records exist",
    "for_each: list",
    "for_each: lists",
    /^11:15 nodes\[2\]\.for_each there is no node `lists`; did you mean `list`\?$/,
  ],
  [
    "they are records",
    "for_each: list",
    "for_each: given",
    /^11:15 nodes\[2\]\.for_each the node `given` outputs a value/,
  ],
  [
    "a loop takes no `from`",
    "for_each: list",
    "for_each: list\n    from: list",
    /nodes\[2\]\.from a node of type `loop` takes no `from`/,
  ],
  [
    "other types are refused by name",
    "{ id: wait, type: http,",
    "{ id: wait, type: review,",
    /^25:27 nodes\[2\]\.steps\[3\]\.type a step of a loop must be of type `http`, not `review`: a review covers/,
  ],
  [
    "a type that makes records too",
    "{ id: wait, type: http,",
    "{ id: wait, type: map,",
    /not `map`: transform records before the loop, after it, or in `gives`/,
  ],
  [
    "steps have ids of their own",
    "id: wait",
    "id: open",
    /^25:15 nodes\[2\]\.steps\[3\]\.id another step of the loop already has the id `open`/,
  ],
  [
    "and none of a node",
    "id: wait",
    "id: out",
    /^25:15 nodes\[2\]\.steps\[3\]\.id a node has the id `out` already/,
  ],
  [
    "`$steps` names a step",
    "$steps.open.state",
    "$steps.opened.state",
    /^17:15 nodes\[2\]\.steps\[2\]\.when the loop has no step `opened`; did you mean `open`\?$/,
  ],
  [
    "a step before",
    "$steps.open.state",
    "$steps.wait.state",
    /^17:15 .*the step `wait` has no output yet; only earlier steps have$/,
  ],
  ["not itself", "$steps.open.state", "$steps.send.state", /the step `send` has no output yet/],
  [
    "and one",
    "$steps.open.state = 'open'",
    "$exists($steps)",
    /`\$steps` must name a step, as in `\$steps\.<step id>`/,
  ],
  [
    "in `gives` too",
    "$steps.send.id",
    "$steps.sent.id",
    /^26:12 nodes\[2\]\.gives the loop has no step `sent`; did you mean `send`\?$/,
  ],
  [
    "`$steps` is of loops",
    "records: items }",
    "records: $steps.open }",
    /`\$steps` exists only in a loop: in its steps and in its `gives`/,
  ],
  [
    "`$token` is of writes",
    "/pdf/{{ $record.number }}",
    "/pdf/{{ $token }}",
    /^14:.*`\$token` exists only in writes/,
  ],
  [
    "`$counts` is of nodes",
    "$index < 100",
    "$counts.total < 100",
    /^17:15 .*`\$counts` exists only in `when`/,
  ],
  [
    "expressions are compiled",
    "$index < 100",
    "$index <",
    /^17:15 nodes\[2\]\.steps\[2\]\.when the expression/,
  ],
  ["nodes exist", "$index < 100", "$nodes.lists < 100", /there is no node `lists`/],
  [
    "files are given before",
    "invoice: { file: pdf }",
    "invoice: { file: wait }",
    /^22:.*multipart\.invoice\.file the step `wait` comes later; name an earlier one, or a node of the Blueprint$/,
  ],
  [
    "files are files",
    "invoice: { file: pdf }",
    "invoice: { file: open }",
    /the step `open` outputs records, but this key needs a file; add `save: file` to it/,
  ],
  [
    "files exist",
    "terms: { file: given }",
    "terms: { file: givn }",
    /there is no node `givn`; did you mean `given`\?/,
  ],
  [
    "slots exist",
    "{ id: wait, type: http, credential: portal,",
    "{ id: wait, type: http, credential: portl,",
    /^25:45 nodes\[2\]\.steps\[3\]\.credential there is no credential slot `portl`; did you mean `portal`\?$/,
  ],
  [
    "a loop has no credential of its own",
    "for_each: list",
    "for_each: list\n    credential: portal",
    /nodes\[2\]\.credential a node of type `loop` uses no credential; remove it/,
  ],
  [
    "hosts are listed",
    "url: https://ledger.example/entries",
    "url: https://other.example/entries",
    /^21:16 .*`https:\/\/other\.example` is not among the Blueprint's own `hosts`/,
  ],
  [
    "urls without a credential are whole",
    "url: https://ledger.example/entries",
    "url: /entries",
    /^21:16 .*a node without a `credential` needs an absolute URL/,
  ],
  [
    "no loop over records inside",
    "{ id: wait, type: http,",
    "{ id: wait, type: http, for_each: list,",
    /^25:\d+ nodes\[2\]\.steps\[3\]\.for_each unknown key `for_each`/,
  ],
  [
    "what `http` refuses",
    "save: file }",
    "save: file, records: $ }",
    /^14:\d+ nodes\[2\]\.steps\[1\] an http node has only one of `records`, `parse`, `extract` and `save`/,
  ],
  [
    "misspelled keys",
    "records: $ }",
    "record: $ }",
    /^13:\d+ nodes\[2\]\.steps\[0\]\.record unknown key `record`; did you mean `records`\?$/,
  ],
  [
    "waits of retries",
    "attempts: 2",
    "attempts: 2, initial: 9s",
    /nodes\[2\]\.steps\[2\]\.retry `initial` is longer than `max`/,
  ],
  [
    "there is a step",
    /steps:[^]*(?=    gives)/.exec(LOOP)?.[0] ?? "",
    "steps: []\n",
    /^12:12 nodes\[2\]\.steps must not be empty; list at least one$/,
  ],
];
for (const [rule, from, to, problem] of RULES) {
  test(rule, () => {
    const problems = problemsOf(changed(from, to), known);
    assert.ok(
      problems.some((each) => problem.test(each)),
      problems.join("\n"),
    );
  });
}

test("what a step leaves to chance is warned of where it stands", () => {
  const text = changed(
    '        verify: { request: { url: "https://ledger.example/entries?t={{ $token }}" }, when: $count(found) > $index - $index }',
    "        expect: { status: [201] }",
  );
  const { checked } = check([{ file: "f", text }], known);
  const warnings = checked.flatMap(({ kind, document }) => warnOf(kind, document));
  assert.deepEqual(
    warnings.map(({ path }) => path.join(".")),
    ["nodes.2.steps.2.expect"],
  );
});
