import { test } from "node:test";
import assert from "node:assert/strict";
import type { Json, JsonObject } from "#domain/json.ts";
import { nextLink } from "#nodes/http/link-header.ts";
import { dataOf, recordsOf, runNode, target } from "./node-context.ts";

const http = (request: JsonObject, rest: JsonObject = {}): JsonObject => ({ type: "http", request, ...rest });
const json = (value: unknown) => JSON.stringify(value);

test("cursor pages end at undefined, null, false and an empty text, and the cursor joins the node's own query", async (t) => {
  let last: Json | undefined;
  const { send, urls } = await target(t, (_request, response, url) => {
    const at = Number(url.searchParams.get("c") ?? 0);
    response.end(json({ items: [{ at }], next: at === 2 ? last : at + 1 }));
  });
  for (last of [undefined, null, false, ""]) {
    urls.length = 0;
    const { flow, seen } = await runNode(
      http({ url: "/l", query: { q: "x" } }, { records: "items", paginate: { cursor: "next", param: "c" } }),
      { send },
    );
    assert.deepEqual(await dataOf(flow), [{ at: 0 }, { at: 1 }, { at: 2 }]);
    assert.deepEqual(urls, ["/l?q=x", "/l?q=x&c=1", "/l?q=x&c=2"]);
    assert.deepEqual(
      seen.logged.map(({ fields }) => fields),
      [1, 2, 3].map((page) => ({ page, status: 200, records: 1 })),
    );
  }
  last = { a: 1 };
  const { flow } = await runNode(
    http({ url: "/l" }, { records: "items", paginate: { cursor: "next", param: "c" } }),
    { send },
  );
  await assert.rejects(recordsOf(flow), /GET \/l, page 3: paginate.cursor evaluates to an object/);
});

test("a cursor of 0 is a cursor", async (t) => {
  const { send, urls } = await target(t, (_request, response, url) =>
    response.end(json(url.searchParams.has("c") ? {} : { next: 0 })),
  );
  await recordsOf(
    (
      await runNode(http({ url: "/" }, { records: "items", paginate: { cursor: "next", param: "c" } }), {
        send,
      })
    ).flow,
  );
  assert.deepEqual(urls, ["/", "/?c=0"]);
});

test("a page that fails for a moment is retried alone", async (t) => {
  let failures = 1;
  const { send, urls } = await target(t, (_request, response, url) => {
    const at = Number(url.searchParams.get("p"));
    if (at === 2 && failures-- > 0) return response.writeHead(503).end();
    return response.end(json(at < 3 ? [{ at }] : []));
  });
  const { flow } = await runNode(http({ url: "/" }, { records: "$", paginate: { page: 1, param: "p" } }), {
    send,
  });
  assert.deepEqual(await dataOf(flow), [{ at: 1 }, { at: 2 }]);
  assert.deepEqual(urls, ["/?p=1", "/?p=2", "/?p=2", "/?p=3"]);
});

test("offset pages end with a short one, or, without a size, with an empty one", async (t) => {
  const all = Array.from({ length: 5 }, (_, n) => ({ n }));
  const { send, urls } = await target(t, (_request, response, url) => {
    const offset = Number(url.searchParams.get("offset"));
    response.end(json(all.slice(offset, offset + 2)));
  });
  const run = async (paginate: JsonObject) => {
    urls.length = 0;
    return dataOf(
      (await runNode(http({ url: "/", query: { offset: 99, z: 1 } }, { records: "$", paginate }), { send }))
        .flow,
    );
  };
  assert.deepEqual(await run({ offset: 0, param: "offset", size: 2 }), all);
  assert.deepEqual(urls, ["/?z=1&offset=0", "/?z=1&offset=2", "/?z=1&offset=4"]);
  assert.deepEqual(await run({ offset: 1, param: "offset", size: 2, size_param: "limit" }), all.slice(1));
  assert.deepEqual(urls, ["/?z=1&offset=1&limit=2", "/?z=1&offset=3&limit=2", "/?z=1&offset=5&limit=2"]);
  assert.deepEqual(await run({ offset: 0, param: "offset" }), all);
  assert.deepEqual(urls.at(-1), "/?z=1&offset=5");
});

