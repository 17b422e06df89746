// What a target gives back of a login is taken out before a node, an expectation or an expression of the Blueprint sees it, so that
// no expression can turn it into something that is not found when it is stored.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { textCell, xlsx } from "../nodes/office-files.ts";
import { blueprint, openBench, type Bench, type EndedRun } from "./bench.ts";
import type { Answer } from "./target.ts";

let bench: Bench;

const KEY = "SECRET-KEY-hunter2-0001";
const TOKEN = "TOK-wxyz9876qrst";
const COOKIE = "cookie-of-the-login-5150";

/** An author's ways to write a text so that nobody finds it. */
const TRANSFORMS: Readonly<Record<string, string>> = {
  "as it is": "all",
  reversed: "$join($reverse($split(all, '')), '')",
  "letter by letter": "$join($split(all, ''), ' ')",
  "in capitals": "$uppercase(all)",
  "as a list": "$split(all, '')",
  "of two halves":
    "$map($split(all, ' '), function($each) { [$substring($each, 0, 8), $substring($each, 8)] })",
  encoded: "$base64encode($base64encode($base64encode(all)))",
  "by its codes":
    "$map($split(all, ''), function($letter) { $formatBase($number($length($letter)), 2) & $letter & '.' })",
};

const fieldsOf = (source: string): string =>
  Object.entries(TRANSFORMS)
    .map(
      ([name, expression]) =>
        `${JSON.stringify(name)}: ${JSON.stringify(expression.replaceAll("all", source))}`,
    )
    .join(", ");
const objectOf = (source: string): string =>
  `{ ${Object.entries(TRANSFORMS)
    .map(([name, expression]) => `'${name}': ${expression.replaceAll("all", source)}`)
    .join(", ")} }`;

const SLOT = "credentials: { it: { strategy: strat_key } }";
const CREDENTIAL = "type: http, credential: it";
const REST = `
- { id: made, type: map, from: read, fields: { ${fieldsOf("said")} } }
- { id: out, type: output, refKey: out, from: made }`;
const MANY = "max_bytes: 50000000";

/** By name: the nodes, and what the target answers. */
const WAYS: Readonly<Record<string, { readonly nodes: string; readonly answer: (said: string) => Answer }>> =
  {
    "in the same node": {
      nodes: `
- { id: read, ${CREDENTIAL}, request: { url: /echo }, records: ${JSON.stringify(objectOf("said"))} }
- { id: out, type: output, refKey: out, from: read }`,
      answer: (said) => ({ json: { said } }),
    },
    "in a later node": {
      nodes: `
- { id: read, ${CREDENTIAL}, request: { url: /echo }, records: items }${REST}`,
      answer: (said) => ({ json: { items: [{ said }] } }),
    },
    "of a text, parsed later": {
      nodes: `
- { id: text, ${CREDENTIAL}, request: { url: /echo } }
- { id: read, type: parse, from: text, format: csv }${REST}`,
      answer: (said) => ({ text: `said,other\n"${said}",1\n` }),
    },
    "of a long body that is kept in a file": {
      nodes: `
- { id: read, ${CREDENTIAL}, request: { url: /echo }, ${MANY}, records: items }${REST}`,
      answer: (said) => ({ json: { filler: "x".repeat(300_000), items: [{ said }] } }),
    },
    "of a file that is saved, parsed later": {
      nodes: `
- { id: file, ${CREDENTIAL}, request: { url: /echo }, save: file, ${MANY} }
- { id: read, type: parse, from: file, format: ndjson }${REST}`,
      answer: (said) => ({ text: `${JSON.stringify({ said })}\n` }),
    },
    "of a sheet, which is packed": {
      nodes: `
- { id: file, ${CREDENTIAL}, request: { url: /echo }, save: file }
- { id: read, type: parse, from: file, format: xlsx }${REST}`,
      answer: (said) => ({
        bytes: xlsx({ one: [textCell("A1", "said"), textCell("A2", said)] }),
      }),
    },
    "of a sheet that the same node reads": {
      nodes: `
- { id: read, ${CREDENTIAL}, request: { url: /echo }, parse: { format: xlsx } }${REST}`,
      answer: (said) => ({
        bytes: xlsx({ one: [textCell("A1", "said"), textCell("A2", said)] }),
      }),
    },
    "of a page": {
      nodes: `
- { id: read, ${CREDENTIAL}, request: { url: /echo }, parse: { format: html, rows: p, columns: { said: "@title" } } }${REST}`,
      answer: (said) => ({ html: `<p title="${said}">x</p>` }),
    },
    "in another charset": {
      nodes: `
- { id: read, ${CREDENTIAL}, request: { url: /echo }, records: items }${REST}`,
      answer: (said) => ({
        bytes: Buffer.from(JSON.stringify({ items: [{ said }] }), "utf16le"),
        headers: { "content-type": "application/json; charset=utf-16le" },
      }),
    },
    "of an upload's answer": {
      nodes: `
- { id: sent, ${CREDENTIAL}, request: { url: /echo, method: POST, json: { a: 1 } }, records: ${JSON.stringify(objectOf("said"))} }
- { id: out, type: output, refKey: out, from: sent }`,
      answer: (said) => ({ json: { said } }),
    },
    "for each record": {
      nodes: `
- { id: first, type: http, credential: it, request: { url: /first }, records: items }
- { id: read, ${CREDENTIAL}, for_each: first, request: { url: /echo }, records: ${JSON.stringify(objectOf("said"))} }
- { id: out, type: output, refKey: out, from: read }`,
      answer: (said) => ({ json: { said } }),
    },
    "without the credential": {
      nodes: `
- { id: first, type: http, credential: it, request: { url: /first }, records: items }
- { id: read, type: http, request: { url: "{TARGET}/echo" }, records: items }${REST}`,
      answer: (said) => ({ json: { items: [{ said }] } }),
    },
  };

