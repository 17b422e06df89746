// No silent zero: a read that finds nothing says whether there is nothing, or the target has changed.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { Json, JsonObject } from "#domain/json.ts";
import { check, dataOf, recordFlow, runNode, target, textFlow } from "./node-context.ts";

interface Answer {
  readonly status?: number;
  readonly type?: string;
  readonly body: string;
}

/** What a node gives, why it fails, and what it warns of. */
async function read(t: TestContext, answer: Answer | ((url: URL) => Answer), node: JsonObject) {
  const { send } = await target(t, (_request, response, url) => {
    const {
      status = 200,
      type = "application/json",
      body,
    } = typeof answer === "function" ? answer(url) : answer;
    response.writeHead(status, { "content-type": type }).end(body);
  });
  const warnings: string[] = [];
  const warn = (why: string): void => void warnings.push(`warning: ${why}`);
  const reading = async () => {
    const { flow } = await runNode(
      { type: "http", request: { url: "/x" }, ...node },
      { send, from: [recordFlow([{ id: 1 }, { id: 2 }])], context: { warn } },
    );
    return await dataOf(flow);
  };
  const outcome = await reading().then(
    (data) => ({ data, failure: null }),
    (error: Error) => ({ data: null, failure: error.message }),
  );
  return { ...outcome, warnings };
}

const json = (value: Json): Answer => ({ body: JSON.stringify(value) });
const html = (body: string): Answer => ({ type: "text/html", body });

const PATHS: readonly (readonly [
  records: string,
  answer: Json,
  failure: string | null,
  warning: string | null,
])[] = [
  ["data.items", { data: { items: [] } }, null, null],
  ["data.items", { data: { items: null } }, null, null],
  ["data.items", { data: [{ items: [] }] }, null, null],
  ["items", { items: [] }, null, null],
  ["data.items", { data: {} }, null, "no `data.items`; the answer has the fields `data`"],
  ["items", { total: 0 }, null, "no `items`; the answer has the fields `total`"],
  [
    "data.items",
    { errors: [{ message: "no" }], data: null },
    "no `data.items`; the answer has the fields `errors`, `data`",
    null,
  ],
  ["data.items", { rows: [] }, "no `data.items`; the answer has the fields `rows`", null],
  ["data.items", {}, "no `data.items`; the answer is an empty object", null],
  ["items", "moved", "no `items`; the answer is a string", null],
  ["items", [], null, "no `items`; the answer is a list"],
];
// Read as a stream, and whole: for the cursor.
for (const paginate of [undefined, { cursor: "next", param: "c" }]) {
  for (const [records, answer, failure, warning] of PATHS) {
    test(`records: ${records} of ${JSON.stringify(answer)}${paginate === undefined ? "" : ", with a cursor"}`, async (t) => {
      const node = { records, ...(paginate && { paginate }) };
      const now = await read(t, json(answer), node);
      const place = paginate === undefined ? "GET /x" : "GET /x, page 1";
      assert.equal(now.failure, failure === null ? null : `${place}: ${failure}.`);
      assert.deepEqual(now.warnings, warning === null ? [] : [`warning: ${warning}`]);
      // In force since before: it only warns.
      const before = await read(t, json(answer), { ...node, edition: 1 });
      assert.deepEqual(before.data, []);
      assert.deepEqual(
        before.warnings,
        [failure ?? warning].filter((why) => why !== null).map((why) => `warning: ${why}`),
      );
      // The document says that none is fine.
      assert.deepEqual((await read(t, json(answer), { ...node, expect: { min_records: 0 } })).data, []);
    });
  }
}

test("what is shown of an answer is shown whole or not at all, so that nothing that is looked for is cut in two", async (t) => {
  const long = "k".repeat(41);
  const { failure } = await read(t, json({ [long]: 1, short: 2 }), { records: "data.items" });
  assert.equal(failure, "GET /x: no `data.items`; the answer has the fields `short`, ….");
  const titled = await read(t, html(`<title>${"t".repeat(101)}</title>`), { parse: ROWS });
  assert.doesNotMatch(titled.failure ?? "", /tttt/);
});

test("each request of a `for_each` that reads is asked the same", async (t) => {
  const each = { for_each: "rows", records: "data.items" };
  const now = await read(t, json({ errors: [] }), each);
  assert.equal(now.failure, "GET /x, record 0: no `data.items`; the answer has the fields `errors`.");
});

