import { test } from "node:test";
import assert from "node:assert/strict";
import type { JsonObject } from "#domain/json.ts";
import { check, dataOf, recordsOf, runNode, target } from "./node-context.ts";

const http = (request: JsonObject, rest: JsonObject = {}): JsonObject => ({ type: "http", request, ...rest });
const json = (value: unknown) => JSON.stringify(value);

test("next_url follows the address in the body, from where the page came from, and ends as a cursor does", async (t) => {
  let last: unknown;
  const { send, urls, origin } = await target(t, (_request, response, url) => {
    if (url.pathname === "/start") return response.writeHead(302, { location: "/v2/list?p=1" }).end();
    const at = Number(url.searchParams.get("p"));
    const next = at === 1 ? "list?p=2&k=%2C" : at === 2 ? `${origin}/v2/list?p=3#more` : last;
    return response.end(json({ items: [{ at }], page: { next } }));
  });
  const node = http(
    { url: "/start", query: { q: "x" } },
    { records: "items", paginate: { next_url: "page.next" } },
  );
  for (last of [undefined, null, false, ""]) {
    urls.length = 0;
    assert.deepEqual(await dataOf((await runNode(node, { send })).flow), [{ at: 1 }, { at: 2 }, { at: 3 }]);
    assert.deepEqual(urls, ["/start?q=x", "/v2/list?p=1", "/v2/list?p=2&k=%2C", "/v2/list?p=3"]);
  }
  for (const [value, problem] of [
    [7, /page 3: paginate.next_url evaluates to a number; it must be a url, or nothing at the end/],
    ["https://", /page 3: paginate.next_url is not a valid url/],
    ["https://evil.example/2", /page 4: .*its origin is not one of the allowed hosts/],
  ] as const) {
    last = value;
    await assert.rejects(recordsOf((await runNode(node, { send })).flow), problem);
  }
});

test("next_url of a search by POST keeps its body, and what is read as a stream otherwise is read whole", async (t) => {
  const bodies: string[] = [];
  const { send, urls } = await target(t, ({ body }, response, url) => {
    bodies.push(body);
    response.end(json({ items: [{ n: urls.length }], ...(url.search === "" && { next: "/s?p=2" }) }));
  });
  const node = http(
    { method: "POST", url: "/s", json: { q: "x" } },
    { effect: "read", records: "items", max_bytes: 50_000_000, paginate: { next_url: "next" } },
  );
  assert.deepEqual(await dataOf((await runNode(node, { send })).flow), [{ n: 1 }, { n: 2 }]);
  assert.deepEqual(
    [urls, bodies],
    [
      ["/s", "/s?p=2"],
      ['{"q":"x"}', '{"q":"x"}'],
    ],
  );
});

test("next_css follows the link of a page, from its <base>, by its href or another attribute", async (t) => {
  const { send, urls } = await target(t, (_request, response, url) => {
    const at = Number(url.searchParams.get("p") ?? 1);
    const base = url.pathname === "/based" ? '<base href="/other/">' : "";
    const next = at < 3 ? `<a rel=next href=" ?p=${at + 1} " data-next="/data?p=${at + 1}">more</a>` : "";
    response.setHeader("content-type", "text/html").end(`${base}<li class=r>${at}</li>${next}`);
  });
  const pages = async (url: string, link: string) => {
    urls.length = 0;
    const parse = { format: "html", rows: "li.r", columns: { p: ":scope" } };
    const { flow } = await runNode(http({ url }, { parse, paginate: { next_css: link } }), { send });
    return [await dataOf(flow), [...urls]];
  };
  const all = [{ p: "1" }, { p: "2" }, { p: "3" }];
  assert.deepEqual(await pages("/l?q=x", "a[rel=next]@href"), [all, ["/l?q=x", "/l?p=2", "/l?p=3"]]);
  assert.deepEqual(await pages("/based", "a[rel=next]"), [all, ["/based", "/other/?p=2", "/other/?p=3"]]);
  assert.deepEqual(await pages("/l", "a[rel=next]@data-next"), [all, ["/l", "/data?p=2", "/data?p=3"]]);
});

test("`$page`, `$cursor` and `$offset` stand anywhere in the request, with or without `param`", async (t) => {
  const asked: unknown[] = [];
  const all = Array.from({ length: 5 }, (_, n) => ({ n }));
  const { send } = await target(t, ({ body, headers }, response, url) => {
    const { page, cursor, offset } = JSON.parse(body) as { [key: string]: number };
    asked.push([url.search, headers["x-page"], page, cursor, offset]);
    const from = cursor ?? offset ?? ((page ?? 1) - 1) * 2;
    const items = all.slice(from, from + 2);
    response.end(json({ items, ...(from + 2 < 5 && { next: from + 2 }) }));
  });
  const run = async (body: JsonObject, paginate: JsonObject, rest: JsonObject = {}) => {
    asked.length = 0;
    const request = { method: "POST", url: "/s", json: body, ...rest };
    const { flow } = await runNode(http(request, { effect: "read", records: "items", paginate }), { send });
    return [(await dataOf(flow)).length, [...asked]];
  };
  assert.deepEqual(
    await run({ page: "{{ $page }}" }, { page: 1 }, { headers: { "x-page": "p{{ $page }}" } }),
    [5, [1, 2, 3, 4].map((page) => ["", `p${page}`, page, undefined, undefined])],
  );
  assert.deepEqual(await run({ cursor: "{{ $cursor }}" }, { cursor: "next", param: "c" }), [
    5,
    [undefined, 2, 4].map((at) => [at === undefined ? "" : `?c=${at}`, undefined, undefined, at, undefined]),
  ]);
  assert.deepEqual(await run({ offset: "{{ $offset }}", page: "{{ $page }}" }, { offset: 0, size: 2 }), [
    5,
    [0, 2, 4].map((at, index) => ["", undefined, index + 1, undefined, at]),
  ]);
});

