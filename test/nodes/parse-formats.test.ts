import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateSync } from "node:zlib";
import type { Json, JsonObject } from "#domain/json.ts";
import type { Value } from "#domain/value.ts";
import { zipRepeated } from "../packed-bytes.ts";
import { check, dataOf, fileValue, runNode } from "./node-context.ts";
import { cell, pdf, pdfOf, textCell, xlsx, zip } from "./office-files.ts";

const parse = async (
  config: JsonObject,
  value: Value | string | Buffer,
  signal?: AbortSignal,
): Promise<Json[]> => {
  const given: Value =
    typeof value === "string"
      ? { form: "text", text: value }
      : Buffer.isBuffer(value)
        ? fileValue(value, null, 65_536)
        : value;
  const { flow } = await runNode(
    { type: "parse", from: "x", ...config },
    { from: [{ kind: "value", value: given }], ...(signal && { signal }) },
  );
  return await dataOf(flow);
};
const fails = async (config: JsonObject, value: Value | string | Buffer, message: string) =>
  await assert.rejects(parse(config, value), { name: "NodeFailure", message });
const messages = (config: JsonObject) =>
  check({ type: "parse", from: "x", ...config }).map(({ path, message }) => `${path.join(".")}: ${message}`);

const NDJSON = { format: "ndjson" };

test("ndjson: an object a line, streamed; empty lines and a byte order mark don't count", async () => {
  assert.deepEqual(await parse(NDJSON, '\ufeff{"a":1}\r\n\n{"a":"ä","__proto__":2}'), [
    { a: 1 },
    JSON.parse('{"a":"ä","__proto__":2}'),
  ]);
  assert.deepEqual(await parse(NDJSON, fileValue(Buffer.from('{"a":"€"}\n{"a":2}\n'), null, 3)), [
    { a: "€" },
    { a: 2 },
  ]);
  assert.deepEqual(await parse(NDJSON, ""), []);
});

test("ndjson: what is no object is named by its line, without the data; rows before it have flowed", async () => {
  await fails(NDJSON, '{"a":1}\n\n{secret\n', "The value, line 3 is not JSON.");
  await fails(NDJSON, '{"a":1}\n["secret"]', "The value, line 2 is a list; every line must be an object.");
  await fails(
    NDJSON,
    Buffer.from([0xff, 0x0a]),
    "The file is not utf-8 text. If it is text in another charset, set `charset` of the format; a file that isn't text can't be parsed.",
  );
  await fails(
    NDJSON,
    `{"a":1}\n${"x".repeat(1_100_000)}`,
    "The value, line 2 is longer than 1000000 characters.",
  );
  const text = `${'{"n":1}\n'.repeat(1_200)}x\n`;
  const { flow } = await runNode(
    { type: "parse", from: "x", ...NDJSON },
    { from: [{ kind: "value", value: { form: "text", text } }] },
  );
  assert(flow?.kind === "records");
  const sizes: number[] = [];
  await assert.rejects(async () => {
    for await (const batch of flow.batches) sizes.push(batch.length);
  }, /line 1201 is not JSON/);
  assert.deepEqual(sizes, [500, 500]);
});

const XLSX = { format: "xlsx" };
const book = xlsx({
  Items: [
    textCell("A1", " no ") + textCell("B1", "total") + textCell("D1", "due"),
    textCell("A2", "007") + cell("B2", 12.5) + textCell("C2", "x") + cell("D2", 46_053, 's="1"'),
    "",
    cell("A4", 8) + cell("B4", 1, 't="b"') + cell("D4", 46_053.5, 's="1"'),
  ],
  "More &amp; more": [textCell("A1", "a"), cell("A2", 1)],
});

test("xlsx: the first row is the header; numbers stay numbers, dates are ISO texts, empty cells null, empty rows nothing", async () => {
  assert.deepEqual(await parse(XLSX, book), [
    { no: "007", total: 12.5, column_3: "x", due: "2026-01-31" },
    { no: 8, total: true, column_3: null, due: "2026-01-31T12:00:00" },
  ]);
  assert.deepEqual(await parse({ ...XLSX, sheet: 2 }, book), [{ a: 1 }]);
  assert.deepEqual(await parse({ ...XLSX, sheet: "More & more" }, book), [{ a: 1 }]);
  assert.deepEqual(await parse(XLSX, xlsx({ Empty: [] })), []);
});