const PAGE = "<title>Sign in</title><table id=orders><tr class=head></table><p class=none>No orders</p>";
const ROWS = { format: "html", rows: "tr.order", columns: { n: "td" } };
const PAGES: readonly (readonly [name: string, parse: JsonObject, failure: RegExp | null])[] = [
  [
    "rows that nothing matches",
    ROWS,
    /^GET \/x: no element matches `rows` \(`tr\.order`\), and nothing indicates an empty list \(`within`, `empty`\); the page's title is "Sign in"\.$/,
  ],
  ["a table that is there", { ...ROWS, within: "table#orders" }, null],
  [
    "a table that is gone",
    { ...ROWS, within: "#list" },
    /no element matches `within` \(`#list`\); the page's title/,
  ],
  ["an element of emptiness", { ...ROWS, empty: { css: ".none" } }, null],
  ["another element", { ...ROWS, empty: { css: ".nothing" } }, /no element matches `rows`/],
  ["a text of emptiness", { ...ROWS, empty: { text: "No orders" } }, null],
  ["another text", { ...ROWS, empty: { text: "Nothing" } }, /no element matches `rows`/],
  [
    "a table that is gone, on a page that is empty",
    { ...ROWS, within: "#list", empty: { css: ".none" } },
    null,
  ],
];
for (const [name, parse, failure] of PAGES) {
  test(`html: ${name}`, async (t) => {
    const now = await read(t, html(PAGE), { parse });
    if (failure === null) assert.deepEqual([now.data, now.warnings], [[], []]);
    else assert.match(now.failure ?? "", failure);
    const before = await read(t, html(PAGE), { parse, edition: 1 });
    assert.deepEqual([before.data, before.warnings.length], [[], failure === null ? 0 : 1]);
  });
}

test("rows are looked for in `within` alone, and only the first page must have them", async (t) => {
  const page = (url: URL): Answer => {
    const at = Number(url.searchParams.get("p"));
    return html(
      at > 2 ? "<p>the end" : `<tr class=order><td>ad</table><table id=orders><tr class=order><td>${at}`,
    );
  };
  const parse = { ...ROWS, rows: ".order", within: "#orders" };
  const { data, failure } = await read(t, page, { parse, paginate: { page: 1, param: "p" } });
  assert.deepEqual([failure, data], [null, [{ n: "1" }, { n: "2" }]]);
});

test("a value that a `parse` node reads is asked the same; a list of XML without elements is empty", async () => {
  const parse = async (node: JsonObject, text: string) =>
    await dataOf((await runNode({ type: "parse", from: "v", ...node }, { from: [textFlow(text)] })).flow);
  await assert.rejects(parse(ROWS, PAGE), {
    name: "NodeFailure",
    message: /^The value: no element matches `rows`/,
  });
  await assert.rejects(parse({ format: "json", records: "a.b" }, "{}"), /^NodeFailure: The value: no `a\.b`/);
  const xml = { format: "xml", rows: "order", columns: { n: "n" } };
  assert.deepEqual(await parse(xml, "<orders/>"), []);
  assert.deepEqual(await parse({ ...xml, within: "orders" }, "<orders/>"), []);
  await assert.rejects(
    parse({ ...xml, within: "orders" }, "<fault/>"),
    /no element matches `within` \(`orders`\)/,
  );
});

test("`expect.min_records` counts all pages, or all requests; 204 is empty", async (t) => {
  const paged = (url: URL): Answer =>
    json(Number(url.searchParams.get("p")) === 1 ? [{ n: 1 }, { n: 2 }] : []);
  const node = (fewest: number): JsonObject => ({
    records: "$",
    paginate: { page: 1, param: "p" },
    expect: { min_records: fewest },
  });
  assert.equal((await read(t, paged, node(2))).data?.length, 2);
  assert.equal((await read(t, paged, node(3))).failure, "GET /x returned 2 records; expected at least 3.");
  const each = { for_each: "rows", records: "items" };
  const two = json({ items: [{ n: 1 }] });
  assert.equal((await read(t, two, { ...each, expect: { min_records: 2 } })).data?.length, 2);
  assert.equal(
    (await read(t, two, { ...each, expect: { min_records: 3 } })).failure,
    "GET /x, all requests together returned 2 records; expected at least 3.",
  );
  const none = await read(t, { status: 204, body: "" }, { records: "data.items" });
  assert.deepEqual([none.data, none.warnings], [[], []]);
});

test("`min_records` belongs to reads that give records, and selectors are selectors", () => {
  const found = (node: JsonObject) =>
    check({ type: "http", request: { url: "/x" }, ...node }).map(
      ({ path, message }) => `${path.join(".")}: ${message}`,
    );
  const expect = { min_records: 1 };
  assert.deepEqual(found({ records: "$", expect }), []);
  assert.match(found({ expect })[0] ?? "", /^expect\.min_records: only records are counted/);
  assert.match(
    found({ request: { url: "/x", method: "POST" }, records: "$", expect })[0] ?? "",
    /^expect\.min_records: `min_records` is only for reads/,
  );
  assert.match(
    found({ parse: { ...ROWS, within: "[" } })[0] ?? "",
    /^parse\.within: `\[` is not a CSS selector/,
  );
  assert.match(
    found({ parse: { ...ROWS, empty: { css: "[" } } })[0] ?? "",
    /^parse\.empty\.css: `\[` is not/,
  );
  assert.match(found({ parse: { ...ROWS, empty: {} } })[0] ?? "", /schema/);
  assert.match(
    found({ parse: { format: "csv", within: "a" } })[0] ?? "",
    /`within` is not a key of the format csv/,
  );
});
