// Spec, Top-level key routing; docs/nodes/input.md: every `accepts`, in both encodings, and what becomes of the value.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { brotliDecompressSync } from "node:zlib";
import { blueprint, dataOf, openBench, type Bench } from "./bench.ts";

let bench: Bench;

/** One record that shows `$inputs`, made of a list that is always there. */
const SHOW = `
- { id: tick, type: input, refKey: tick, default: '[{}]' }
- { id: list, type: parse, from: tick, format: json }
- { id: shown, type: map, from: list, fields: { inputs: $inputs, metadata: $metadata } }
- { id: out, type: output, refKey: out, from: shown }`;

before(async () => {
  bench = await openBench([
    blueprint(
      "shapes",
      `- { id: t, type: input, refKey: t, accepts: text }
- { id: j, type: input, refKey: j, accepts: json }
- { id: a, type: input, refKey: a }
- { id: f, type: input, refKey: "a file.csv", accepts: file }
- { id: s, type: input, refKey: s, schema: { type: object, required: [from], properties: { from: { type: string, pattern: "^[0-9]{4}$" }, n: { type: integer } } } }
- { id: d, type: input, refKey: d, default: { level: 3 }, accepts: json }
- { id: e, type: input, refKey: e, default: plain words }
- { id: p, type: input, refKey: __proto__, accepts: json }${SHOW}`,
      "metadata: [{ name: constructor }, { name: hasOwnProperty }]",
    ),
    blueprint("needed", `- { id: must, type: input, refKey: must, required: true, accepts: json }${SHOW}`),
    blueprint(
      "strict-text",
      `- { id: code, type: input, refKey: code, accepts: text, schema: { type: string, maxLength: 3 } }${SHOW}`,
    ),
    blueprint(
      "file",
      `- { id: price_list, type: input, refKey: price_list, accepts: file }
- { id: rows, type: parse, from: price_list, format: csv, delimiter: ";" }
- { id: cheap, type: filter, from: rows, where: $number(price) < $number($inputs.limit) }
- { id: limit, type: input, refKey: limit }
- { id: shown, type: map, from: cheap, fields: { name: name, price: $number(price), file: $inputs.price_list } }
- { id: out, type: output, refKey: out, from: shown }
- { id: all, type: output, refKey: all, from: rows }`,
    ),
  ]);
});
after(() => bench?.[Symbol.asyncDispose]());

const shown = async (key: string, body?: unknown) => dataOf(await bench.run(key, body))[0];

function form(parts: Readonly<Record<string, string | Blob | File>>): FormData {
  const data = new FormData();
  for (const [name, value] of Object.entries(parts)) {
    if (typeof value === "string") data.append(name, value);
    else data.append(name, value);
  }
  return data;
}

test("JSON: texts pass as they are, anything else as JSON; accepts json and schema parse, defaults stand in", async () => {
  const { inputs } = await shown("shapes", {
    t: ' {"not": "parsed"} ',
    j: { a: [1, null, "x"] },
    a: { any: true },
    "a file.csv": "inline, text",
    s: { from: "2020", n: 1 },
    unknown: "ignored",
  });
  assert.deepEqual(inputs, {
    t: ' {"not": "parsed"} ',
    j: { a: [1, null, "x"] },
    a: '{"any":true}',
    "a file.csv": "inline, text",
    s: { from: "2020", n: 1 },
    d: { level: 3 },
    e: "plain words",
    tick: "[{}]",
  });
});

test("JSON: numbers, booleans, lists; a JSON text for accepts json; null counts as omitted, so that defaults stand in", async () => {
  const { inputs } = await shown("shapes", {
    t: 12.5,
    j: "[1,2]",
    a: false,
    s: '{"from":"1999"}',
    d: null,
    e: [],
  });
  assert.deepEqual(inputs, {
    t: "12.5",
    j: [1, 2],
    a: "false",
    s: { from: "1999" },
    d: { level: 3 },
    e: "[]",
    tick: "[{}]",
  });
});

test("multipart routes as JSON does, files and inline texts mixed", async () => {
  const { inputs } = await shown(
    "shapes",
    form({
      t: "é\r\nx",
      j: '{"a":1}',
      a: new File(["bytes"], "any.bin", { type: "image/png" }),
      "a file.csv": new File(["x"], "näme.csv"),
      s: '{"from":"2021"}',
      unknown: "x",
    }),
  );
  assert.deepEqual(
    { ...inputs, tick: undefined },
    {
      t: "é\r\nx",
      j: { a: 1 },
      a: { filename: "any.bin", content_type: "image/png", size_bytes: 5 },
      "a file.csv": { filename: "näme.csv", content_type: "application/octet-stream", size_bytes: 1 },
      s: { from: "2021" },
      d: { level: 3 },
      e: "plain words",
      tick: undefined,
    },
  );
});

test("names of Object's own members are names like any other", async () => {
  const run = await bench.run(
    "shapes",
    '{"__proto__":{"a":1},"constructor":"c","hasOwnProperty":[1],"toString":"ignored"}',
  );
  const { inputs, metadata } = dataOf(run)[0];
  assert.deepEqual(Object.getOwnPropertyDescriptor(inputs, "__proto__")?.value, { a: 1 });
  assert.deepEqual(metadata, { constructor: "c", hasOwnProperty: "[1]" });
  assert.deepEqual(run.answer.executionMetadata.metadata, { constructor: "c", hasOwnProperty: "[1]" });
});

