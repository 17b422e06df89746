// A write that may have happened is looked up on a page: what is not found there is sent again, so a page that may be another one must not count.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { JsonObject } from "#domain/json.ts";
import { node as httpType } from "#nodes/types/http.ts";
import type { NodeContext } from "#nodes/define-node.ts";
import { blueprintNode, check, recordFlow, recordsOf, runNode, target } from "./node-context.ts";

const TOKEN = "0123456789abcdef0123456789abcdef";

interface Page {
  readonly status?: number;
  readonly body: string;
  readonly location?: string;
}

/** What becomes of a write in doubt, which is looked up on this page: `found`, `sent`, or why it failed. */
async function lookUp(
  t: TestContext,
  verify: JsonObject,
  pages: Readonly<Record<string, Page>>,
  record: JsonObject = { ref: 'A "1" & <2>' },
): Promise<string> {
  const { send } = await target(t, (request, response, url) => {
    const page = pages[url.pathname];
    if (request.method === "POST") response.end("ok");
    else if (page === undefined) response.writeHead(404).end("no such page");
    else
      response
        .writeHead(page.status ?? 200, {
          "content-type": "text/html",
          ...(page.location !== undefined && { location: page.location }),
        })
        .end(page.body);
  });
  const became: string[] = [];
  const unexpected = (): never => assert.fail("not in this test");
  const writes: NodeContext["writes"] = {
    token: () => TOKEN,
    known: async () => new Map([[0, { status: "in_doubt", outcome: null }]]),
    begin: async () => {},
    commit: unexpected,
    goOn: unexpected,
    send: async (request) => {
      became.push("sent");
      return await send(request);
    },
    finish: async (_ordinal, outcome) => {
      if ((outcome as JsonObject)["status"] === "found") became.push("found");
    },
    refuse: unexpected,
    ruleOut: async () => {},
    doubt: unexpected,
    askOperator: unexpected,
  };
  const document = { type: "http", for_each: "a", request: { method: "POST", url: "/new" }, verify };
  try {
    const { flow } = await runNode(document, { send, from: [recordFlow([record])], context: { writes } });
    await recordsOf(flow);
  } catch (error) {
    became.push((error as Error).message);
  }
  return became.join(", ");
}

const search = { url: "/search" };
const page = (body: string): Readonly<Record<string, Page>> => ({ "/search": { body } });

test("`text` is looked for in what a reader sees of a page, and not in what was searched for", async (t) => {
  const token = { request: search, text: "{{ $token }}" };
  assert.equal(await lookUp(t, token, page(`<li>${TOKEN}</li>`)), "found");
  assert.equal(await lookUp(t, token, page("<li>nothing</li>")), "sent");
  assert.equal(await lookUp(t, token, {}), "sent");
  assert.equal(await lookUp(t, token, { "/search": { status: 204, body: "" } }), "sent");
  const ref = { request: search, text: "ref: {{ ref }}" };
  for (const echo of [
    `<input value="ref: A">`,
    `<textarea>ref: A</textarea>`,
    `<script>"ref: A"</script>`,
    `<title>ref: A</title>`,
  ])
    assert.equal(await lookUp(t, ref, page(`${echo}<p>no results`), { ref: "A" }), "sent", echo);
  assert.equal(await lookUp(t, ref, page("<p>ref:\n <b>A</b> &#34;1&#34; &#x26;\n&lt;2>")), "found");
  assert.equal(await lookUp(t, ref, page("<p>ref: A 1")), "sent");
});

test("`text` is not put together from cells that stand apart, but from what stands in one", async (t) => {
  const verify = { request: search, text: "{{ ref }}" };
  const cells = page("<table><tr><td>12</td><td>34</td></table><p>12<mark>34</mark>5");
  assert.equal(await lookUp(t, verify, cells, { ref: "12345" }), "found");
  assert.equal(await lookUp(t, verify, page("<table><tr><td>12</td><td>34</td>"), { ref: "1234" }), "sent");
  assert.equal(await lookUp(t, verify, cells, { ref: "12 34" }), "found");
});

