import { test } from "node:test";
import assert from "node:assert/strict";
import type { Json, JsonObject } from "#domain/json.ts";
import type { Value } from "#domain/value.ts";
import type { Flow } from "#nodes/define-node.ts";
import { CHARSETS } from "#nodes/parse/decode-text.ts";
import { node as parseType } from "#nodes/types/parse.ts";
import { check, dataOf, fileValue, recordsOf, runNode } from "./node-context.ts";
import { watchTurns } from "../event-loop.ts";
import { inTier } from "../tiers.ts";

const parse = async (config: JsonObject, value: Value | string, signal?: AbortSignal): Promise<Json[]> => {
  const from: Flow[] = [
    { kind: "value", value: typeof value === "string" ? { form: "text", text: value } : value },
  ];
  const { flow } = await runNode(
    { type: "parse", from: "x", ...config },
    { from, ...(signal && { signal }) },
  );
  return dataOf(flow);
};
const csv = (value: Value | string, config: JsonObject = {}) => parse({ format: "csv", ...config }, value);
const bytes = (text: string | readonly number[]) =>
  fileValue(typeof text === "string" ? Buffer.from(text) : Uint8Array.from(text));

test("json: a list gives one record an item, an object one, null and an absent value none", async () => {
  assert.deepEqual(await parse({ format: "json" }, '[{"a":1},{"a":2}]'), [{ a: 1 }, { a: 2 }]);
  assert.deepEqual(await parse({ format: "json" }, '\ufeff{"a":1}'), [{ a: 1 }]);
  assert.deepEqual(await parse({ format: "json" }, "null"), []);
  assert.deepEqual(await parse({ format: "json" }, { form: "absent" }), []);
  assert.deepEqual(await parse({ format: "json" }, bytes('[{"a":"ä€"}]')), [{ a: "ä€" }]);
});

test("json: takes a value that an input has parsed, and records over it", async () => {
  const json = { data: { items: [{ a: 1 }], one: { b: 2 }, none: [] } };
  assert.deepEqual(await parse({ format: "json", records: "data.items" }, { form: "json", json }), [
    { a: 1 },
  ]);
  assert.deepEqual(await parse({ format: "json", records: "data.one" }, { form: "json", json }), [{ b: 2 }]);
  assert.deepEqual(await parse({ format: "json", records: "data.none" }, { form: "json", json }), []);
  assert.deepEqual(await parse({ format: "json", records: "data.nope" }, { form: "json", json }), []);
});

test("json: what isn't records fails with its place and without the data", async () => {
  await assert.rejects(parse({ format: "json" }, "{secret"), {
    name: "NodeFailure",
    message: "The value is not JSON.",
  });
  await assert.rejects(parse({ format: "json" }, " "), /is empty, not JSON/);
  await assert.rejects(
    parse({ format: "json" }, "[{},7]"),
    /The value: item 1 is a number; every record must be an object/,
  );
  await assert.rejects(parse({ format: "json" }, '"secret"'), /The value evaluates to a string/);
  await assert.rejects(
    parse({ format: "json", records: "$number(a)" }, '{"a":"secret"}'),
    /records: expression `\$number\(a\)`: a value can't be converted to a number/,
  );
  await assert.rejects(
    parse({ format: "json" }, "[".repeat(5_000) + "]".repeat(5_000)),
    /nested deeper than 500 levels/,
  );
});

test("json: a field named __proto__ is an ordinary field", async () => {
  const [record] = await parse({ format: "json" }, '[{"__proto__":{"a":1},"b":2}]');
  assert.deepEqual(Object.keys(record as object), ["__proto__", "b"]);
  const [row] = await csv("__proto__,constructor\n1,2\n");
  assert.deepEqual(Object.entries(row as object), [
    ["__proto__", "1"],
    ["constructor", "2"],
  ]);
});

