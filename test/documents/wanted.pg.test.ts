// Documents that a newcomer wrote for ordinary applications, each the smallest example of one ability. They run against one target that
// behaves as those applications do.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { blueprint, dataOf, openBench, type Bench } from "./bench.ts";
import { to, type Handler, type Target } from "./target.ts";

let bench: Bench;

const filed = new Set<string>();
const IDS = [{ id: 1 }, { id: 2 }, { id: 3 }];

const OUT = "- { id: out, type: output, refKey: o, from: x }";
const wanted = (key: string, nodes: string, more = "hosts: ['{TARGET}']"): string =>
  blueprint(key, nodes.replaceAll("http://127.0.0.1:24172", "{TARGET}"), more);

const FOSSIL = "credentials: { repo: { strategy: strat_fossil } }";
const TICKET = "title: One, type: Code_Defect, severity: Minor, icomment: x, mutype: Plain Text";
const FILED = OUT.replace("from: x", "from: filed");

const DOCUMENTS: readonly string[] = [
  `strategy: strat_fossil
account: acme
hosts: ["{TARGET}"]
fields: [{ key: user, type: text }, { key: pass, type: password }]
login:
  type: http
  steps:
    - request: { url: /login }
    - submit: { form: form, fields: { u: "{{ $credential.user }}", p: "{{ $credential.pass }}" } }
      expect: { status: [302] }`,
  blueprint(
    "w-write-redirect",
    `- id: form
  type: http
  credential: repo
  request: { url: /tktnew }
  parse: { format: html, rows: "form", columns: { csrf: "input[name=csrf]@value" } }
- id: filed
  type: http
  credential: repo
  for_each: form
  follow: false
  request: { method: POST, url: /tktnew, headers: { Referer: "{TARGET}/tktnew" }, form: { csrf: "{{ csrf }}", ${TICKET}, submit: Submit } }
  expect: { status: [302], url: /tktview/ }
${FILED}`,
    FOSSIL,
  ),
  blueprint(
    "w-verify-html",
    `- { id: given, type: input, refKey: tickets, accepts: json, required: true }
- { id: rows, type: parse, from: given, format: json }
- id: filed
  type: http
  credential: repo
  for_each: rows
  request: { method: POST, url: /lossy, form: { title: "{{ title }}", icomment: "{{ $token }}" } }
  verify: { request: { url: /search, query: { s: "{{ $token }}" } }, text: "{{ $token }}", css: li }
${FILED}`,
    FOSSIL,
  ),
  blueprint(
    "w-verify-nothing",
    `- id: filed
  type: http
  credential: repo
  request: { method: POST, url: /lossy, form: { title: kept, icomment: "{{ $token }}" } }
  verify: { request: { url: /search }, text: "{{ $inputs.gone }}" }
  records: $
- { id: gone, type: input, refKey: gone }
${FILED}`,
    FOSSIL,
  ),
  wanted(
    "w-cursor-while",
    `- { id: x, type: http, request: { url: "http://127.0.0.1:24172/nested" }, paginate: { cursor: data.page.cursor, param: p, while: "$not($cursor = 2)" }, records: data.items }
${OUT}`,
  ),
  blueprint(
    "w-write-form",
    `- id: filed
  type: http
  credential: repo
  follow: false
  request: { url: /tktnew }
  submit: { form: form, fields: { ${TICKET}, submit: Submit } }
  expect: { status: [302], url: /tktview/ }
  refused: { status: [200], css: .error }
  extract: { ticket: { header: location } }
${FILED}`,
    FOSSIL,
  ),
  wanted(
    "w-foreach-pages",
    `- { id: parents, type: http, request: { url: "http://127.0.0.1:24172/orders?_limit=2" }, records: $ }
- id: children
  type: http
  for_each: parents
  request: { url: "http://127.0.0.1:24172/orders", query: { _page: 1, _limit: 10 } }
  paginate: { link_header: true }
  records: $
- { id: out, type: output, refKey: o, from: children }`,
  ),
  wanted(
    "w-foreach-parent",
    `- { id: x, type: http, request: { url: "http://127.0.0.1:24172/nested" }, records: data.items }
- { id: y, type: http, for_each: x, request: { url: "http://127.0.0.1:24172/nested?i={{ id }}" }, records: "data.items.{ 'parent': $record.id, 'id': id }" }
- { id: out, type: output, refKey: o, from: y }`,
  ),
  wanted(
    "w-foreach-file",
    `- { id: orders, type: http, request: { url: "http://127.0.0.1:24172/orders?_limit=3" }, records: $ }
- { id: each, type: http, for_each: orders, save: file, request: { url: "http://127.0.0.1:24172/orders/{{ id }}" } }
- { id: sent, type: http, for_each: each, request: { method: POST, url: "http://127.0.0.1:24172/archive", multipart: { number: "{{ id }}", order: { file: each, filename: "order-{{ id }}.json" } } } }
- { id: out, type: output, refKey: o, from: each }`,
  ),
  wanted(
    "w-write-parent",
    `- { id: given, type: input, refKey: rows, accepts: json }
- { id: rows, type: parse, from: given, format: json }
- id: x
  type: http
  for_each: rows
  request: { method: POST, url: "http://127.0.0.1:24172/echo", json: { id: "{{ id }}", lost: "{{ lost }}" } }
  expect: { json: "id = $record.id" }
  refused: { json: "no = $record.id" }
  verify: { request: { url: "http://127.0.0.1:24172/echo/{{ id }}" }, when: "id = $record.id" }
  records: "{ 'sent': $record.id, 'got': id }"
${OUT}`,
  ),
  wanted(
    "w-next-url",
    `- { id: x, type: http, request: { url: "http://127.0.0.1:24172/nested" }, paginate: { next_url: data.page.next }, records: data.items }
${OUT}`,
  ),
  wanted(
    "w-next-link",
    `- { id: x, type: http, request: { url: "http://127.0.0.1:24172/html" }, paginate: { next_css: "a[rel=next]@href" }, parse: { format: html, rows: li.r, columns: { p: ":scope" } } }
${OUT}`,
  ),
  wanted(
    "w-body-page",
    `- { id: x, type: http, effect: read, request: { method: POST, url: "http://127.0.0.1:24172/bodypage", json: { page: "{{ $page }}" } }, paginate: { page: 1 }, records: items }
${OUT}`,
  ),
  wanted(
    "w-until",
    `- { id: x, type: http, request: { url: "http://127.0.0.1:24172/total" }, paginate: { page: 1, param: page, while: "$page < total_pages" }, records: items }
${OUT}`,
  ),
  wanted(
    "w-expect-json",
    `- { id: x, type: http, effect: read, request: { method: POST, url: "http://127.0.0.1:24172/gql", json: { query: "{a}" } }, expect: { json: "$not($exists(errors))" }, records: data.items }
${OUT}`,
  ),
  wanted(
    "w-min-records",
    `- { id: x, type: http, request: { url: "http://127.0.0.1:24172/html" }, parse: { format: html, rows: li.gone, columns: { p: ":scope" } }, expect: { min_records: 1 } }
${OUT}`,
  ),
];