test("an empty `text`, which every page contains, finds nothing: the node fails and nothing is sent", async (t) => {
  const verify = { request: search, text: "{{ ref }}" };
  assert.match(
    await lookUp(t, verify, page("x"), { ref: "" }),
    /^POST \/new, record 0: verify: `text` evaluates to an empty string/,
  );
  assert.match(
    await lookUp(t, verify, page("x"), {}),
    /^[^:]*: verify: `text` evaluates to nothing; it must be a string\.$/,
  );
});

test("`css` holds values that can't leave their place in the selector", async (t) => {
  const verify = { request: search, css: 'tr[data-ref="{{ ref }}"] td.{{ kind }}' };
  const row = `<table><tr data-ref='A "1" &amp; &lt;2&gt;'><td class="7b">`;
  assert.equal(await lookUp(t, verify, page(row), { ref: 'A "1" & <2>', kind: "7b" }), "found");
  assert.equal(await lookUp(t, verify, page(row), { ref: "B", kind: "7b" }), "sent");
  for (const evil of ['"], *, [x="', "\\", "x\n", "a, *"])
    assert.equal(await lookUp(t, verify, page(row), { ref: evil, kind: evil }), "sent", evil);
});

test("all that is named must be there", async (t) => {
  const verify = { request: search, text: "{{ ref }}", css: "#results" };
  assert.equal(await lookUp(t, verify, page("<div id=results>B"), { ref: "B" }), "found");
  assert.equal(await lookUp(t, verify, page("<div id=results>"), { ref: "B" }), "sent");
  assert.equal(await lookUp(t, verify, page("<div>B"), { ref: "B" }), "sent");
});

test("a page that may be another one is not believed: after a redirect, or against `expect`", async (t) => {
  const verify = { request: search, text: "{{ $token }}" };
  const signIn = {
    "/search": { status: 302, body: "", location: "/sign-in" },
    "/sign-in": { body: "<form id=login>" },
  };
  assert.match(
    await lookUp(t, verify, signIn),
    /verify: the answer came after a redirect and may be a sign-in page/,
  );
  const careful = { ...verify, expect: { css: "#results" } };
  assert.match(
    await lookUp(t, careful, page("<form id=login>")),
    /verify: expected element `#results` is not in the response/,
  );
  assert.equal(await lookUp(t, careful, page("<div id=results>")), "sent");
  assert.equal(await lookUp(t, careful, page(`<div id=results>${TOKEN}`)), "found");
  assert.match(
    await lookUp(t, verify, { "/search": { status: 400, body: TOKEN } }),
    /returned 400; expected 200/,
  );
});

test("check: one way to tell, selectors, and a warning where any page would do", () => {
  const write = (verify: JsonObject): JsonObject => ({
    type: "http",
    request: { method: "POST", url: "/new" },
    verify,
  });
  const messages = (verify: JsonObject): readonly string[] =>
    check(write(verify)).map(({ path, message }) => `${path.join(".")}: ${message}`);
  const request = search;
  assert.match(messages({ request })[0] ?? "", /^verify: add a condition .*`when` .*`text` or `css`$/);
  assert.deepEqual(messages({ request, text: "a", css: "b" }), []);
  assert.match(messages({ request, css: "tr[" })[0] ?? "", /^verify\.css: `tr\[` is not a CSS selector/);
  assert.match(messages({ request, css: "tr{{ a" })[0] ?? "", /^verify\.css: the selector has a `\{\{`/);
  assert.match(messages({ request, text: "a", expect: { css: "b[" } })[0] ?? "", /^verify\.expect\.css: /);
  assert.deepEqual(messages({ request, css: "#r{{ id }}" }), []);
  const warned = (verify: JsonObject): number =>
    httpType.warn?.(blueprintNode(write(verify)).config).length ?? 0;
  assert.equal(warned({ request, text: "{{ $token }}" }), 1);
  assert.equal(warned({ request, text: "{{ $token }}", expect: { css: "#results" } }), 0);
  assert.equal(warned({ request, when: "true" }), 0);
  const asked = { request: { url: "/search", query: { s: "{{ $token }}" } }, expect: { css: "#results" } };
  assert.equal(warned({ ...asked, text: "{{ $token }}" }), 1);
  assert.equal(warned({ ...asked, css: 'td:contains("{{ $token }}")' }), 0);
});