test("csv: the first row is the header, values stay texts, empty lines don't count", async () => {
  assert.deepEqual(await csv('no,total, name \r\n007,1.50," a, ""b"" "\r\n\r\n008,,\r\n'), [
    { no: "007", total: "1.50", name: ' a, "b" ' },
    { no: "008", total: "", name: "" },
  ]);
  assert.deepEqual(await csv('a;b\n1;"2\n3"\n', { delimiter: ";" }), [{ a: "1", b: "2\n3" }]);
  assert.deepEqual(await csv("a,\n1,2\n"), [{ a: "1", column_2: "2" }]);
  assert.deepEqual(await csv(""), []);
  assert.deepEqual(await csv("a,b\n"), []);
});

test("csv: line ends may be mixed, a byte order mark is no part of the first name, and characters may be split over chunks", async () => {
  assert.deepEqual(await csv(bytes("\ufeffä,b\r\n€,2\n3,4\r5,6")), [
    { ä: "€", b: "2" },
    { ä: "3", b: "4" },
    { ä: "5", b: "6" },
  ]);
});

test("csv: `skip` passes over lines before the header, whatever is in them, and lines are counted with them", async () => {
  const text = 'Export of "7 Nov\r\nAccount;DE12\n\rno;total\n1;"2\n3"\n';
  assert.deepEqual(await csv(text, { delimiter: ";", skip: 3 }), [{ no: "1", total: "2\n3" }]);
  for (const chunk of [1, 2, 3])
    assert.deepEqual(await csv(fileValue(Buffer.from(text), null, chunk), { delimiter: ";", skip: 3 }), [
      { no: "1", total: "2\n3" },
    ]);
  await assert.rejects(csv("x\ny\na,b\n1,2\n3\n", { skip: 2 }), {
    message: "The value, line 5: the row has 1 values, but the header has 2 columns.",
  });
  await assert.rejects(csv('x\na,b\n1,"2\n', { skip: 1 }), /line 3: a quoted value is never closed/);
  await assert.rejects(csv("x\na,a\n", { skip: 1 }), /^NodeFailure: The value, line 2: the columns 1 and 2/);
  await assert.rejects(csv("x\ny", { skip: 2 }), {
    message: "The value has fewer lines than `skip` (2), so there is no header.",
  });
  assert.deepEqual(await csv("", { skip: 2 }), []);
  assert.deepEqual(await csv("x\ny\n", { skip: 2 }), []);
});

test("`charset` stands above what the content type and the text say; a name that is none is refused with the list", async () => {
  const latin = { ...fileValue(Buffer.from("a\n\xe4\n", "latin1")), contentType: "text/csv; charset=utf-8" };
  assert.deepEqual(await csv(latin, { charset: "ISO-8859-1" }), [{ a: "ä" }]);
  assert.deepEqual(await csv(fileValue(Buffer.from("a\nä\n", "utf16le")), { charset: "utf-16le" }), [
    { a: "ä" },
  ]);
  const page = '<?xml version="1.0" encoding="utf-8"?><r><i>\xe4</i></r>';
  const rows = { format: "xml", rows: "i", columns: { a: ":scope" }, charset: "windows-1252" };
  assert.deepEqual(await parse(rows, fileValue(Buffer.from(page, "latin1"))), [{ a: "ä" }]);
  for (const format of ["json", "ndjson"])
    assert.deepEqual(
      await parse({ format, charset: "latin1" }, fileValue(Buffer.from('{"a":"\xe4"}', "latin1"))),
      [{ a: "ä" }],
    );
  const messages = (charset: string): readonly string[] =>
    check({ type: "parse", from: "x", format: "csv", charset }).map(
      ({ path, message }) => `${path.join(".")}: ${message}`,
    );
  for (const name of CHARSETS) assert.deepEqual(messages(name), [], name);
  for (const name of CHARSETS) assert.doesNotThrow(() => new TextDecoder(name), name);
  assert.match(
    messages("klingon")[0] ?? "",
    /^charset: `klingon` is not a supported charset; the supported ones are utf-8, .*iso-8859-15, .*shift_jis$/,
  );
  // What a named charset gives can't be found in the bytes by what they say of themselves, so it is cleaned once more.
  assert.equal(parseType.unpacks?.({ format: "csv", charset: "utf-16le" }), true);
  assert.equal(parseType.unpacks?.({ format: "csv" }), false);
});