const SESSION = "A0B1C2D3E4F5A6B7C8D9";
/** As Fossil's: the token is made of the login's cookie, and the first button is not the one that files. */
const TICKET_FORM = `<form method=post action="/tktnew"><input type=hidden name=csrf value=${SESSION}>
<input name=title><select name=type><option>Code_Defect<option>Documentation</select>
<select name=severity><option>Critical<option>Minor</select><textarea name=icomment></textarea>
<select name=mutype><option>Wiki<option>Plain Text</select>
<input type=submit name=preview value=Preview><input type=submit name=submit value=Submit></form>`;

/** Three pages, and a 404 behind them. */
const ROUTES = (target: Target): Readonly<Record<string, Handler>> => ({
  "GET /login": { html: "<form method=post><input name=u><input name=p type=password></form>" },
  "POST /login": { status: 302, headers: { location: "/", "set-cookie": `fossil=${SESSION}; Path=/` } },
  "GET /tktnew": ({ headers }) =>
    headers.cookie === `fossil=${SESSION}` ? { html: TICKET_FORM } : { html: "<p>Please log in" },
  "POST /tktnew": (seen) => {
    const form = new URLSearchParams(seen.body);
    const isOwn = seen.headers.referer === `${target.url}/tktnew` && form.get("csrf") === SESSION;
    if (!isOwn || form.has("preview") || form.get("severity") !== "Minor")
      return { html: `<p class=error>No.</p>${TICKET_FORM}` };
    return form.get("title") === "lost" ? { drop: true } : to("/tktview/4f2a");
  },
  // Every answer is lost; `kept` is filed all the same, and anything else the next time.
  "POST /lossy": ({ body }, before) => {
    const form = new URLSearchParams(body);
    if (form.get("title") === "kept" || before > 1) filed.add(String(form.get("icomment")));
    return { drop: true };
  },
  "GET /search": ({ query }) => {
    const asked = String(query.get("s"));
    return { html: `<h1>Search</h1>${filed.has(asked) ? `<li>${asked}` : ""}` };
  },
  // Three orders, two a page.
  "GET /orders": ({ query }) => {
    const [limit, page] = [Number(query.get("_limit")), Number(query.get("_page") ?? 1)];
    if (limit !== 10) return { json: IDS.slice(0, limit) };
    const link = page === 1 ? { link: `<${target.url}/orders?_page=2&_limit=10>; rel="next"` } : {};
    return { json: page === 1 ? IDS.slice(0, 2) : IDS.slice(2), headers: link };
  },
  ...Object.fromEntries(IDS.map(({ id }) => [`GET /orders/${id}`, { json: { id, total: id * 10 } }])),
  "POST /archive": { json: {} },
  "POST /echo": ({ body }) => {
    const { id, lost } = JSON.parse(body) as { id: number; lost?: string };
    return lost === "answer" ? { drop: true } : { json: lost === "no" ? { no: id } : { id } };
  },
  "GET /echo/3": { json: { id: 3 } },
  "GET /nested": ({ query }) => {
    const page = Number(query.get("p") ?? 1);
    const next = page === 1 ? "?p=2" : page === 2 ? `${target.url}/nested?p=3` : null;
    return { json: { data: { items: [{ id: page }], page: { next, cursor: page + 1 } } } };
  },
  "GET /html": ({ query }) => {
    const page = Number(query.get("p") ?? 1);
    const next = page < 3 ? `<a rel=next href="/html?p=${page + 1}">Next</a>` : "";
    return { html: `<ul><li class=r>${page}</ul>${next}` };
  },
  "POST /bodypage": ({ body }) => {
    const { page } = JSON.parse(body) as { page: number };
    return { json: { items: page > 3 ? [] : [{ id: page }] } };
  },
  "GET /total": ({ query }) => {
    const page = Number(query.get("page"));
    return page > 3 ? { status: 404 } : { json: { total_pages: 3, items: [{ id: page }] } };
  },
  "POST /gql": { json: { errors: [{ message: "unknown field a" }], data: null } },
});

