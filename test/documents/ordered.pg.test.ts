// docs/blueprints.md#sort: sort, dedupe and join, and every format of parse, in one Blueprint of a whole installation.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { pdf, textCell, cell, xlsx } from "../nodes/office-files.ts";
import { blueprint, dataOf, openBench, type Bench } from "./bench.ts";

let bench: Bench;

const NODES = `- { id: orders, type: input, refKey: orders }
- { id: book, type: input, refKey: book, accepts: file }
- { id: paper, type: input, refKey: paper, accepts: file }
- { id: feed, type: input, refKey: feed }
- { id: lines, type: parse, from: orders, format: ndjson }
- { id: customers, type: parse, from: book, format: xlsx, sheet: Customers }
- { id: amounts, type: parse, from: paper, format: pdf, rows: '^Total: (?<amount>[0-9.]+)$' }
- { id: notes, type: parse, from: feed, format: xml, rows: 'n\\:note', columns: { to: "@to", text: ":scope" } }
- { id: sorted, type: sort, from: lines, by: [customer, { expression: date, order: descending }] }
- { id: latest, type: dedupe, from: sorted, by: customer }
- { id: named, type: join, from: latest, with: customers, on: { left: customer, right: id }, kind: left }
- { id: noted, type: join, from: named, with: notes, when: $counts.total = 3, on: { left: customer, right: to } }
- { id: first, type: map, from: noted, fields: { customer: customer, name: name, date: date, text: text, of: $count($nodes.named), amounts: $nodes.amounts.amount } }
- { id: out, type: output, refKey: out, handles: { noted: { from: first }, named: { from: named } } }`;

before(async () => {
  bench = await openBench([blueprint("ordered", NODES)]);
});
after(() => bench?.[Symbol.asyncDispose]());

test("one run through all of them: what comes out, and a $counts that leaves `with` out", async () => {
  const form = new FormData();
  form.set(
    "orders",
    [
      { customer: 2, date: "2026-01-01" },
      { customer: 1, date: "2026-01-02" },
      { customer: 2, date: "2026-03-01" },
      { customer: 3, date: "2026-02-01" },
    ]
      .map((order) => JSON.stringify(order))
      .join("\n"),
  );
  const rows = [
    textCell("A1", "id") + textCell("B1", "name"),
    cell("A2", 1) + textCell("B2", "One"),
    cell("A3", 2) + textCell("B3", "Two"),
  ];
  form.set("book", new File([new Uint8Array(xlsx({ Other: [], Customers: rows }))], "book.xlsx"));
  form.set("paper", new File([new Uint8Array(pdf([["Total: 12.50"], ["Total: 3"]]))], "paper.pdf"));
  form.set("feed", '<n:notes xmlns:n="urn:n"><n:note to="x">no</n:note></n:notes>');
  const accepted = await bench.trigger("ordered", form);
  assert.equal(accepted.status, 202, accepted.text);
  const run = await bench.ended(accepted.body.id);
  assert.equal(run.status.status, "completed", run.detail ?? "");
  assert.deepEqual(dataOf(run, "out.named"), [
    { customer: 1, date: "2026-01-02", id: 1, name: "One" },
    { customer: 2, date: "2026-03-01", id: 2, name: "Two" },
    { customer: 3, date: "2026-02-01" },
  ]);
  // No note is to a number: an inner join gives nothing.
  assert.deepEqual(dataOf(run, "out.noted"), []);
});

test("a damaged file fails the run at its node, and the operator reads why", async () => {
  const form = new FormData();
  form.set("orders", "{}");
  form.set("book", new File(["no spreadsheet"], "book.xlsx"));
  const accepted = await bench.trigger("ordered", form);
  assert.equal(accepted.status, 202, accepted.text);
  const run = await bench.ended(accepted.body.id);
  assert.equal(run.status.status, "failed");
  assert.equal(run.detail, "Node customers: The file: the XLSX is not a spreadsheet, or is damaged.");
});

test("a `with` that is no node, gives no records, or closes a circle is refused by name and place", async () => {
  const wrong = (key: string, rest: string) =>
    blueprint(
      key,
      `- { id: word, type: input, refKey: word }\n- { id: list, type: parse, from: word, format: ndjson }\n${rest}\n- { id: out, type: output, refKey: out, from: list }`,
    );
  const problems = await bench.refusals(
    wrong("a", "- { id: j, type: join, from: list, with: lists, on: a }"),
    wrong("b", "- { id: j, type: join, from: list, with: word, on: a }"),
    wrong("c", "- { id: j, type: join, from: list, with: j, on: a }"),
    wrong("d", "- { id: s, type: sort, from: list, by: [a, { expression: $credential.token }] }"),
  );
  assert.deepEqual(
    problems.map((line) => line.replace(/^\d+:\d+ /, "")),
    [
      "nodes[2].with there is no node `lists`; did you mean `list`?",
      "nodes[2].with the node `word` outputs a value, and `join` reads records; put a node of type `parse` between them",
      "nodes[2] the node `j` reads itself; name another node",
      "nodes[2].by[1].expression secrets are never in scope in a Blueprint; only a strategy's `login` sees `$credential`",
    ],
  );
});
