// docs/blueprints.md#files: `http` requests with `multipart` and `file` bodies.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { blueprint, openBench, type Bench, type EndedRun } from "./bench.ts";
import type { Seen } from "./target.ts";

let bench: Bench;
before(async () => {
  bench = await openBench([]);
});
after(async () => await bench?.[Symbol.asyncDispose]());

const INPUTS = `- { id: upload, type: input, refKey: upload, accepts: file }
- { id: note, type: input, refKey: note, accepts: text }
- { id: terms, type: input, refKey: terms, accepts: json }`;
const OUT = `- { id: shown, type: parse, from: sent, format: json, records: $ }
- { id: out, type: output, refKey: out, from: shown }`;

const sending = (request: string, more = ""): string => `${INPUTS}
- id: sent
  type: http
  request:
    method: POST
    url: "{TARGET}/documents"
${request.replaceAll(/^/gm, "    ")}
${more.replaceAll(/^/gm, "  ")}
${OUT}`;

let made = 0;
async function run(nodes: string, body: object | FormData): Promise<{ run: EndedRun; seen: Seen }> {
  const key = `files-${made++}`;
  await bench.apply(blueprint(key, nodes, "hosts: ['{TARGET}']"));
  if (bench.target.seen("POST /documents").length === 0)
    bench.target.on("POST /documents", { json: { ok: true } });
  const ended = await bench.run(key, body);
  const seen = bench.target.seen("POST /documents").at(-1);
  assert.ok(seen, String(ended.detail));
  return { run: ended, seen };
}

function form(parts: Readonly<Record<string, string | File>>): FormData {
  const data = new FormData();
  for (const [name, value] of Object.entries(parts)) data.append(name, value);
  return data;
}

/** The form as a parser of the platform reads it. */
async function partsOf({ bytes, headers }: Seen): Promise<readonly (readonly [string, string | File])[]> {
  assert.equal(Number(headers["content-length"]), bytes.length, "its length is said, and true");
  const type = String(headers["content-type"]);
  const data = await new Response(new Uint8Array(bytes), { headers: { "content-type": type } }).formData();
  return [...data.entries()];
}

const sha = async (file: string | File | undefined): Promise<string> =>
  createHash("sha256")
    .update(Buffer.from(await (file as File).arrayBuffer()))
    .digest("hex");

const BYTES = randomBytes(3_000_000);
const FILE = new File([BYTES], 'o"rder 1\n.pdf', { type: "application/pdf" });

test("texts and files of any size arrive as they are; what gives nothing is left out", async () => {
  const { run: ended, seen } = await run(
    sending(`multipart:
  note: "{{ $inputs.note }}"
  count: 3
  nothing: "{{ $inputs.terms.x }}"
  none: { file: terms }
  tags: [a, "{{ $inputs.terms.x }}", "{{ $inputs.note }}"]
  'odd "name"': x
  document: { file: upload }
  both: [{ file: upload, filename: "{{ $inputs.note }}.bin", type: image/png }, plain]`).replace(
      "$inputs.missing_one",
      "$metadata.nobody",
    ),
    form({ note: "é\r\nx", upload: FILE }),
  );
  assert.equal(ended.status.status, "completed", String(ended.detail));
  const parts = await partsOf(seen);
  assert.deepEqual(
    parts.map(([name, value]) => [name, typeof value === "string" ? value : [value.name, value.type]]),
    [
      ["note", "é\r\nx"],
      ["count", "3"],
      ["tags", "a"],
      ["tags", "é\r\nx"],
      ['odd "name"', "x"],
      ["document", ['o"rder 1\n.pdf', "application/pdf"]],
      ["both", ["é\r\nx.bin", "image/png"]],
      ["both", "plain"],
    ],
  );
  const expected = createHash("sha256").update(BYTES).digest("hex");
  assert.equal(await sha(parts[5]?.[1]), expected);
  assert.equal(await sha(parts[6]?.[1]), expected);
});

test("a file is the body, with its type; texts and JSON values are files as well", async () => {
  const { seen } = await run(sending("file: upload"), form({ upload: FILE }));
  assert.equal(seen.headers["content-type"], "application/pdf");
  assert.equal(Number(seen.headers["content-length"]), BYTES.length);
  assert.deepEqual(seen.bytes, BYTES);

  const typed = await run(
    sending('file: upload\nheaders: { Content-Type: "text/csv; header=present" }'),
    form({ upload: new File([""], "empty.csv") }),
  );
  assert.equal(typed.seen.headers["content-type"], "text/csv; header=present");
  assert.deepEqual([typed.seen.headers["content-length"], typed.seen.bytes.length], ["0", 0]);

  const text = await run(sending("file: note"), { note: "é" });
  assert.equal(text.seen.headers["content-type"], "text/plain;charset=utf-8");
  assert.equal(text.seen.body, "é");

  const json = await run(sending("multipart: { terms: { file: terms, filename: terms.json } }"), {
    terms: { a: [1] },
  });
  const [[, part] = []] = await partsOf(json.seen);
  assert.equal(await (part as File).text(), '{"a":[1]}');
});