before(async () => {
  bench = await openBench(DOCUMENTS);
  for (const [route, handler] of Object.entries(ROUTES(bench.target))) bench.target.on(route, handler);
});
after(() => bench?.[Symbol.asyncDispose]());

test("pages: the next address in the body or in a link, the page in the body of a POST, and an end that the body says", async () => {
  const gave = async (key: string) => dataOf(await bench.run(key), "o");
  assert.deepEqual(await gave("w-next-url"), IDS);
  assert.deepEqual(
    await gave("w-next-link"),
    IDS.map(({ id }) => ({ p: String(id) })),
  );
  assert.deepEqual(await gave("w-body-page"), IDS);
  assert.equal(bench.target.seen("POST /bodypage").length, 4);
  assert.deepEqual(await gave("w-until"), IDS);
  assert.deepEqual(await gave("w-cursor-while"), IDS.slice(0, 2));
  assert.deepEqual(
    bench.target.seen("GET /total").map(({ query }) => query.get("page")),
    ["1", "2", "3"],
  );
});

test("for each record: its pages, its answer beside it, its file", async () => {
  assert.deepEqual(dataOf(await bench.run("w-foreach-pages"), "o"), [...IDS, ...IDS]);
  assert.deepEqual(dataOf(await bench.run("w-foreach-parent"), "o"), [{ parent: 1, id: 1 }]);
  const files = await bench.run("w-foreach-file");
  const text = (id: number) => JSON.stringify({ id, total: id * 10 });
  assert.deepEqual(
    dataOf(files, "o"),
    IDS.map(({ id }) => ({
      id,
      status: 200,
      file: {
        filename: null,
        content_type: "application/json",
        size_bytes: text(id).length,
        base64: Buffer.from(text(id)).toString("base64"),
      },
    })),
  );
  const sent = bench.target.seen("POST /archive").map(({ body }) => body);
  assert.equal(sent.length, 3);
  assert.ok(
    sent[2]?.includes(`filename="order-3.json"\r\nContent-Type: application/json\r\n\r\n${text(3)}\r\n`),
  );
});

