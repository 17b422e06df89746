// docs/nodes/http.md: requests of every kind, paging of every kind, records and in-place parsing.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { blueprint, dataOf, openBench, type Bench } from "./bench.ts";
import type { Seen } from "./target.ts";

let bench: Bench;

const HOSTS = 'hosts: ["{TARGET}"]';
const read = (rest: string) =>
  `- { id: read, type: http, ${rest} }\n- { id: out, type: output, refKey: out, from: read }`;
const url = (path: string) => `"{TARGET}${path}"`;
const paged = (paginate: string, more = "records: items") =>
  read(
    `request: { url: ${url("/pages")}, query: { q: "a&b", cursor: first } }, paginate: ${paginate}, ${more}`,
  );

const INPUTS = ["w", "n", "list", "gone"]
  .map((key) => `- { id: ${key}, type: input, refKey: ${key}, accepts: ${key === "w" ? "text" : "json"} }\n`)
  .join("");

const CASES: Readonly<Record<string, string>> = {
  "query-headers": `${INPUTS}${read(
    `request: { url: ${url("/items/{{ $inputs.w }}/x?fixed=1")}, query: { w: "{{ $inputs.w }}", n: "{{ $inputs.n }}", list: "{{ $inputs.list }}", both: ["{{ $inputs.n }}", z], gone: "{{ $inputs.gone }}", part: "p{{ $inputs.gone }}q", meta: "{{ $metadata.po }}", run: "{{ $run.key }}/{{ $run.id }}" }, headers: { X-W: "{{ $inputs.n }}-{{ $metadata.po }}", X-Gone: "{{ $inputs.gone }}" } }, records: $`,
  )}`,
  json: `${INPUTS}${read(
    `request: { method: POST, url: ${url("/search")}, json: { deep: { list: "{{ $inputs.list }}", w: ["{{ $inputs.w }}!"] }, n: "{{ $inputs.n }}", gone: "{{ $inputs.gone }}", fixed: null } }, effect: read, records: found`,
  )}`,
  form: `${INPUTS}${read(`request: { method: POST, url: ${url("/search")}, form: { w: "{{ $inputs.w }}", list: "{{ $inputs.list }}" } }, effect: read, records: found`)}`,
  text: `${INPUTS}${read(`request: { method: PUT, url: ${url("/search")}, headers: { content-type: application/xml }, text: "<w>{{ $inputs.w }}</w>" }, effect: read, records: found`)}`,
  head: `- { id: read, type: http, request: { method: HEAD, url: ${url("/head")} } }\n- { id: p, type: parse, from: read, format: csv }\n- { id: out, type: output, refKey: out, from: p }`,
  cursor: paged("{ cursor: meta.next, param: cursor, max_pages: 3 }"),
  page: paged("{ page: 1, param: page }"),
  "page-zero": paged("{ page: 0, param: p }"),
  offset: paged("{ offset: 0, param: skip, size: 2, size_param: top }"),
  "offset-open": paged("{ offset: 10, param: skip }"),
  link: paged("{ link_header: true }"),
  "link-csv": paged("{ link_header: true }", "parse: { format: csv }"),
  "cursor-json": paged("{ cursor: meta.next, param: cursor }", "parse: { format: json, records: items }"),
  records: `- { id: e, type: input, refKey: e, default: x }\n${read(`request: { url: ${url("/odd")} }, records: 'groups[kind = $inputs.e].rows.{ "id": id, "kind": %.kind, "run": $exists($run.id) }'`)}`,
  whole: read(`request: { url: ${url("/odd")} }, parse: { format: json }`),
  csv: read(`request: { url: ${url("/file.csv")} }, parse: { format: csv, delimiter: "\\t" }`),
  html: read(
    `request: { url: ${url("/page.html")} }, parse: { format: html, rows: "table tr:has(td)", columns: { name: "td.name", link: "td a@href", id: "@data-id", none: .absent } }`,
  ),
  text_value: `- { id: read, type: http, request: { url: ${url("/file.csv")} } }
- { id: rows, type: parse, from: read, format: csv, delimiter: "\\t" }
- { id: out, type: output, refKey: out, from: rows }`,
  expects: read(
    `request: { url: ${url("/odd-status")} }, expect: { status: [404, 200], text: items, not_text: failed }, records: items`,
  ),
};

before(async () => {
  const documents = Object.entries(CASES).map(([key, nodes]) =>
    blueprint(key, nodes, `${HOSTS}\nmetadata: [{ name: po }]`),
  );
  bench = await openBench(documents);
});
after(() => bench?.[Symbol.asyncDispose]());

const BODY = { w: "ö/.. &?", n: 7, list: ["a b", 2], po: "PO 1" };

/** Only what is of interest: the pairs of each request's query. */
const queriesOf = (seen: readonly Seen[]) =>
  seen.map(({ query }) => [...query].map((pair) => pair.join("=")).join("&"));

