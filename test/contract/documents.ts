/** A credential without a login, and a Blueprint that works on its inputs alone: no other system is needed. */
export const DOCUMENTS = [
  `account: acme
allowed_origins: [https://app.example.com]`,
  `strategy: strat_note
account: acme
name: Note
fields: [{ key: note, label: Note, type: text }]
login: { type: none }`,
  `blueprint: order-check
account: acme
name: Order check
credentials: { note: { strategy: strat_note } }
metadata:
  - { name: purchase_order, required: true }
  - { name: cost_center }
nodes:
  - { id: period, type: input, refKey: period, accepts: json, schema: { type: object, required: [from], properties: { from: { type: string } } } }
  - { id: order, type: input, refKey: order_file, accepts: file, default: "sku,amount\\nA-1,3\\nB-2,-1\\n" }
  - { id: rows, type: parse, from: order, format: csv }
  - id: lines
    type: map
    from: rows
    fields: { sku: sku, amount: $number(amount) }
  - id: checked
    type: validate
    from: lines
    rules: [{ assert: amount > 0, field: amount, message: The amount is not positive }]
  - { id: out, type: output, refKey: lines, from: checked }`,
  `blueprint: strict-check
account: acme
nodes:
  - { id: order, type: input, refKey: order_file, accepts: text, required: true }
  - { id: rows, type: parse, from: order, format: csv }
  - id: checked
    type: validate
    from: rows
    on_invalid: fail
    rules: [{ assert: $number(amount) > 0 }]
  - { id: out, type: output, refKey: lines, from: checked }`,
  "account: other",
  `account: hasty
rate_limit: { per_second: 1, burst: 1 }`,
];

export const BLUEPRINT = "order-check";
export const STRATEGY = "strat_note";