test("a write is held against the record that it was made for", async () => {
  const run = async (...rows: readonly object[]) => await bench.run("w-write-parent", { rows });
  assert.deepEqual(dataOf(await run({ id: 1 }, { id: 2 }), "o"), [
    { sent: 1, got: 1 },
    { sent: 2, got: 2 },
  ]);
  const refused = await run({ id: 1, lost: "no" });
  assert.match(String(refused.detail), /record 0: the target refused it/);
  const found = await run({ id: 3, lost: "answer" });
  assert.deepEqual(dataOf(found, "o"), [{ id: 3, lost: "answer", status: "found" }]);
});

test("a form is filed: by its own hidden values by hand, and by `submit` without naming them", async () => {
  const credential = await bench.connect("strat_fossil", { user: "ana", pass: "anything but this" });
  const run = async (key: string) => {
    const { body } = await bench.trigger(key, { credential_id: credential });
    return await bench.ended(body.id);
  };
  const byHand = await run("w-write-redirect");
  assert.equal(dataOf(byHand, "o")[0].status, 302);
  assert.deepEqual(dataOf(await run("w-write-form"), "o"), [{ ticket: "/tktview/4f2a" }]);
  const [first, second] = bench.target.seen("POST /tktnew").map(({ body }) => new URLSearchParams(body));
  assert.deepEqual(Object.fromEntries(second ?? []), Object.fromEntries(first ?? []));
  assert.equal(bench.target.seen("POST /tktnew").length, 2);
});