test("text: the whole is one record, in a field; nothing gives none, and what is too long for a field fails", async () => {
  const text = { format: "text" };
  assert.deepEqual(await parse(text, "BEGIN\r\nä\n"), [{ text: "BEGIN\r\nä\n" }]);
  assert.deepEqual(await parse({ ...text, field: "wiki" }, bytes("\ufeffä")), [{ wiki: "ä" }]);
  assert.deepEqual(
    await parse(text, {
      ...fileValue(Buffer.from("\xe4", "latin1")),
      contentType: "text/plain; charset=latin1",
    }),
    [{ text: "ä" }],
  );
  assert.deepEqual(await parse({ ...text, charset: "latin1" }, bytes([0xe4])), [{ text: "ä" }]);
  assert.deepEqual(await parse(text, ""), [{ text: "" }]);
  assert.deepEqual(await parse(text, { form: "absent" }), []);
  await assert.rejects(parse(text, bytes([0xe4])), /^NodeFailure: The file is not utf-8 text/);
  await assert.rejects(parse(text, { form: "json", json: {} }), /is already JSON/);
  let opened = 0;
  const open = async function* () {
    for (; opened < 100_000_000; opened += 1_000_000) yield Buffer.alloc(1_000_000, "x");
  };
  await assert.rejects(
    parse(text, { form: "file", filename: null, contentType: null, sizeBytes: 100_000_000, open }),
    /The file is longer than 10000000 characters, the maximum for a field/,
  );
  assert(opened < 12_000_000, String(opened));
  assert.match(
    check({ type: "parse", from: "x", format: "csv", field: "a" })[0]?.message ?? "",
    /`field` is not a key of the format csv/,
  );
});

test("a file that is larger than a format reads at once fails early, and is never in memory whole", async () => {
  for (const config of [{ format: "xml", rows: "i", columns: { a: ":scope" } }, { format: "pdf" }]) {
    let opened = 0;
    const open = async function* () {
      for (; opened < 1_000_000_000; opened += 1_000_000) yield Buffer.alloc(1_000_000);
    };
    await assert.rejects(
      parse(config, { form: "file", filename: null, contentType: null, sizeBytes: 1_000_000_000, open }),
      /The file is larger than 100000000 bytes, the most that this format reads/,
    );
    assert(opened <= 101_000_000, String(opened));
  }
});

test("csv: a ragged row, an open quote and a stray one are named by their line, without the data", async () => {
  const fails = (text: string, message: string) =>
    assert.rejects(csv(text), { name: "NodeFailure", message });
  await fails("a,b\n1,2\n\n3\n", "The value, line 4: the row has 1 values, but the header has 2 columns.");
  await fails("a,b\n1,2,3\n", "The value, line 2: the row has 3 values, but the header has 2 columns.");
  await fails('a,b\n1,"secret\n', "The value, line 2: a quoted value is never closed.");
  await fails('a,b\n"secret"x,2\n', "The value, line 2: a quoted value continues after its closing quote.");
  await fails(
    'a,b\nsecret"x",2\n',
    "The value, line 2: a value that doesn't begin with a quote contains one.",
  );
  await fails(
    "a,b,a\n1,2,3\n",
    "The value, line 1: the columns 1 and 3 have the same name, so one would hide the other.",
  );
});

test("csv: a quote that is never closed in a large file fails early, not after the file is in memory", async () => {
  let opened = 0;
  const open = async function* () {
    yield Buffer.from('a\n"');
    for (let chunk = 0; chunk < 1_000; chunk += 1) {
      opened += 65_536;
      yield Buffer.alloc(65_536, "x");
    }
  };
  await assert.rejects(
    csv({ form: "file", filename: null, contentType: null, sizeBytes: 65_536_000, open }),
    /The file, line \d: a row is longer than 1000000 characters/,
  );
  assert(opened < 4_000_000, String(opened));
});