before(async () => {
  bench = await openBench([
    `
strategy: strat_key
account: acme
hosts: ["{TARGET}"]
fields: [{ key: key, type: password }]
login:
  type: http
  steps:
    - { request: { method: POST, url: /login, form: { k: "{{ $credential.key }}" } }, extract: { tok: { json: token } } }
  session: { headers: { X-Api-Key: "{{ $tok }}" } }`,
    ...Object.entries(WAYS).map(([name, { nodes }]) =>
      blueprint(keyOf(name), nodes, `${SLOT}\nhosts: ["{TARGET}"]`),
    ),
    ...["text", "not_text"].map((kind) =>
      blueprint(
        `oracle-${kind}`,
        `
- { id: read, ${CREDENTIAL}, request: { url: /echo }, expect: { ${kind}: SECRET-KEY-h }, records: items }
- { id: out, type: output, refKey: out, from: read }`,
        SLOT,
      ),
    ),
    blueprint(
      "pages",
      `
- { id: read, ${CREDENTIAL}, request: { url: /echo }, records: items, paginate: { cursor: "$join($reverse($split(said, '')), '')", param: at, max_pages: 2 } }
- { id: out, type: output, refKey: out, from: read }`,
      SLOT,
    ),
  ]);
  bench.target.on("POST /login", {
    headers: { "set-cookie": `sid=${COOKIE}; Path=/` },
    json: { token: TOKEN },
  });
  bench.target.on("GET /first", { json: { items: [{ n: 1 }] } });
});
after(() => bench?.[Symbol.asyncDispose]());

const keyOf = (name: string): string => name.replaceAll(/\W+/g, "-");

async function runOf(key: string): Promise<EndedRun> {
  const credential = await bench.connect("strat_key", { key: KEY });
  return await bench.run(key, { credential_id: credential });
}

/** Every piece of six letters of a secret, in either direction, whatever stands between the letters. */
function piecesIn(text: string): readonly string[] {
  const letters = text.replaceAll(/[^A-Za-z0-9]/g, "").toLowerCase();
  const decoded = [...text.matchAll(/[A-Za-z0-9+/]{24,}={0,2}/g)].map(([whole]) => {
    let piece = whole;
    for (let pass = 0; pass < 3; pass++) piece = Buffer.from(piece, "base64").toString("latin1");
    return piece.replaceAll(/[^A-Za-z0-9]/g, "").toLowerCase();
  });
  return [KEY, TOKEN, COOKIE].flatMap((secret) => {
    const forward = secret.replaceAll(/[^A-Za-z0-9]/g, "").toLowerCase();
    const backward = Array.from(forward).toReversed().join("");
    return [forward, backward].flatMap((each) =>
      Array.from({ length: each.length - 5 }, (_each, at) => each.slice(at, at + 6)).filter((piece) =>
        [letters, ...decoded].some((written) => written.includes(piece)),
      ),
    );
  });
}

for (const [name, { answer }] of Object.entries(WAYS)) {
  test(`an author's expressions never see a secret that the target gives back, ${name}`, async () => {
    const said = `${KEY} ${TOKEN} ${COOKIE}`;
    for (const method of ["GET", "POST"]) bench.target.on(`${method} /echo`, answer(said));
    const run = await runOf(keyOf(name));
    assert.equal(run.status.status, "completed", run.detail ?? "");
    const text = JSON.stringify(run.results);
    assert.match(text, /REDACTED|R E D A C T E D/);
    assert.deepEqual(piecesIn(text), [], text);
  });
}

test("an expectation does not tell what stands in a secret", async () => {
  bench.target.on("GET /echo", { json: { items: [{ said: KEY }] } });
  const told = await runOf("oracle-text");
  assert.deepEqual([told.status.status, told.kind], ["failed", "target"]);
  assert.match(told.detail ?? "", /expected text `SECRET-KEY-h` is not in the response/);
  assert.equal((await runOf("oracle-not_text")).status.status, "completed");
});

test("a cursor that is made of a secret does not reach the target", async () => {
  bench.target.on("GET /echo", ({ query }) => ({
    json: { items: [{ n: 1 }], ...(!query.has("at") && { said: KEY }) },
  }));
  const before = bench.target.seen("GET /echo").length;
  await runOf("pages");
  const sent = bench.target.seen("GET /echo").slice(before);
  assert.ok(sent.some(({ query }) => query.has("at")));
  assert.deepEqual(piecesIn(sent.map(({ query }) => query.toString()).join(" ")), []);
});