test("a body of nothing fails the node, and a type that is none never becomes a header", async () => {
  const before = bench.target.seen("POST /documents").length;
  for (const [request, says] of [
    ["file: upload", /request\.file: the node "upload" has no output/],
    [
      'multipart: { a: { file: note, type: "{{ $inputs.note }}" } }',
      /request\.multipart\.a\.type is not a content type/,
    ],
    [
      'multipart: { a: "{{ $inputs.terms }}" }',
      /request\.multipart\.a evaluates to an object; it must be a string/,
    ],
  ] as const) {
    const { run: ended } = await run(sending(request), {
      note: "text/plain\r\nX-Own: 1",
      terms: { file: "upload" },
    });
    assert.equal(ended.status.status, "failed");
    assert.match(String(ended.detail), says);
  }
  assert.equal(bench.target.seen("POST /documents").length, before, "nothing was sent");
});

test("a file is read again for every attempt and for a redirect that keeps the body", async () => {
  const from = bench.target.seen("POST /documents").length;
  bench.target.on("POST /documents", (_seen, nth) =>
    nth === from
      ? { status: 503, headers: { "retry-after": "0" } }
      : { status: 307, headers: { location: "/moved" } },
  );
  bench.target.on("POST /moved", { json: { ok: true } });
  const { run: ended } = await run(
    sending("multipart: { document: { file: upload } }", "retry: { attempts: 3, initial: 10ms }"),
    form({ upload: FILE }),
  );
  bench.target.on("POST /documents", { json: { ok: true } });
  assert.equal(ended.status.status, "completed", String(ended.detail));
  const seen = [...bench.target.seen("POST /documents").slice(from), ...bench.target.seen("POST /moved")];
  assert.equal(seen.length, 3);
  for (const each of seen) {
    const [[, document] = []] = await partsOf(each);
    assert.equal(await sha(document), createHash("sha256").update(BYTES).digest("hex"));
  }
});

test("with for_each every record goes with the file, once", async () => {
  bench.target.on("GET /rows", { json: [{ n: 1 }, { n: 2 }, { n: 3 }] });
  const nodes = `${INPUTS}
- { id: rows, type: http, request: { url: "{TARGET}/rows" }, records: $ }
- id: sent
  type: http
  for_each: rows
  concurrency: 3
  request:
    method: POST
    url: "{TARGET}/documents"
    multipart:
      number: "{{ n }}"
      token: "{{ $token }}"
      document: { file: upload, filename: "row {{ n }}.csv" }
- { id: out, type: output, refKey: out, from: sent }`;
  const from = bench.target.seen("POST /documents").length;
  const { run: ended } = await run(
    nodes,
    form({ upload: new File(["a,b"], "rows.csv", { type: "text/csv" }) }),
  );
  assert.equal(ended.status.status, "completed", String(ended.detail));
  const sent = await Promise.all(bench.target.seen("POST /documents").slice(from).map(partsOf));
  const shown = sent.map((parts) => Object.fromEntries(parts) as Record<string, File>);
  assert.deepEqual(
    shown.map(({ number, document }) => `${String(number)} ${document?.name}`).toSorted(),
    [1, 2, 3].map((n) => `${n} row ${n}.csv`),
  );
  assert.equal(new Set(shown.map(({ token }) => String(token))).size, 3);
});

test("mistakes are refused with their place", async () => {
  for (const [request, ...says] of [
    ["file: uplod", "nodes[3].request.file", "did you mean `upload`"],
    ["multipart: { a: { file: nobody } }", "nodes[3].request.multipart.a.file"],
    ["multipart: { a: [x, { file: shown }] }", "nodes[3].request.multipart.a[1].file", "outputs records"],
    ["multipart: { a: { name: x } }", "nodes[3].request.multipart.a", "needs the key `file`"],
    ["multipart: { a: { file: upload, size: 1 } }", "nodes[3].request.multipart.a.size"],
    ["multipart: { a: { file: upload, filename: 1 } }", "nodes[3].request.multipart.a.filename"],
    ["multipart: { a: [[x]] }", "nodes[3].request.multipart.a[0]"],
    ["multipart: { a: x }\njson: {}", "nodes[3].request.multipart", "one body"],
    ["file: upload\ntext: x", "nodes[3].request.file", "one body"],
  ] as const) {
    const problems = await bench.refusals(blueprint("bad", sending(request), "hosts: ['{TARGET}']"));
    assert.ok(
      problems.some((problem) => says.every((part) => problem.includes(part))),
      `${request}: ${problems.join("\n")}`,
    );
  }
});
