import assert from "node:assert/strict";
import { test } from "node:test";
import { BLUEPRINT, changed, known } from "./blueprint-document.ts";
import { problemsOf } from "./problems-of.ts";

test("a Blueprint with nothing wrong is accepted", () => assert.deepEqual(problemsOf(BLUEPRINT, known), []));

const RULES: readonly (readonly [rule: string, from: string, to: string, problems: readonly string[]])[] = [
  // The document
  [
    "unknown keys name the nearest one",
    "timeout: 10m",
    "timout: 10m",
    ["8:1 timout unknown key `timout`; did you mean `timeout`?"],
  ],
  [
    "durations have a unit",
    "timeout: 10m",
    "timeout: 10 minutes",
    ["8:10 timeout must be a duration like `500ms`, `30s`, `10m`, `2h` or `7d`"],
  ],
  ["durations are not zero", "timeout: 10m", "timeout: 0", ["8:10 timeout must be longer than 0"]],
  ["durations are not absurd", "timeout: 10m", "timeout: 900d", ["8:10 timeout must be at most 7d"]],
  [
    "the key has a format",
    "blueprint: invoices",
    "blueprint: my invoices",
    ["1:12 blueprint must be a key of letters, digits, `.`, `_` and `-`, at most 128 characters"],
  ],
  [
    "text that YAML reads as a number",
    "timeout: 10m",
    "name: 2024",
    ["8:7 name must be text; put `2024` in quotes"],
  ],
  [
    "accounts exist",
    "account: acme",
    "account: acne",
    [
      "2:10 account there is no account `acne`; did you mean `acme`?",
      "4:23 credentials.portal.strategy the account has no strategy `strat_portal`; add its document",
    ],
  ],
  [
    "strategies exist in the account",
    "strategy: strat_portal",
    "strategy: strat_theirs",
    [
      "4:23 credentials.portal.strategy the account has no strategy `strat_theirs`; there are: `strat_portal`",
    ],
  ],
  [
    "strategy ids have a format",
    "strategy: strat_portal",
    "strategy: portal",
    [
      "4:23 credentials.portal.strategy must be an id that starts with `strat_`, then letters, digits, `_` and `-`",
      "4:23 credentials.portal.strategy the account has no strategy `portal`; there are: `strat_portal`",
    ],
  ],
  [
    "slot names have a format",
    "  portal: {",
    '  "my portal": {',
    [
      '4:3 credentials["my portal"] must be a slot name: letters, digits, `_` and `-`, beginning with a letter',
      "13:17 nodes[1].credential there is no credential slot `portal`; there are: `my portal`",
    ],
  ],
  [
    "hosts are origins",
    "hosts: [https://rates.example]",
    "hosts: [https://rates.example/]",
    [
      "7:9 hosts[0] must be scheme, host and port only; write `https://rates.example`",
      "20:21 nodes[2].request.url `https://rates.example` is not among the Blueprint's own `hosts`; add it there, or name a credential slot",
    ],
  ],
  // Metadata and inputs
  [
    "metadata names are unique",
    "  - { name: purchase_order, required: true }",
    "  - { name: a }\n  - { name: a }",
    ["7:13 metadata[1].name another metadata item has the name `a` already; choose another one"],
  ],
  [
    "metadata names are not reserved",
    "name: purchase_order",
    "name: credential_ids",
    ["6:13 metadata[0].name `credential_ids` is a reserved key of the trigger; choose another name"],
  ],
  [
    "refKeys are not reserved",
    "refKey: period",
    "refKey: run_name",
    [
      "10:40 nodes[0].refKey `run_name` is a reserved key of the trigger; choose another name",
      "16:51 nodes[1].request.query.from no INPUT has the refKey `period`; there are: `run_name`",
    ],
  ],
  [
    "refKeys and metadata names don't collide",
    "name: purchase_order",
    "name: period",
    ["10:40 nodes[0].refKey a metadata item has the name `period` already; choose another refKey"],
  ],
  [
    "refKeys are unique",
    "  - id: list\n",
    "  - { id: again, type: input, refKey: period }\n  - id: list\n",
    ["11:39 nodes[1].refKey another input has the refKey `period` already; choose another one"],
  ],
  [
    "JSON Schemas of inputs compile",
    "accepts: json }",
    "schema: { type: strnig } }",
    ["10:56 nodes[0].schema not a JSON Schema (2020-12): /type must be equal to one of the allowed values"],
  ],
  // Nodes
  [
    "ids are unique",
    "- { id: rate,",
    "- { id: rates,",
    ["21:11 nodes[3].id another node has the id `rates` already; choose another one"],
  ],
  [
    "ids have a format",
    "id: period,",
    "id: Period,",
    ["10:11 nodes[0].id must be a name of lower-case letters, digits and `_` that begins with a letter"],
  ],
  [
    "ids are required",
    "{ id: period, type",
    "{ type",
    ["10:5 nodes[0] the key `id` is missing (the node's name in other nodes and expressions); add it"],
  ],
  [
    "types are required",
    "type: input, ",
    "",
    [
      "10:5 nodes[0] the key `type` is missing (the type of the node); add it",
      "16:51 nodes[1].request.query.from no INPUT has the refKey `period`",
    ],
  ],
  [
    "unknown types name the nearest one",
    "type: validate",
    "type: valdate",
    ["27:11 nodes[5].type unknown node type `valdate`; did you mean `validate`?"],
  ],
  [
    "unknown keys of a node name the nearest one",
    "    records: items",
    "    recrods: items",
    [
      "17:5 nodes[1].recrods unknown key `recrods`; did you mean `records`?",
      "24:11 nodes[4].from the node `list` outputs a value, and `map` reads records; put a node of type `parse` between them",
    ],
  ],
  [
    "common keys are known too",
    "    milestone: reading",
    "    milstone: reading",
    ["14:5 nodes[1].milstone unknown key `milstone`; did you mean `milestone`?"],
  ],
  [
    "a throttle says per what time",
    "    records: items",
    "    records: items\n    throttle: { requests: 1, per: soon }",
    ["18:35 nodes[1].throttle.per `per` is a duration from 1ms to 1h, e.g. 1s"],
  ],
  [
    "required keys of a node",
    "    request: { url: https://rates.example/today }",
    "    name: Rates",
    ["18:5 nodes[2] the key `request` is missing (The request); add it"],
  ],
  [
    "milestones are not built-in steps",
    "milestone: reading",
    "milestone: running",
    ["14:16 nodes[1].milestone `running` is a built-in progress step; choose another name"],
  ],
  [
    "milestones have a format",
    "milestone: reading",
    "milestone: Reading it",
    [
      "14:16 nodes[1].milestone must be a name of lower-case letters, digits and `_` that begins with a letter",
    ],
  ],
  [
    "retries are bounded",
    "attempts: 3,",
    "attempts: 300,",
    ["15:24 nodes[1].retry.attempts must be at most 20"],
  ],
  [
    "retries wait longer and longer",
    "initial: 1s",
    "initial: 1m",
    ["15:12 nodes[1].retry `initial` is longer than `max` (default 5s); raise `max`"],
  ],
  [
    "nodes are not empty",
    BLUEPRINT.slice(BLUEPRINT.indexOf("nodes:")),
    "nodes: []\n",
    ["9:8 nodes must not be empty; list at least one"],
  ],
];

for (const [rule, from, to, problems] of RULES) {
  test(`apply checks: ${rule}`, () => assert.deepEqual(problemsOf(changed(from, to), known), problems));
}