test("link_header follows rel=next as it is written, and only within the hosts", async (t) => {
  const { send, urls } = await target(t, (_request, response, url) => {
    const at = Number(url.searchParams.get("p") ?? 1);
    if (url.pathname === "/evil") response.setHeader("link", '<https://evil.example/2>; rel="next"');
    else if (at < 3)
      response.setHeader("link", [
        `</other?p=9>; rel="last"`,
        `<?p=${at + 1}&k=%2C>; title="a, b"; rel="prefetch Next"`,
      ]);
    response.end(json([{ at }]));
  });
  const run = async (url: string) =>
    recordsOf(
      (
        await runNode(http({ url, query: { q: "x" } }, { records: "$", paginate: { link_header: true } }), {
          send,
        })
      ).flow,
    );
  assert.deepEqual(
    (await run("/l")).map(({ data }) => data),
    [{ at: 1 }, { at: 2 }, { at: 3 }],
  );
  assert.deepEqual(urls, ["/l?q=x", "/l?p=2&k=%2C", "/l?p=3&k=%2C"]);
  await assert.rejects(run("/evil"), {
    name: "NodeFailure",
    message: /page 2: .*its origin is not one of the allowed hosts \(http:[^)]*\)$/,
  });
});

test("RFC 8288: quoted separators, several relations, anchors, and headers that aren't links", () => {
  assert.equal(nextLink("<a,b;c>; rel=next"), "a,b;c");
  assert.equal(nextLink('<a>; title="x\\", <b>; rel=next"; rel=prev, <c>; REL="up NEXT"'), "c");
  assert.equal(nextLink('<a>; rel=next; anchor="#x"'), null);
  assert.equal(nextLink("<a>; rel=prev; rel=next"), null);
  for (const header of [
    "",
    ",,;",
    "<a",
    "a; rel=next",
    '<a>; rel="nex',
    "<a>; rel=nextt",
    "<".repeat(50_000),
  ])
    assert.equal(nextLink(header), null);
});

test("reaching max_pages with more to come fails the node, after the pages before it", async (t) => {
  const { send, urls } = await target(t, (_request, response, url) =>
    response.end(json({ items: [{ n: 1 }], next: `${url.searchParams.get("c") ?? ""}x` })),
  );
  const { flow } = await runNode(
    http({ url: "/" }, { records: "items", paginate: { cursor: "next", param: "c", max_pages: 3 } }),
    { send },
  );
  assert(flow?.kind === "records");
  let records = 0;
  await assert.rejects(
    async () => {
      for await (const batch of flow.batches) records += batch.length;
    },
    { name: "NodeFailure", message: "There are more pages than max_pages (3) allows." },
  );
  assert.deepEqual([records, urls.length], [3, 3]);
});

test("the last page within max_pages is no failure", async (t) => {
  const { send } = await target(t, (_request, response, url) =>
    response.end(json({ items: [{ n: 1 }], next: url.searchParams.has("c") ? null : "x" })),
  );
  const { flow } = await runNode(
    http({ url: "/" }, { records: "items", paginate: { cursor: "next", param: "c", max_pages: 2 } }),
    { send },
  );
  assert.equal((await recordsOf(flow)).length, 2);
});

