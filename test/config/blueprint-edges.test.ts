import assert from "node:assert/strict";
import { test } from "node:test";
import { BLUEPRINT, changed, known } from "./blueprint-document.ts";
import { problemsOf } from "./problems-of.ts";

const RULES: readonly (readonly [rule: string, from: string, to: string, problems: readonly string[]])[] = [
  // Edges
  [
    "sources exist",
    "    from: lines\n",
    "    from: lins\n",
    ["28:11 nodes[5].from there is no node `lins`; did you mean `lines`?"],
  ],
  [
    "sources of handles exist",
    "valid: { from: checked, where: $isValid }",
    "valid: { from: chekced, where: $isValid }",
    ["34:22 nodes[6].handles.valid.from there is no node `chekced`; did you mean `checked`?"],
  ],
  [
    "only outputs have handles, and nothing reads them",
    "    from: lines\n",
    "    from: lines.valid\n",
    ["28:11 nodes[5].from the node `lines` has no handles to read from; write `lines`"],
  ],
  [
    "a record node reads records",
    "    from: list\n",
    "    from: rates\n",
    [
      "24:11 nodes[4].from the node `rates` outputs a value, and `map` reads records; put a node of type `parse` between them",
    ],
  ],
  [
    "a parse reads a value",
    "from: rates, format",
    "from: list, format",
    ["21:36 nodes[3].from the node `list` outputs records, and `parse` reads a value"],
  ],
  [
    "an output can't be read",
    "    from: lines\n",
    "    from: out\n",
    [
      "26:5 nodes[5] the nodes depend on each other in a cycle: `checked` reads `out` reads `checked`; remove one of these edges",
      "28:11 nodes[5].from the node `out` is an output and can't be read from; name the node that it reads",
    ],
  ],
  [
    "from is required where a node reads",
    "    from: list\n",
    "",
    ["22:5 nodes[4] a node of type `map` needs `from`: the id of the node whose records it reads"],
  ],
  [
    "from is refused where a node reads nothing",
    "    credential: portal\n",
    "    credential: portal\n    from: lines\n",
    [
      "11:5 nodes[1] the nodes depend on each other in a cycle: `list` reads `lines` reads `list`; remove one of these edges",
      "14:5 nodes[1].from a node of type `http` takes no `from`; remove it",
    ],
  ],
  [
    "cycles through from",
    "    from: list\n",
    "    from: [list, checked]\n",
    [
      "22:5 nodes[4] the nodes depend on each other in a cycle: `lines` reads `checked` reads `lines`; remove one of these edges",
    ],
  ],
  [
    "cycles through $nodes",
    "total: $number(total)",
    "total: $nodes.checked.total",
    [
      "22:5 nodes[4] the nodes depend on each other in a cycle: `lines` reads `checked` reads `lines`; remove one of these edges",
    ],
  ],
  [
    "a node can't read itself",
    "    from: list\n",
    "    from: lines\n",
    ["22:5 nodes[4] the node `lines` reads itself; name another node"],
  ],
  [
    "there is an output",
    "  - id: out\n    type: output\n    refKey: invoices\n    handles:\n      valid: { from: checked, where: $isValid }\n      invalid: { from: checked, where: $not($isValid) }\n",
    "",
    ["9:1 nodes there is no output node; add one, as in `{ id: out, type: output, refKey: items, from: … }`"],
  ],
  [
    "output refKeys are unique",
    "  - id: out\n",
    "  - { id: more, type: output, refKey: invoices, from: list }\n  - id: out\n",
    ["33:13 nodes[7].refKey another output has the refKey `invoices` already; choose another one"],
  ],
  [
    "output refKeys have no dots",
    "refKey: invoices",
    "refKey: a.b",
    ["32:13 nodes[6].refKey must match the pattern `^[^.\\u0000-\\u001f]+$`"],
  ],
  [
    "handle keys have no dots",
    "      valid: {",
    "      va.lid: {",
    ['34:15 nodes[6].handles["va.lid"] a handle\'s key must have 1 to 255 characters and no dot'],
  ],
  // Credentials and hosts
  [
    "slots exist",
    "credential: portal",
    "credential: portl",
    ["13:17 nodes[1].credential there is no credential slot `portl`; did you mean `portal`?"],
  ],
  [
    "only nodes that send take a credential",
    "    type: map",
    "    type: map\n    credential: portal",
    ["24:5 nodes[4].credential a node of type `map` uses no credential; remove it"],
  ],
  [
    "absolute URLs stay in the strategy's hosts",
    "url: /api/invoices",
    "url: https://evil.example/api",
    [
      "16:21 nodes[1].request.url `https://evil.example` is not among the `hosts` of the strategy `strat_portal`; they are `https://portal.example`; write a path like `/api/items`, or add the origin there",
    ],
  ],
  [
    "another port is another origin",
    "url: /api/invoices",
    "url: https://portal.example:8443/api",
    [
      "16:21 nodes[1].request.url `https://portal.example:8443` is not among the `hosts` of the strategy `strat_portal`; they are `https://portal.example`; write a path like `/api/items`, or add the origin there",
    ],
  ],
  [
    "an expression does not hide another host",
    "url: /api/invoices",
    'url: "https://evil.example/{{ $inputs.period.id }}"',
    [
      "16:21 nodes[1].request.url `https://evil.example` is not among the `hosts` of the strategy `strat_portal`; they are `https://portal.example`; write a path like `/api/items`, or add the origin there",
    ],
  ],
  [
    "without a credential a URL is absolute",
    "url: https://rates.example/today",
    "url: /today",
    [
      "20:21 nodes[2].request.url a node without a `credential` needs an absolute URL; write the origin too, or name a credential slot",
    ],
  ],
  [
    "without a credential a URL is in the Blueprint's hosts",
    "url: https://rates.example/today",
    "url: https://other.example/",
    [
      "20:21 nodes[2].request.url `https://other.example` is not among the Blueprint's own `hosts`; add it there, or name a credential slot",
    ],
  ],
  // Expressions
  [
    "expressions compile",
    "number: number",
    "number: number +",
    [
      "25:23 nodes[4].fields.number the expression doesn't compile: Unexpected end of expression (`number +`)",
    ],
  ],
  [
    "templates compile",
    "$inputs.period.from",
    "$inputs.period.from +",
    [
      "16:51 nodes[1].request.query.from the expression doesn't compile: Unexpected end of expression (`$inputs.period.from +`)",
    ],
  ],
  [
    "regular expressions are RE2's",
    "number: number",
    'number: "$match(number, /(?=a)/)"',
    [
      "25:23 nodes[4].fields.number the expression has a regular expression that RE2 doesn't support (no look-around, no back-references) (`$match(number, /(?=a)/)`)",
    ],
  ],
  [
    "secrets are never in scope in a Blueprint",
    "$inputs.period.from",
    "$credential.password",
    [
      "16:51 nodes[1].request.query.from secrets are never in scope in a Blueprint; only a strategy's `login` sees `$credential`",
    ],
  ],
  [
    "… not in a per-record expression either",
    "number: number",
    "number: $credential.password",
    [
      "25:23 nodes[4].fields.number secrets are never in scope in a Blueprint; only a strategy's `login` sees `$credential`",
    ],
  ],
  [
    "unknown inputs",
    "$inputs.period.from",
    "$inputs.perido.from",
    ["16:51 nodes[1].request.query.from no INPUT has the refKey `perido`; did you mean `period`?"],
  ],
  [
    "unknown metadata",
    "$inputs.period.from",
    "$metadata.purchase_oder",
    [
      "16:51 nodes[1].request.query.from no metadata item has the name `purchase_oder`; did you mean `purchase_order`?",
    ],
  ],
  [
    "unknown nodes",
    "$inputs.period.from",
    "$nodes.rat.x",
    ["16:51 nodes[1].request.query.from there is no node `rat`; did you mean `rate`?"],
  ],
  [
    "$nodes has only records",
    "$inputs.period.from",
    "$nodes.period.from",
    [
      "16:51 nodes[1].request.query.from the node `period` outputs a value, and `$nodes` has only records; use `$inputs.<refKey>` for an INPUT",
    ],
  ],
  [
    "$nodes names a node",
    "$inputs.period.from",
    "$lookup($nodes, 'rate')",
    [
      "16:51 nodes[1].request.query.from `$nodes` must name a node, as in `$nodes.<node id>`; the order of the nodes depends on it",
    ],
  ],
  [
    "unknown parts of $run",
    "$inputs.period.from",
    "$run.nam",
    ["16:51 nodes[1].request.query.from `$run` has no `nam`; did you mean `name`?"],
  ],
  [
    "unknown variables",
    "$inputs.period.from",
    "$input.period.from",
    ["16:51 nodes[1].request.query.from unknown variable `$input`; did you mean `$inputs`?"],
  ],
  [
    "unknown functions",
    "$number(total)",
    "$numbr(total)",
    [
      "25:38 nodes[4].fields.total unknown variable `$numbr`; here there are: `$inputs`, `$metadata`, `$run`, `$nodes`, `$index`, `$isValid`, `$errors`",
    ],
  ],
  [
    "record variables exist only per record",
    "$inputs.period.from",
    "$isValid",
    ["16:51 nodes[1].request.query.from `$isValid` exists only where a node works per record"],
  ],
  [
    "$counts exists only in when",
    "number: number",
    "number: $counts.total",
    ["25:23 nodes[4].fields.number `$counts` exists only in `when`"],
  ],
  [
    "unknown parts of $counts",
    "    from: lines\n",
    "    from: lines\n    when: $counts.wrong > 0\n",
    ["29:11 nodes[5].when `$counts` has no `wrong`; it has: `total`, `valid`, `invalid`"],
  ],
  [
    "$counts needs records to count",
    "    milestone: reading",
    "    when: $counts.total > 0",
    ["14:11 nodes[1].when `$counts` counts the records of the node's `from`, and this node reads none"],
  ],
  [
    "when is an expression, not a constant of YAML",
    "    milestone: reading",
    "    when: true",
    ["14:11 nodes[1].when must be text; put `true` in quotes"],
  ],
];

