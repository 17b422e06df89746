// Documents that a newcomer wrote for ordinary applications, each the smallest example of one ability. They run against one target that
// behaves as those applications do.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { blueprint, dataOf, openBench, type Bench } from "./bench.ts";
import type { Handler, Target } from "./target.ts";

let bench: Bench;

const OUT = "- { id: out, type: output, refKey: o, from: x }";
const wanted = (key: string, nodes: string, more = "hosts: ['{TARGET}']"): string =>
  blueprint(key, nodes.replaceAll("http://127.0.0.1:24172", "{TARGET}"), more);

const DOCUMENTS: readonly string[] = [
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

/** Three pages, and a 404 behind them. */
const ROUTES = (target: Target): Readonly<Record<string, Handler>> => ({
  "GET /nested": ({ query }) => {
    const page = Number(query.get("p") ?? 1);
    const next = page === 1 ? "?p=2" : page === 2 ? `${target.url}/nested?p=3` : null;
    return { json: { data: { items: [{ id: page }], page: { next } } } };
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

const IDS = [{ id: 1 }, { id: 2 }, { id: 3 }];

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
  assert.deepEqual(
    bench.target.seen("GET /total").map(({ query }) => query.get("page")),
    ["1", "2", "3"],
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
];

test("mistakes in pages are refused by place, with the remedy", async () => {
  const problems = await bench.refusals(
    ...MISTAKES.map(([rest], index) => wanted(`wrong-${index}`, node(rest))),
  );
  assert.equal(problems.length, MISTAKES.length, problems.join("\n"));
  for (const [index, [, problem]] of MISTAKES.entries()) assert.match(String(problems[index]), problem);
});