test("`while` decides which page is the last one: none is asked for behind it, and one without records is none", async (t) => {
  const { send, urls } = await target(t, (_request, response, url) => {
    const page = Number(url.searchParams.get("p"));
    if (page > 4) return response.writeHead(404).end();
    return response.end(json({ items: page === 2 ? [] : [{ page }], total_pages: 4, total: 2 }));
  });
  const run = async (paginate: JsonObject) => {
    urls.length = 0;
    return await dataOf((await runNode(http({ url: "/" }, { records: "items", paginate }), { send })).flow);
  };
  assert.deepEqual(await run({ page: 1, param: "p", while: "$page < total_pages" }), [
    { page: 1 },
    { page: 3 },
    { page: 4 },
  ]);
  assert.deepEqual(urls, ["/?p=1", "/?p=2", "/?p=3", "/?p=4"]);
  // A name that is not there must not look like the end.
  await assert.rejects(
    run({ page: 1, param: "p", while: "$page < totalPages" }),
    /page 1: paginate.while evaluates to nothing; it must be true or false/,
  );
  assert.deepEqual(await run({ offset: 0, param: "p", while: "$offset + $count(items) < total" }), [
    { page: 0 },
    { page: 1 },
  ]);
});

test("`while` that stays true without records fails, and a cursor ends the pages all the same", async (t) => {
  const { send, urls } = await target(t, (_request, response) => response.end(json({ items: [] })));
  const run = async (paginate: JsonObject) =>
    await recordsOf((await runNode(http({ url: "/" }, { records: "items", paginate }), { send })).flow);
  await assert.rejects(
    run({ page: 1, param: "p", while: "true" }),
    /page 2 has no records, like page 1, and paginate.while is true for both/,
  );
  assert.equal(urls.length, 2);
  assert.deepEqual(await run({ cursor: "next", param: "c", while: "true" }), []);
});

const BLINDLY: readonly [JsonObject, JsonObject, string][] = [
  [{ next_url: "next" }, {}, "page 2 has the same next page as page 1"],
  [
    { page: 1 },
    { p: "{{ $page }}" },
    "has the same records as page 1: check that the target supports `$page` of the request.",
  ],
  [
    { cursor: "cursor" },
    { c: "{{ $cursor }}" },
    "has the same cursor and records as page 1: check that the target supports `$cursor` of the request.",
  ],
];
for (const [paginate, body, message] of BLINDLY)
  test(`a target that does not read what asks for the next page is asked twice: ${json(paginate)}`, async (t) => {
    const { send, urls } = await target(t, (_request, response) =>
      response.end(json({ items: [{ n: 1 }], next: `/?p=2#${urls.length}`, cursor: "again" })),
    );
    const request = { method: "POST", url: "/", json: body };
    const { flow } = await runNode(http(request, { effect: "read", records: "items", paginate }), { send });
    await assert.rejects(recordsOf(flow), (error: Error) => error.message.includes(message));
    assert.equal(urls.length, 2);
  });

test("what makes no sense is refused by place, with the remedy", () => {
  const html = { parse: { format: "html", rows: "li", columns: { a: ":scope" } } };
  const first = (paginate: JsonObject, rest: JsonObject = { records: "$" }, request: JsonObject = {}) =>
    check(http({ url: "/", ...request }, { paginate, ...rest }))
      .map(({ path, message }) => `${path.join(".")}: ${message}`)
      .join(" | ");
  assert.match(first({ page: 1 }), /^paginate: `page` needs `param`.*or `\{\{ \$page \}\}` in the request$/);
  assert.match(first({ cursor: "c" }, undefined, { query: { a: "{{ $page }}" } }), /or `\{\{ \$cursor \}\}`/);
  assert.match(first({ page: 1 }, undefined, { query: { a: "{{ $pages }} $page" } }), /needs `param`/);
  assert.equal(first({ page: 1 }, undefined, { url: "/p/{{ $page }}" }), "");
  for (const kind of [{ next_url: "n" }, { next_css: "a" }])
    assert.match(first({ ...kind, param: "p" }, html), /paginate.param: `param` is not allowed with/);
  assert.match(first({ next_url: "n", cursor: "c", param: "c" }), /^paginate: .* exactly one of/);
  assert.match(first({ next_url: "n" }, html), /^paginate.next_url: .*JSON body; .*`next_css`$/);
  assert.match(
    first({ page: 1, param: "p", while: "more" }, html),
    /^paginate.while: .*JSON body.*remove it$/,
  );
  assert.match(first({ next_css: "a" }), /^paginate.next_css: .*HTML page.*for JSON use `next_url`$/);
  assert.match(first({ next_css: "a" }, { parse: { format: "csv" } }), /^paginate.next_css: .*HTML page/);
  assert.match(first({ next_css: "a[" }, html), /^paginate.next_css: `a\[` is not a CSS selector$/);
  assert.match(first({ next_css: "@href" }, html), /^paginate.next_css: add a selector for the link/);
  assert.match(first({ next_url: "n" }, {}), /^paginate: only records can be paginated/);
  assert.match(first({ next_url: "n" }, { records: "$", effect: "write" }), /a write can't be paginated/);
  assert.match(first({ next_url: "n" }, { records: "a", max_bytes: 200_000_000 }), /^max_bytes: .*next_url/);
  assert.equal(first({ next_css: "a[rel=next]@href" }, html), "");
});