test("csv: rows before a bad one have flowed already, and batches stay small", async () => {
  const text = `n\n${Array.from({ length: 1_200 }, (_, index) => index).join("\n")}\nx,y\n`;
  const { flow } = await runNode(
    { type: "parse", from: "x", format: "csv" },
    { from: [{ kind: "value", value: { form: "text", text } }] },
  );
  assert(flow?.kind === "records");
  const sizes: number[] = [];
  await assert.rejects(async () => {
    for await (const batch of flow.batches) sizes.push(batch.length);
  }, /line 1202/);
  assert.deepEqual(sizes, [500, 500]);
});

test("csv: a million-row file is read as it comes; who stops early stops the reading", async () => {
  let chunks = 0;
  const open = async function* () {
    yield Buffer.from("n,m\n");
    for (; chunks < 10_000; chunks += 1) yield Buffer.from("1,2\n".repeat(100));
  };
  const value: Value = { form: "file", filename: null, contentType: null, sizeBytes: 1, open };
  const { flow } = await runNode(
    { type: "parse", from: "x", format: "csv" },
    { from: [{ kind: "value", value }] },
  );
  assert(flow?.kind === "records");
  for await (const batch of flow.batches) {
    assert.equal(batch.length, 500);
    break;
  }
  assert(chunks < 5_000, `${chunks} chunks were read for one batch`);
});

test("text in another charset must say so; bytes that are no text are never mangled", async () => {
  await assert.rejects(csv(bytes([0x61, 0x0a, 0xe4, 0x0a])), /The file is not utf-8 text/);
  const latin: Value = {
    ...fileValue(Uint8Array.from([0x61, 0x0a, 0xe4, 0x0a]), "text/csv; charset=ISO-8859-1"),
  };
  assert.deepEqual(await csv(latin), [{ a: "ä" }]);
  await assert.rejects(
    csv({ ...latin, contentType: "text/csv; charset=klingon" }),
    /an unknown charset: klingon/,
  );
  await assert.rejects(parse({ format: "json" }, bytes([0xff, 0xfe])), /not utf-8 text/);
});

const PAGE = `<html><body><table id=t><tr data-id=7><td class=no> A&amp;1
 </td><td><a href="/x?a=1&amp;b=2">go <b>there</b></a></td></tr><tr><td class=no>B</td></tr></table></body></html>`;

test("html: columns are the text, an attribute, or an attribute of the row; null where there is none", async () => {
  const columns = { no: "td.no", link: "a@href", text: "a", id: "@data-id", whole: ":scope" };
  assert.deepEqual(await parse({ format: "html", rows: "#t tr", columns }, PAGE), [
    { no: "A&1", link: "/x?a=1&b=2", text: "go there", id: "7", whole: "A&1\n go there" },
    { no: "B", link: null, text: null, id: null, whole: "B" },
  ]);
  assert.deepEqual(await parse({ format: "html", rows: ".none", within: "#t", columns }, PAGE), []);
  assert.deepEqual(
    await parse({ format: "html", rows: 'a[href*="@"]', columns: { a: "@href" } }, '<a href="x@y">1</a>'),
    [{ a: "x@y" }],
  );
});

test("html: scripts don't run, entities and field names don't leak, and the charset of a meta element counts", async () => {
  const page = `<p id=1 onclick="x()">&lt;script&gt;</p><script>globalThis.pwned = 1; while(true){}</script><p id=2><img src=x onerror=y()>ok`;
  assert.deepEqual(
    await parse({ format: "html", rows: "p", columns: { __proto__x: "@id", text: ":scope" } }, page),
    [
      { __proto__x: "1", text: "<script>" },
      { __proto__x: "2", text: "ok" },
    ],
  );
  const latin = Buffer.from('<meta charset="windows-1252"><p>\xe4\x80</p>', "latin1");
  assert.deepEqual(
    await parse({ format: "html", rows: "p", columns: { text: ":scope" } }, fileValue(latin)),
    [{ text: "ä€" }],
  );
  await assert.rejects(
    parse(
      { format: "html", rows: "p", columns: { text: ":scope" } },
      fileValue(Buffer.from("<p>\xe4", "latin1")),
    ),
    /not utf-8 text/,
  );
});