test("an INPUT with a schema refuses a wrong value at the trigger, with a detail for each mistake", async () => {
  const answer = await bench.trigger("shapes", { s: { from: "20", n: 1.5 } });
  assert.equal(answer.status, 422);
  assert.deepEqual(answer.body.error.details.map(({ code, field }: any) => [code, field]).sort(), [
    ["invalid_input_data", "s.from"],
    ["invalid_input_data", "s.n"],
  ]);
  for (const s of ["no json", "[", 5, [], { n: 1 }]) {
    const { status, body } = await bench.trigger("shapes", { s });
    assert.equal(status, 422, JSON.stringify(s));
    assert.match(body.error.details[0].field, /^s(\.from)?$/);
  }
  const file = await bench.trigger("shapes", form({ s: new File(["{}"], "s.json") }));
  assert.equal(file.status, 422);
  assert.equal(file.body.error.details[0].field, "s");
});

test("required: without a value, with null, or not as it must be: 422; an INPUT with neither is never refused", async () => {
  for (const body of [{}, { must: null }, { must: "no json" }]) {
    const answer = await bench.trigger("needed", body);
    assert.deepEqual(
      [answer.status, answer.body.error.details[0].field],
      [422, "must"],
      JSON.stringify(body),
    );
  }
  assert.deepEqual((await shown("needed", { must: 0 })).inputs.must, 0);
  const { status } = await bench.trigger("strict-text", { code: "long" });
  assert.equal(status, 422);
  // A text stays a text, also one that looks like JSON.
  assert.equal((await shown("strict-text", { code: "012" })).inputs.code, "012");
  // docs/api.md#triggers: the trigger takes it, the run says what is wrong.
  const run = await bench.run("shapes", { j: "no json" });
  assert.deepEqual([run.status.status, run.detail], ["failed", "Node j: `j` is not JSON."]);
});

test("a CSV file becomes records; its cells stay texts and its name, type and size can be shown", async () => {
  const csv = '\uFEFFname;price\r\n"Bolt; M4";3\r\n"Nut ""x""";12.5\r\n\r\nWasher;0.5\n';
  const run = await bench.run(
    "file",
    form({ price_list: new File([csv], "prices.csv", { type: "text/csv" }), limit: "10" }),
  );
  const file = { filename: "prices.csv", content_type: "text/csv", size_bytes: Buffer.byteLength(csv) };
  assert.deepEqual(dataOf(run), [
    { name: "Bolt; M4", price: 3, file },
    { name: "Washer", price: 0.5, file },
  ]);
  assert.deepEqual(dataOf(run, "all")[1], { name: 'Nut "x"', price: "12.5" });
});

test("the same CSV as inline text, in JSON and in multipart, gives the same records", async () => {
  const csv = "name;price\na;1\nb;20";
  for (const body of [{ price_list: csv, limit: 10 }, form({ price_list: csv, limit: "10" })]) {
    const run = await bench.run("file", body);
    assert.deepEqual(dataOf(run, "all"), [
      { name: "a", price: "1" },
      { name: "b", price: "20" },
    ]);
  }
});

test("a file of 5 MB is taken whole: every row arrives, in order, and the results go by URL", async () => {
  const rows = Array.from(
    { length: 20_000 },
    (_, index) => `Article number ${index} ${"x".repeat(250)};${index}`,
  );
  const csv = `name;price\n${rows.join("\n")}\n`;
  assert.ok(csv.length > 5_000_000);
  const run = await bench.run("file", form({ price_list: new File([csv], "big.csv"), limit: "3" }));
  assert.equal(run.status.status, "completed", String(run.detail));
  assert.equal(run.answer.dataDeliveryMethod, "presigned_url");
  const response = await fetch(run.answer.results.all);
  const all = JSON.parse(brotliDecompressSync(Buffer.from(await response.arrayBuffer())).toString("utf8"));
  assert.equal(all.totalRecords, 20_000);
  assert.ok(all.records.every(({ data }: any, index: number) => data.price === String(index)));
});

test("big numbers, their spelling, key order and U+0000 are stored as they were sent", async () => {
  const texts = {
    t: '"a\\u0000b\\ud83d\\ude00"',
    a: '{"z":9007199254740993,"a":1.0,"e":1E+2,"n":-0,"b":1,"Ab":2,"s":"\\u0000"}',
  };
  const run = await bench.run("shapes", `{ "t": ${texts.t}, "a" : ${texts.a} }`);
  const { db } = bench.installation.database;
  const stored = await db.query<{ key: string; content: Buffer }>(
    "select ref_key as key, content from run_input where run_id = $1 order by ref_key",
    [run.id],
  );
  assert.deepEqual(
    stored.map(({ key, content }) => [key, content.toString("utf8")]),
    [
      ["a", texts.a],
      ["t", "a\u0000b😀"],
    ],
  );
  // And through the run, byte for byte, as what an INPUT without a schema is: text.
  assert.equal(dataOf(run)[0].inputs.t, "a\u0000b😀");
  assert.equal(dataOf(run)[0].inputs.a, texts.a);
});