test("xlsx: a sheet that isn't there, names twice, and what is no spreadsheet", async () => {
  await fails({ ...XLSX, sheet: "Itmes" }, book, "The file: the XLSX has no sheet named `Itmes`.");
  await fails({ ...XLSX, sheet: 3 }, book, "The file: the XLSX has no sheet 3.");
  await fails(
    XLSX,
    xlsx({ S: [textCell("A1", "a") + textCell("B1", "a"), cell("A2", 1)] }),
    "The file, row 1: the columns 1 and 2 have the same name, so one would hide the other.",
  );
  const damaged = "The file: the XLSX is not a spreadsheet, or is damaged.";
  await fails(XLSX, Buffer.from("no,total\n1,2\n"), damaged);
  await fails(XLSX, book.subarray(0, 900), damaged);
  await fails(XLSX, zip({ "a.xml": "<a/>" }), damaged);
  await fails(
    XLSX,
    Buffer.concat([Buffer.from("d0cf11e0a1b11ae1", "hex"), Buffer.alloc(512)]),
    "The file: the XLSX is encrypted, or an .xls; save it as .xlsx without a password.",
  );
  await fails(XLSX, "text", "The value is text; the format xlsx needs a file.");
});

test("xlsx: a bomb, one that lies about its size, and a sheet too large end in a failure; the next file is read", async () => {
  const bomb = zip({ "xl/worksheets/sheet1.xml": Buffer.alloc(150_000_000, " ") });
  assert(bomb.length < 200_000);
  const tooLarge = "The file: the XLSX decompresses to more than 100 MB.";
  await fails(XLSX, bomb, tooLarge);
  // The size that its headers tell: 10 bytes.
  const lie = Buffer.from(bomb);
  lie.writeUInt32LE(10, 22);
  lie.writeUInt32LE(10, lie.lastIndexOf("PK\u0001\u0002") + 24);
  await fails(XLSX, lie, tooLarge);
  const wide = xlsx({ S: Array.from({ length: 130 }, (_, row) => cell(`XFD${row + 1}`, 1)) });
  await fails(XLSX, wide, "The file: the XLSX has more than 2000000 cells in the sheet.");
  assert.equal((await parse(XLSX, book)).length, 2);
});

const XML = `<?xml version="1.0"?><i:invoices xmlns:i="urn:x"><i:Line No="7" i:ref="r"><name>A &amp; <![CDATA[<B>]]></name></i:Line><i:Line/></i:invoices>`;
const LINES = {
  format: "xml",
  rows: String.raw`i\:Line`,
  columns: { no: "@No", ref: "@i:ref", name: "name", lower: "@no" },
};

test("xml: rows and columns as html; names keep their case and their prefix", async () => {
  assert.deepEqual(await parse(LINES, XML), [
    { no: "7", ref: "r", name: "A & <B>", lower: null },
    { no: null, ref: null, name: null, lower: null },
  ]);
  assert.deepEqual(await parse({ ...LINES, rows: String.raw`i\:line` }, XML), []);
  await fails(LINES, "hello", "The value: the XML has no element.");
});

test("xml: the charset of the declaration or of a byte order mark counts", async () => {
  const one = { format: "xml", rows: "a", columns: { a: ":scope" } };
  const latin = Buffer.from('<?xml version="1.0" encoding="ISO-8859-1"?><a>\xe4</a>', "latin1");
  assert.deepEqual(await parse(one, latin), [{ a: "ä" }]);
  assert.deepEqual(await parse(one, Buffer.from("\ufeff<a>ä</a>", "utf16le")), [{ a: "ä" }]);
});

test("xml: entities that a DOCTYPE defines are never expanded, nothing outside is read, and depth is refused", async () => {
  const lol = Array.from({ length: 9 }, (_, n) => `<!ENTITY l${n + 1} "${`&l${n};`.repeat(10)}">`).join("");
  const bomb = `<!DOCTYPE r [<!ENTITY l0 "lol">${lol}<!ENTITY f SYSTEM "file:///etc/passwd">]><r><a>&l9;</a><b>&f;</b></r>`;
  assert.deepEqual(await parse({ format: "xml", rows: "r", columns: { a: "a", b: "b" } }, bomb), [
    { a: "&l9;", b: "&f;" },
  ]);
  await fails(
    { format: "xml", rows: "r", columns: { a: ":scope" } },
    `<r>${"<a>".repeat(20_000)}x`,
    "The value: the XML is nested too deeply.",
  );
});