test("html: a page made to be slow or deep does not hold the event loop, and is stopped with the run", async () => {
  const html = "<b>".repeat(60_000) + "</p>".repeat(60_000);
  const stop = new AbortController();
  const turns = watchTurns();
  // Left to itself it fails by the parser's own limit of time, with another reason.
  setTimeout(() => stop.abort(new Error("run cancelled")), 500);
  await assert.rejects(
    parse({ format: "html", rows: "b", columns: { a: "b" } }, html, stop.signal),
    /run cancelled/,
  );
  const longest = turns.longestMs();
  assert(longest < 200, `${longest} ms of CPU time in one turn of the event loop`);
  const nested = async (depth: number) =>
    await parse({ format: "html", rows: "body", columns: { a: ":scope" } }, "<div>".repeat(depth));
  // The parser's time grows with the square of the depth: which limit it meets first is the machine's.
  for (const [depth, why] of inTier(
    [
      [20_000, /nested too deeply|took longer/],
      [60_000, /took longer than 2 s to parse/],
    ] as const,
    ([each]) => each === 60_000,
  ))
    await assert.rejects(nested(depth), why);
  // The thread after a killed one works again.
  assert.deepEqual(await parse({ format: "html", rows: "p", columns: { a: ":scope" } }, "<p>1"), [
    { a: "1" },
  ]);
});

test("html: rows that repeat the page over and over are refused before they fill the memory", async () => {
  const html = "<i>".repeat(400) + "x".repeat(400_000);
  await assert.rejects(
    parse({ format: "html", rows: "i", columns: { a: ":scope" } }, html),
    /produces more than 50000000 characters/,
  );
});

test("html: several pages at once each get their own rows", async () => {
  const pages = await Promise.all(
    [1, 2, 3].map((n) => parse({ format: "html", rows: "p", columns: { a: ":scope" } }, `<p>${n}`)),
  );
  assert.deepEqual(pages, [[{ a: "1" }], [{ a: "2" }], [{ a: "3" }]]);
});

test("only json takes a value that is already JSON", async () => {
  await assert.rejects(parse({ format: "csv" }, { form: "json", json: {} }), /is already JSON/);
});

test("check names unknown formats, keys of another format, and what html needs", () => {
  const messages = (config: JsonObject) =>
    check({ type: "parse", from: "x", ...config }).map(
      ({ path, message }) => `${path.join(".")}: ${message}`,
    );
  assert.match(messages({ format: "docx" })[0] ?? "", /schema/);
  assert.match(
    messages({ format: "csv", records: "a" })[0] ?? "",
    /records: `records` is not a key of the format csv/,
  );
  assert.match(
    messages({ format: "json", sheet: 1 })[0] ?? "",
    /sheet: `sheet` is not a key of the format json/,
  );
  assert.match(messages({ format: "html", rows: "tr" })[0] ?? "", /needs `rows` and `columns`/);
  assert.match(
    messages({ format: "html", rows: "tr[", columns: { a: "td" } })[0] ?? "",
    /rows: `tr\[` is not a CSS selector/,
  );
  assert.match(messages({ format: "html", rows: "tr", columns: { a: "td:nope(" } })[0] ?? "", /columns.a/);
  assert.match(messages({ format: "csv", delimiter: '"' })[0] ?? "", /delimiter/);
  assert.deepEqual(messages({ format: "html", rows: "tr", columns: { a: "td@title", b: "@id" } }), []);
});

test("a run that was stopped stops a csv", async () => {
  const stop = new AbortController();
  stop.abort(new Error("run cancelled"));
  const { flow } = await runNode(
    { type: "parse", from: "x", format: "csv" },
    { from: [{ kind: "value", value: { form: "text", text: "a\n1\n" } }], signal: stop.signal },
  );
  await assert.rejects(recordsOf(flow));
});
