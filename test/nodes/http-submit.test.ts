import { test, type TestContext } from "node:test";
import assert from "node:assert/strict";
import type { JsonObject } from "#domain/json.ts";
import { check, dataOf, recordFlow, recordsOf, runNode, target } from "./node-context.ts";

const PAGE = `<base href="/app/"><form id=search action=find><input type=hidden name=csrf value="t&amp;1">
<input name=q value=old><select name=kind><option>a<option>b</select>
<button name=preview value=1>Preview</button><button name=go value=Go formaction=found>Find</button></form>`;

/** A page with a form, and what is sent from there as records. */
async function formTarget(t: TestContext) {
  const { send, urls } = await target(t, (request, response, url) => {
    response.setHeader("content-type", "text/html");
    if (url.pathname === "/start") return response.writeHead(302, { location: "/page?s=1#top" }).end();
    if (url.pathname === "/page") return response.end(PAGE);
    if (url.pathname === "/bare") return response.end("<p>Sign in");
    const items = {
      path: url.pathname,
      referer: request.headers.referer,
      sent: Object.fromEntries(url.searchParams),
    };
    return response.setHeader("x-total", "7").end(JSON.stringify({ items, html: "<b>1</b>", id: 5 }));
  });
  return { send, urls };
}

const node = (rest: JsonObject, url = "/start"): JsonObject => ({
  type: "http",
  effect: "read",
  request: { url },
  ...rest,
});
const form = (fields: JsonObject, more: JsonObject = {}): JsonObject => ({
  submit: { form: "#search", fields, ...more },
});

test("a form of the page that `request` asks for is sent with its hidden inputs, from where the page came", async (t) => {
  const { send, urls } = await formTarget(t);
  const { flow } = await runNode(node({ ...form({ q: "x" }, { add: { js: 1 } }), records: "items" }), {
    send,
  });
  const [{ path, referer, sent }] = (await dataOf(flow)) as [
    { path: string; referer: string; sent: JsonObject },
  ];
  assert.deepEqual(urls.slice(0, 2), ["/start", "/page?s=1"]);
  assert.deepEqual([path, sent], ["/app/find", { csrf: "t&1", kind: "a", preview: "1", q: "x", js: "1" }]);
  assert.match(referer, /^http:.*\/page\?s=1$/);
});

test("a button that is named is the one that is pressed, and leads where it says", async (t) => {
  const { send } = await formTarget(t);
  const { flow } = await runNode(node({ ...form({ go: "Go" }), records: "items" }), { send });
  const [{ path, sent }] = (await dataOf(flow)) as [{ path: string; sent: JsonObject }];
  assert.deepEqual([path, sent], ["/app/found", { csrf: "t&1", q: "old", kind: "a", go: "Go" }]);
});

test("for each record the page is asked for anew, and the record is the root of what is filled in", async (t) => {
  const { send, urls } = await formTarget(t);
  const { flow } = await runNode(
    node(
      {
        ...form({ q: "{{ word }}" }),
        for_each: "rows",
        records: "items.{ 'q': sent.q, 'of': $record.word }",
      },
      "/page",
    ),
    { send, from: [recordFlow([{ word: "a" }, { word: "b" }])] },
  );
  assert.deepEqual(await dataOf(flow), [
    { q: "a", of: "a" },
    { q: "b", of: "b" },
  ]);
  assert.deepEqual(
    urls.map((url) => url.split("?")[0]),
    ["/page", "/app/find", "/page", "/app/find"],
  );
});

test("what the form does not have fails, with the names that it has, and nothing is sent", async (t) => {
  const { send, urls } = await formTarget(t);
  const fails = async (rest: JsonObject, message: RegExp, url = "/page") => {
    const reading = async () =>
      await recordsOf((await runNode(node({ ...rest, records: "items" }, url), { send })).flow);
    await assert.rejects(
      reading(),
      (error: Error) => error.name === "NodeFailure" && message.test(error.message),
    );
  };
  await fails(
    form({ query: "x" }),
    /^submit #search of \/page: the form `#search` has no control `query`; it has `csrf`, `q`, `kind`/,
  );
  await fails(form({ kind: "c" }), /not an option of the control `kind`; it has `a`, `b`\.$/);
  await fails(form({ q: "x" }), /the previous page has no form `#search`; it has no form at all\.$/, "/bare");
  await fails({ submit: { form: "#search", fields: { q: { a: 1 } } } }, /fields\.q evaluates to an object/);
  assert(
    urls.every((url) => !url.startsWith("/app")),
    urls.join(" "),
  );
});