test("a form that may have been filed is sent once, and an operator is asked; one that is not there begins no write", async () => {
  const node = (title: string, form: string) => `- id: filed
  type: http
  credential: repo
  request: { url: /tktnew }
  submit: { form: "${form}", fields: { ${TICKET.replace("One", title)}, submit: Submit } }
  on_unknown: fail
  extract: { ticket: { css: h1 } }
${FILED}`;
  await bench.apply(
    blueprint("w-form-lost", node("lost", "form"), FOSSIL),
    blueprint("w-form-gone", node("lost", "form#ticket"), FOSSIL),
  );
  const credential = await bench.connect("strat_fossil", { user: "ben", pass: "anything but that" });
  const before = bench.target.seen("POST /tktnew").length;
  const end = async (key: string) => {
    const { body } = await bench.trigger(key, { credential_id: credential });
    const run = await bench.ended(body.id);
    const writes = await bench.installation.database.db.query<{ status: string }>(
      "select status from run_write where run_id = $1",
      [run.id],
    );
    return [String(run.detail), writes.map(({ status }) => status)] as const;
  };
  const [lost, kept] = await end("w-form-lost");
  assert.match(lost, /submit form of \/tktnew may have happened: .*on_unknown: fail/);
  assert.deepEqual(kept, ["in_doubt"]);
  const [gone, none] = await end("w-form-gone");
  assert.match(gone, /submit form#ticket of \/tktnew: the previous page has no form `form#ticket`/);
  assert.deepEqual(none, []);
  assert.equal(bench.target.seen("POST /tktnew").length - before, 1);
});

test("a write is looked up in an HTML page, and sent again when it is not there", async () => {
  const credential = await bench.connect("strat_fossil", { user: "eve", pass: "anything at all" });
  const run = async (title: string) => {
    const { body } = await bench.trigger("w-verify-html", {
      credential_id: credential,
      tickets: [{ title }],
    });
    return dataOf(await bench.ended(body.id), "o");
  };
  assert.deepEqual(await run("kept"), [{ title: "kept", status: "found" }]);
  assert.equal(bench.target.seen("POST /lossy").length, 1);
  assert.deepEqual(await run("lost once"), [{ title: "lost once", status: "found" }]);
  assert.equal(bench.target.seen("POST /lossy").length, 3);
  const { body } = await bench.trigger("w-verify-nothing", { credential_id: credential });
  assert.match(
    String((await bench.ended(body.id)).detail),
    /: verify: `text` evaluates to nothing; it must be a string\.$/,
  );
});

test("a 200 with `errors`, and a page that has changed, fail the run", async () => {
  const gql = await bench.run("w-expect-json");
  assert.match(
    String(gql.detail),
    /^Node x: POST .*\/gql: expected `\$not\(\$exists\(errors\)\)` to be true/,
  );
  const rows = await bench.run("w-min-records");
  assert.match(String(rows.detail), /^Node x: GET .*\/html: no element matches `rows` \(`li\.gone`\)/);
});

const node = (rest: string): string => `- { id: x, type: http, ${rest} }\n${OUT}`;
const MISTAKES: readonly (readonly [node: string, problem: RegExp])[] = [
  [
    "request: { url: '{TARGET}/a' }, paginate: { page: 1 }, records: $",
    /nodes\[0\]\.paginate `page` needs `param`.*`\{\{ \$page \}\}`/,
  ],
  [
    "request: { url: '{TARGET}/a?p={{ $page }}' }, records: $",
    /nodes\[0\]\.request\.url `\$page` exists only in a request whose `paginate` has `page`/,
  ],
  [
    "request: { url: '{TARGET}/a?p={{ $cursor }}&q={{ $page }}' }, paginate: { page: 1 }, records: $",
    /nodes\[0\]\.request\.url `\$cursor` exists only in a request whose `paginate` has `cursor`/,
  ],
  [
    "request: { url: '{TARGET}/a' }, paginate: { cursor: n, param: c, while: '$offset < n' }, records: $",
    /nodes\[0\]\.paginate\.while `\$offset` exists only/,
  ],
  [
    "request: { url: '{TARGET}/a' }, paginate: { next_url: n }, parse: { format: html, rows: a, columns: { b: c } }",
    /nodes\[0\]\.paginate\.next_url .*`next_css`/,
  ],
  [
    "request: { url: '{TARGET}/a' }, records: '$record.id'",
    /nodes\[0\]\.records `\$record` exists only in expressions over an answer of a node with `for_each`/,
  ],
];

test("mistakes in pages and in `for_each` are refused by place, with the remedy", async () => {
  const problems = await bench.refusals(
    ...MISTAKES.map(([rest], index) => wanted(`wrong-${index}`, node(rest))),
  );
  assert.equal(problems.length, MISTAKES.length, problems.join("\n"));
  for (const [index, [, problem]] of MISTAKES.entries()) assert.match(String(problems[index]), problem);
});