for (const [rule, from, to, problems] of RULES) {
  test(`apply checks: ${rule}`, () => assert.deepEqual(problemsOf(changed(from, to), known), problems));
}

const ACCEPTED: readonly (readonly [what: string, from: string, to: string])[] = [
  [
    "a condition on the counts of its source",
    "    from: lines\n",
    "    from: lines\n    when: $counts.invalid > 0 and $exists($inputs.period)\n",
  ],
  [
    "an expression for a whole URL: the egress gate looks at it",
    "url: /api/invoices",
    'url: "{{ $inputs.period.url }}"',
  ],
  [
    "an expression in the path of a URL",
    "url: https://rates.example/today",
    'url: "https://rates.example/{{ $run.key }}"',
  ],
  [
    "variables that an expression binds itself",
    "number: number",
    'number: "($double := function($x) { $x * 2 }; $double(number))"',
  ],
  ["the records of another node", "total: $number(total)", 'total: "$number(total) * $nodes.rate[0].value"'],
];

for (const [what, from, to] of ACCEPTED) {
  test(`apply accepts: ${what}`, () => assert.deepEqual(problemsOf(changed(from, to), known), []));
}

test("whether a request may have a body is not asked of a method that is refused", () => {
  const text = BLUEPRINT.replace(
    "request: { url: https://rates.example/today }",
    "request: { method: PROPFINDX, url: https://rates.example/today, text: x }",
  );
  const problems = problemsOf(text, known);
  assert.equal(problems.length, 1, problems.join("\n"));
  assert.match(problems[0] ?? "", /nodes\[2\]\.request\.method must be one of `GET`/);
});
