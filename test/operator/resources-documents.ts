/** An account with a strategy and three Blueprints: one with a review that may be edited, a plain one, and one whose rules find errors. */
export const documents: readonly string[] = [
  "account: acme",
  "strategy: strat_acme\naccount: acme\nfields: [{ key: token, type: password }]\nlogin: { type: none }",
  `blueprint: list-it
account: acme
credentials: { it: { strategy: strat_acme } }
metadata: [{ name: po }]
nodes:
  - { id: data, type: input, refKey: data }
  - { id: list, type: parse, from: data, format: json }
  - { id: look, type: review, from: list, title: Look at it, editable: true }
  - { id: out, type: output, refKey: out, from: look }`,
  `blueprint: plain
account: acme
nodes:
  - { id: data, type: input, refKey: data }
  - { id: list, type: parse, from: data, format: json }
  - { id: out, type: output, refKey: out, from: list }`,
  `blueprint: checked
account: acme
nodes:
  - { id: data, type: input, refKey: data }
  - { id: list, type: parse, from: data, format: json }
  - { id: valid, type: validate, from: list, rules: [{ assert: n % 3 > 0, field: n, message: Not by three }] }
  - { id: gate, type: review, from: valid, title: Look at it, editable: true }
  - { id: out, type: output, refKey: out, from: gate }`,
];