test("10,000 records of 10 pages come page by page, in batches of at most 500, and a page is asked for when it is wanted", async (t) => {
  const { send, urls } = await target(t, (_request, response, url) => {
    const page = Number(url.searchParams.get("page"));
    response.end(
      json({
        items: page > 10 ? [] : Array.from({ length: 1_000 }, (_, n) => ({ n: (page - 1) * 1_000 + n })),
      }),
    );
  });
  const { flow } = await runNode(
    http({ url: "/" }, { records: "items", paginate: { page: 1, param: "page" } }),
    { send },
  );
  assert(flow?.kind === "records");
  assert.equal(urls.length, 0);
  let seen = 0;
  for await (const batch of flow.batches) {
    assert.equal(batch.length, 500);
    assert.equal(batch[0]?.data["n"], seen);
    seen += batch.length;
    assert.equal(urls.length, Math.ceil(seen / 1_000));
  }
  assert.deepEqual([seen, urls.length], [10_000, 11]);
});

test("a run that was stopped asks for no further page", async (t) => {
  const { send, urls } = await target(t, (_request, response) => response.end(json([{ n: 1 }])));
  const stop = new AbortController();
  const { flow } = await runNode(http({ url: "/" }, { records: "$", paginate: { page: 1, param: "p" } }), {
    send,
    signal: stop.signal,
  });
  assert(flow?.kind === "records");
  await assert.rejects(async () => {
    for await (const _ of flow.batches) stop.abort(new Error("run cancelled"));
  }, /run cancelled/);
  assert.equal(urls.length, 1);
});

const PAGED_BLINDLY: readonly [JsonObject, string][] = [
  [
    { cursor: "next", param: "c" },
    "GET /, page 2 has the same cursor and records as page 1: check that the target supports the parameter `c`.",
  ],
  [
    { page: 1, param: "p" },
    "GET /, page 2 has the same records as page 1: check that the target supports the parameter `p`.",
  ],
  [
    { offset: 0, param: "o", size: 2 },
    "GET /, page 2 has the same records as page 1: check that the target supports the parameter `o`.",
  ],
  [{ link_header: true }, "GET /, page 2 has the same next page as page 1."],
];
for (const [paginate, message] of PAGED_BLINDLY) {
  test(`a target that does not read what asks for the next page is asked twice: ${json(paginate)}`, async (t) => {
    const { send, urls } = await target(t, (_request, response) =>
      response
        .setHeader("link", "</?p=2>; rel=next")
        .end(json({ items: [{ n: 1 }, { n: 2 }], next: "again" })),
    );
    const { flow } = await runNode(http({ url: "/" }, { records: "items", paginate }), { send });
    await assert.rejects(recordsOf(flow), { name: "NodeFailure", message });
    assert.equal(urls.length, 2);
  });
}

test("pages that lead round in a circle end it", async (t) => {
  const { send, urls } = await target(t, (_request, response, url) => {
    const at = Number(url.searchParams.get("c") ?? 0);
    response.end(json({ items: [{ at }], next: (at + 1) % 3 }));
  });
  const { flow } = await runNode(
    http({ url: "/" }, { records: "items", paginate: { cursor: "next", param: "c" } }),
    { send },
  );
  await assert.rejects(recordsOf(flow), /page 4 has the same cursor and records as page 1/);
  assert.equal(urls.length, 4);
});

test("a cursor that stays the same while the records go on is one, and so are pages without records under new cursors", async (t) => {
  let asked = 0;
  const { send } = await target(t, (_request, response, url) => {
    asked += 1;
    const isScroll = url.pathname === "/scroll";
    const items = isScroll || asked % 2 === 0 ? [{ asked }] : [];
    response.end(json({ items, next: asked === 4 ? null : isScroll ? "scroll" : asked }));
  });
  const run = async (url: string) => {
    asked = 0;
    return await dataOf(
      (await runNode(http({ url }, { records: "items", paginate: { cursor: "next", param: "c" } }), { send }))
        .flow,
    );
  };
  assert.deepEqual(
    await run("/scroll"),
    [1, 2, 3, 4].map((n) => ({ asked: n })),
  );
  assert.deepEqual(await run("/sparse"), [{ asked: 2 }, { asked: 4 }]);
});