const PDF = { format: "pdf" };
const paper = pdf([
  ["Invoice 7", "Total: 12.50", "Total: 3"],
  ["Page two", "Total: 4"],
]);

test("pdf: a record a page, or one for every match of the named groups", async () => {
  assert.deepEqual(await parse(PDF, paper), [
    { page: 1, text: "Invoice 7\nTotal: 12.50\nTotal: 3" },
    { page: 2, text: "Page two\nTotal: 4" },
  ]);
  const rows = String.raw`^(?<word>Total|Invoice):? (?<value>\d+)(?<cents>\.\d+)?$`;
  assert.deepEqual(await parse({ ...PDF, rows }, paper), [
    { word: "Invoice", value: "7", cents: null },
    { word: "Total", value: "12", cents: ".50" },
    { word: "Total", value: "3", cents: null },
    { word: "Total", value: "4", cents: null },
  ]);
});

test("pdf: an encrypted, a damaged and a foreign file, and one that unpacks to gigabytes", async () => {
  const damaged = "The file: the PDF is not a PDF, or is damaged.";
  await fails(PDF, Buffer.from("hello"), damaged);
  await fails(PDF, paper.subarray(0, 300), damaged);
  const key = `(${"1".repeat(32)})`;
  const encrypted = `/Encrypt << /Filter /Standard /V 1 /R 2 /O ${key} /U ${key} /P -4 >> /ID [(a) (a)]`;
  await fails(PDF, pdf([["a"]], encrypted), "The file: the PDF is encrypted; remove its password.");
  // Deflated twice: a few kB that are 1 GB.
  const content = deflateSync(zipRepeated(" ", 1_000_000_000)).toString("latin1");
  const bomb = pdfOf([
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R >>",
    `<< /Length ${content.length} /Filter [/FlateDecode /FlateDecode] >>\nstream\n${content}\nendstream`,
  ]);
  assert(bomb.length < 50_000, String(bomb.length));
  await assert.rejects(parse(PDF, bomb), /^NodeFailure: The file: the PDF took (more|longer) than/);
  assert.equal((await parse(PDF, paper)).length, 2);
});

test("pdf: one of more than 5,000 pages is refused before its pages are read", async () => {
  const book = (pages: number): Buffer => pdf(Array.from({ length: pages }, () => []));
  assert.equal((await parse(PDF, book(100))).length, 100);
  await fails(PDF, book(5_001), "The file: the PDF has more than 5000 pages.");
});

test("a run that is stopped stops the reading of a file", async () => {
  const stop = new AbortController();
  stop.abort(new Error("run cancelled"));
  await assert.rejects(parse(PDF, paper, stop.signal), /run cancelled/);
  await assert.rejects(parse(XLSX, book, stop.signal), /run cancelled/);
  await assert.rejects(parse(NDJSON, "{}\n", stop.signal), /run cancelled/);
});

test("check: keys of other formats, sheets, and expressions that can't be used", () => {
  assert.deepEqual(messages({ format: "ndjson" }), []);
  assert.deepEqual(messages({ format: "pdf", rows: "(?<a>x)" }), []);
  assert.deepEqual(messages({ format: "csv", sheet: 1 }), ["sheet: `sheet` is not a key of the format csv"]);
  assert.match(messages({ format: "xlsx", sheet: 0 })[0] ?? "", /sheet: schema/);
  assert.deepEqual(messages({ format: "pdf", rows: "x" }), [
    "rows: the expression has no named group; `(?<total>[0-9.]+)`, for example, becomes the field `total`",
  ]);
  assert.match(
    messages({ format: "pdf", rows: "(?=x)" })[0] ?? "",
    /^rows: not a supported regular expression/,
  );
  assert.deepEqual(messages({ format: "xml", rows: "a" }), [": the format xml needs `rows` and `columns`"]);
});