async function pagesOf(
  key: string,
): Promise<{ ids: readonly unknown[]; queries: readonly string[]; detail: string | null }> {
  const before = bench.target.all.length;
  const run = await bench.run(key);
  const ids = run.status.status === "completed" ? dataOf(run).map(({ id }) => id) : [];
  return { ids, queries: queriesOf(bench.target.all.slice(before)), detail: run.detail };
}

test("url, query and headers are templates; values can't leave their place, lists repeat, nothing leaves its key out", async () => {
  const path = `/items/${encodeURIComponent(BODY.w)}/x`;
  bench.target.on(`GET ${path}`, { json: {} });
  const run = await bench.run("query-headers", BODY);
  assert.equal(run.status.status, "completed", String(run.detail));
  const [seen] = bench.target.seen(`GET ${path}`);
  assert.ok(seen);
  assert.deepEqual(
    [...seen.query],
    [
      ["fixed", "1"],
      ["w", BODY.w],
      ["n", "7"],
      ["list", "a b"],
      ["list", "2"],
      ["both", "7"],
      ["both", "z"],
      ["part", "pq"],
      ["meta", "PO 1"],
      ["run", `${run.status.run_key}/${run.id}`],
    ],
  );
  assert.equal(seen.headers["x-w"], "7-PO 1");
  assert.equal(seen.headers["x-gone"], undefined);
});

test("a value that would climb out of its path fails the node", async () => {
  const run = await bench.run("query-headers", { ...BODY, w: ".." });
  assert.match(String(run.detail), /^Node read: request.url: a value is the path segment/);
});

test("json, form and text bodies by POST and PUT with effect: read", async () => {
  for (const method of ["POST", "PUT"])
    bench.target.on(`${method} /search`, { json: { found: [{ id: 1 }] } });
  for (const key of ["json", "form", "text"])
    assert.deepEqual(dataOf(await bench.run(key, BODY)), [{ id: 1 }], key);
  const [json, form] = bench.target.seen("POST /search");
  assert.deepEqual(JSON.parse(json?.body ?? ""), {
    deep: { list: ["a b", 2], w: [`${BODY.w}!`] },
    n: 7,
    fixed: null,
  });
  assert.equal(json?.headers["content-type"], "application/json");
  assert.deepEqual(
    [...new URLSearchParams(form?.body)],
    [
      ["w", BODY.w],
      ["list", "a b"],
      ["list", "2"],
    ],
  );
  const [text] = bench.target.seen("PUT /search");
  assert.deepEqual([text?.body, text?.headers["content-type"]], [`<w>${BODY.w}</w>`, "application/xml"]);
});

test("HEAD gives an empty text, and that is no record", async () => {
  bench.target.on("HEAD /head", {});
  assert.deepEqual(dataOf(await bench.run("head")), []);
});

test("paginate by cursor: its param replaces the query's own; the end is undefined, null, false or an empty text", async () => {
  for (const end of [{}, { next: null }, { next: false }, { next: "" }]) {
    bench.target.on("GET /pages", ({ query }) => {
      const cursor = query.get("cursor");
      const next = cursor === "first" ? { next: "c&2" } : cursor === "c&2" ? { next: 3 } : end;
      return { json: { items: [{ id: cursor }], meta: next } };
    });
    assert.deepEqual(await pagesOf("cursor"), {
      ids: ["first", "c&2", "3"],
      queries: ["q=a&b&cursor=first", "q=a&b&cursor=c&2", "q=a&b&cursor=3"],
      detail: null,
    });
    assert.deepEqual((await pagesOf("cursor-json")).ids, ["first", "c&2", "3"]);
  }
  bench.target.on("GET /pages", ({ query }) => {
    const next = `${query.get("cursor")}+`;
    return { json: { items: [{ id: next }], meta: { next } } };
  });
  assert.equal(
    (await pagesOf("cursor")).detail,
    "Node read: There are more pages than max_pages (3) allows.",
  );
});

test("paginate by page number, from 1 and from 0, until a page gives nothing", async () => {
  const pages =
    (param: string) =>
    ({ query }: Seen) => ({
      json: { items: Number(query.get(param)) < 3 ? [{ id: query.get(param) }] : [] },
    });
  bench.target.on("GET /pages", pages("page"));
  assert.deepEqual((await pagesOf("page")).queries, [
    "q=a&b&cursor=first&page=1",
    "q=a&b&cursor=first&page=2",
    "q=a&b&cursor=first&page=3",
  ]);
  bench.target.on("GET /pages", pages("p"));
  assert.deepEqual((await pagesOf("page-zero")).ids, ["0", "1", "2"]);
});

