// What runs are found by: the numbers of a text find every text that contains it, and its own characters decide.
import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "#domain/limits.ts";
import { gramsOf, searchLine, searchText } from "#domain/search-text.ts";

test("a name and metadata values are lines in lower case", () => {
  assert.equal(
    searchText("Invoices of ÖBB", { customer: " Müller\nSöhne ", empty: "" }),
    "invoices of öbb\nmüller söhne",
  );
  assert.equal(searchText(null, {}), "");
  assert.equal(searchText("a\0b", {}), "a b", "PostgreSQL stores no NUL");
  assert.equal(searchText("x".repeat(10_000), {}).length, limits.searchTextCharactersMax);
});

test("every part of a line has only numbers that the line has, and a part across two lines has others", () => {
  const text = searchText("Invoices of Hofbauer Logistik", { order: "PO-2026-117" });
  const all = new Set(gramsOf(text));
  for (const part of ["HOFBAUER", "of hof", "2026-1", "logistik"])
    assert.ok(
      gramsOf(searchLine(part)).every((gram) => all.has(gram)),
      part,
    );
  assert.ok(!gramsOf("kpo").every((gram) => all.has(gram)));
  assert.deepEqual(gramsOf("ab"), []);
});