test("`extract` gives a record of values: html, a regular expression, JSON and a header, as data", async (t) => {
  const { send } = await target(t, (_request, response, url) =>
    response
      .setHeader("x-total", "7")
      .end(url.pathname === "/json" ? '{"a":{"b":[1]},"n":1}' : "<title>T</title><a href=/x>Ticket 42</a>"),
  );
  const extracted = async (url: string, extract: JsonObject, each: JsonObject = {}) => {
    const { flow } = await runNode(
      { type: "http", request: { url }, extract, ...each },
      {
        send,
        from: [recordFlow([{ id: 1 }, { id: 2 }])],
      },
    );
    return await dataOf(flow);
  };
  const page = {
    title: { css: "title" },
    link: { css: "a", attr: "href" },
    number: { regex: "Ticket ([0-9]+)" },
    whole: { regex: "Ticket ([0-9]+)", group: 0 },
    total: { header: "X-Total" },
    gone: { css: "#gone", required: false },
  };
  const found = { title: "T", link: "/x", number: "42", whole: "Ticket 42", total: "7", gone: null };
  assert.deepEqual(await extracted("/page", page), [found]);
  assert.deepEqual(await extracted("/page", page, { for_each: "rows", concurrency: 2 }), [
    { id: 1, status: 200, ...found },
    { id: 2, status: 200, ...found },
  ]);
  assert.deepEqual(
    await extracted("/json", { list: { json: "a.b" }, of: { json: "$record.id + n" } }, { for_each: "rows" }),
    [
      { id: 1, status: 200, list: [1], of: 2 },
      { id: 2, status: 200, list: [1], of: 3 },
    ],
  );
  await assert.rejects(
    extracted("/page", { x: { css: "#gone", attr: "href" } }),
    /^NodeFailure: GET \/page: extract x found nothing \(css `#gone`, attr `href`\)\.$/,
  );
});

test("what makes no sense is refused by place, with the remedy", () => {
  const refusal = (rest: JsonObject, request: JsonObject = {}) =>
    check({ type: "http", request: { url: "/", ...request }, ...rest })
      .map(({ path, message }) => `${path.join(".")}: ${message}`)
      .join(" | ");
  const submit = { form: "form", fields: { a: 1 } };
  assert.equal(refusal({ submit }), "");
  assert.match(
    refusal({ submit }, { method: "POST" }),
    /^request\.method: with `submit`, the request gets the form's page/,
  );
  assert.match(refusal({ submit: { ...submit, form: "f[" } }), /^submit\.form: `f\[` is not a CSS selector$/);
  assert.match(refusal({ submit: { form: "f", fields: {} } }), /schema/);
  assert.match(
    refusal({ submit, effect: "read", records: "$", paginate: { page: 1, param: "p" } }),
    /^paginate: a form is submitted once and has no pages/,
  );
  assert.match(refusal({ submit, save: "file" }), /^save: the answer of a write is not a file/);
  assert.match(refusal({ submit }, { json: {} }), /^request\.json: a GET request has no body/);
  for (const [extract, problem] of [
    [{ a: {} }, /^extract\.a: an extract must have exactly one of `css`, `json`, `regex`, `header`$/],
    [{ a: { css: "a", json: "b" } }, /exactly one of/],
    [{ a: { css: "[" } }, /^extract\.a\.css: `\[` is not a CSS selector$/],
    [{ a: { regex: "(?=x)" } }, /^extract\.a\.regex: .*not an RE2/],
    [{ a: { regex: "x", group: 1 } }, /^extract\.a\.group: the regular expression has 0 groups$/],
    [{ a: { header: "x", attr: "y" } }, /^extract\.a\.attr: `attr` needs `css`$/],
    [{ a: { cookie: "sid" } }, /schema/],
    [{ a: { css: "a", secret: true } }, /schema/],
  ] as const)
    assert.match(refusal({ extract }), problem, JSON.stringify(extract));
  assert.match(
    refusal({ extract: { a: { css: "a" } }, records: "$" }),
    /one of `records`, `parse`, `extract` and `save`/,
  );
});