test("paginate by offset: grows by what came, ends with a page that is not full, or with none", async () => {
  const rows =
    (count: number) =>
    ({ query }: Seen) => {
      const skip = Number(query.get("skip"));
      return { json: { items: [skip, skip + 1].filter((id) => id < count).map((id) => ({ id })) } };
    };
  bench.target.on("GET /pages", rows(3));
  assert.deepEqual(await pagesOf("offset"), {
    ids: [0, 1, 2],
    queries: ["q=a&b&cursor=first&skip=0&top=2", "q=a&b&cursor=first&skip=2&top=2"],
    detail: null,
  });
  bench.target.on("GET /pages", rows(13));
  assert.deepEqual(
    (await pagesOf("offset-open")).queries.map((query) => query.split("skip=")[1]),
    ["10", "12", "13"],
  );
});

test("paginate by Link header: its URL as it is, relative or absolute, within the hosts only", async () => {
  const links = [
    '<{}/pages?at=2>; rel="prev next"',
    "</pages?at=3>; rel=next",
    '<https://elsewhere.invalid/>; rel="last"',
  ];
  const linked = (body: object) => (_seen: Seen, nth: number) => ({
    headers: { link: (links[(nth - first) % 3] ?? "").replace("{}", bench.target.url) },
    ...body,
  });
  let first = bench.target.seen("GET /pages").length;
  bench.target.on("GET /pages", linked({ json: { items: [{ id: 1 }] } }));
  assert.deepEqual((await pagesOf("link")).queries, ["q=a&b&cursor=first", "at=2", "at=3"]);
  first = bench.target.seen("GET /pages").length;
  bench.target.on("GET /pages", linked({ text: "id,name\n1,a\n2,b" }));
  assert.deepEqual((await pagesOf("link-csv")).ids, ["1", "2", "1", "2", "1", "2"]);
  bench.target.on("GET /pages", {
    headers: { link: "<https://elsewhere.invalid/x>; rel=next" },
    json: { items: [] },
  });
  const { detail } = await pagesOf("link");
  assert.match(String(detail), /^Node read: GET .*page 2: /);
});

test("records is an expression over the body; a list gives many, one object gives one, nothing none", async () => {
  bench.target.on("GET /odd", {
    json: {
      groups: [
        { kind: "x", rows: [{ id: 1 }, { id: 2 }] },
        { kind: "y", rows: [{ id: 3 }] },
      ],
    },
  });
  assert.deepEqual(dataOf(await bench.run("records")), [
    { id: 1, kind: "x", run: true },
    { id: 2, kind: "x", run: true },
  ]);
  assert.deepEqual(dataOf(await bench.run("records", { e: "y" })), [{ id: 3, kind: "y", run: true }]);
  assert.deepEqual(dataOf(await bench.run("records", { e: "none" })), []);
  assert.equal(dataOf(await bench.run("whole"))[0].groups.length, 2);
  bench.target.on("GET /odd", { json: [1] });
  const run = await bench.run("whole");
  assert.match(
    String(run.detail),
    /^Node read: GET .*: the response: item 0 is a number; every record must be an object/,
  );
  bench.target.on("GET /odd", { status: 204 });
  assert.deepEqual(dataOf(await bench.run("whole")), []);
});

test("parse in place: csv and html; the same text as a value for a later parse", async () => {
  bench.target.on("GET /file.csv", {
    bytes: Buffer.from("name\tpreis\nKäse\t1,50\n", "latin1"),
    headers: { "content-type": "text/csv; charset=iso-8859-1" },
  });
  const rows = [{ name: "Käse", preis: "1,50" }];
  assert.deepEqual(dataOf(await bench.run("csv")), rows);
  assert.deepEqual(dataOf(await bench.run("text_value")), rows);
  bench.target.on("GET /page.html", {
    html: `<table><tr><th>h<tr data-id=7><td class=name> A &amp; B <td><a href="/x?a=1&amp;b">x</a></tr><tr><td class=name>C</table>`,
  });
  assert.deepEqual(dataOf(await bench.run("html")), [
    { name: "A & B", link: "/x?a=1&b", id: "7", none: null },
    { name: "C", link: null, id: null, none: null },
  ]);
});

test("expect: listed statuses only, a text that must be there and one that must not", async () => {
  bench.target.on("GET /odd-status", { status: 404, json: { items: [{ id: 1 }] } });
  assert.deepEqual(dataOf(await bench.run("expects")), [{ id: 1 }]);
  const cases = [
    [{ status: 201, json: { items: [] } }, /returned 201; expected 404, 200\.$/],
    [{ json: {} }, /: expected text `items` is not in the response\.$/],
    [{ json: { items: [], failed: "s3cr3t" } }, /: the response contains `failed`\.$/],
  ] as const;
  for (const [answer, story] of cases) {
    bench.target.on("GET /odd-status", answer);
    const run = await bench.run("expects");
    assert.match(String(run.detail), story);
    assert.deepEqual(
      [run.kind, run.status.error.message],
      ["target", "The run did not complete. The operator's dashboard shows why."],
    );
  }
});
