import { tmpdir } from "node:os";
import { test } from "node:test";
import assert from "node:assert/strict";
import type { JsonObject } from "#domain/json.ts";
import { validRecord } from "#domain/record.ts";
import { Scratch } from "#engine/outputs/spool.ts";
import type { NodeContext } from "#nodes/define-node.ts";
import { batches, check, dataOf, recordFlow, recordsOf, runNode, spillTo, target } from "./node-context.ts";

const http = (request: JsonObject, rest: JsonObject = {}): JsonObject => ({
  type: "http",
  for_each: "rows",
  request,
  ...rest,
});
const json = (value: unknown) => JSON.stringify(value);
const ids = (count: number) => Array.from({ length: count }, (_, id) => ({ id }));

test("the pages of every record come in the order of the records, and `$record` is the record of the request", async (t) => {
  let atOnce = 0;
  let mostAtOnce = 0;
  const { send, urls } = await target(t, (_request, response, url) => {
    mostAtOnce = Math.max(mostAtOnce, ++atOnce);
    const [order = 0, page = 0] = ["o", "p"].map((name) => Number(url.searchParams.get(name)));
    // The first record is the slowest.
    setTimeout(
      () => {
        atOnce -= 1;
        response.end(json({ of: order, last: 3, items: [{ line: page }] }));
      },
      order === 0 ? 30 : 1,
    );
  });
  const node = http(
    { url: "/l?o={{ id }}" },
    {
      paginate: { page: 1, param: "p", while: "$page < last and $record.id = of" },
      expect: { json: "of = $record.id" },
      records: "items.{ 'order': $record.id, 'line': line }",
    },
  );
  const lines = ids(5).flatMap(({ id }) => [1, 2, 3].map((line) => ({ order: id, line })));
  for (const concurrency of [1, 3]) {
    [mostAtOnce, urls.length] = [0, 0];
    const { flow } = await runNode({ ...node, concurrency }, { from: [recordFlow(ids(5), 2)], send });
    assert.deepEqual(await dataOf(flow), lines);
    assert.equal(urls.length, 15);
    assert.equal(mostAtOnce, concurrency);
  }
});

test("records keep `errors` and `isValid` of the record that they are made for, in any format", async (t) => {
  const { send } = await target(t, (_request, response, url) => {
    if (url.pathname === "/csv") return response.end(`n\n${url.search}\n`);
    return response.setHeader("content-type", "text/html").end(`<li>${url.search}</li>`);
  });
  const error = { field: "id", code: "bad", message: "Bad" };
  const rows = [validRecord({ id: 1 }), { data: { id: 2 }, errors: [error], isValid: false }];
  const formats = [
    ["/csv", { format: "csv" }],
    ["/html", { format: "html", rows: "li", columns: { n: ":scope" } }],
  ] as const;
  for (const [path, parse] of formats) {
    const from = [{ kind: "records" as const, batches: batches(rows) }];
    const { flow } = await runNode(http({ url: `${path}?{{ id }}` }, { parse }), { from, send });
    assert.deepEqual(await recordsOf(flow), [
      { data: { n: "?1" }, errors: [], isValid: true },
      { data: { n: "?2" }, errors: [error], isValid: false },
    ]);
  }
});

test("a page is asked for when it is wanted, and records that wait for others are few in memory", async (t) => {
  const { send, urls } = await target(t, (_request, response, url) => {
    const page = Number(url.searchParams.get("p"));
    response.end(json(page > 3 ? [] : [{ text: `${page}`.repeat(url.pathname === "/long" ? 100_000 : 10) }]));
  });
  const scratch = new Scratch(tmpdir(), `run_each${process.pid}`, 1);
  t.after(async () => await scratch[Symbol.asyncDispose]());
  let spilled = 0;
  const spill: NodeContext["spill"] = async (records) => {
    spilled += 1;
    return await spillTo(scratch)(records);
  };
  const run = async (url: string, concurrency: number) => {
    const node = { ...http({ url }, { records: "$", paginate: { page: 1, param: "p" } }), concurrency };
    return (await runNode(node, { from: [recordFlow(ids(4))], send, context: { spill } })).flow;
  };
  const streamed = await run("/long", 1);
  assert(streamed?.kind === "records");
  let most = 0;
  for await (const batch of streamed.batches) most = Math.max(most, batch.length);
  assert.deepEqual([spilled, urls.length], [0, 16]);
  assert(most <= 4, `${most} records of 100 kB in one batch`);
  assert.equal((await recordsOf(await run("/short", 2))).length, 12);
  assert.equal(spilled, 0);
  assert.equal((await recordsOf(await run("/long", 2))).length, 12);
  assert.equal(spilled, 4);
});

test("after one fails no other is begun, those under way end at their next page, and the failure names the record", async (t) => {
  const { send, urls } = await target(t, (_request, response, url) => {
    if (url.searchParams.get("o") === "1") return response.writeHead(404).end();
    return setTimeout(() => response.end(json([{ page: url.searchParams.get("p") }])), 20);
  });
  const node = http(
    { url: "/l?o={{ id }}" },
    { records: "$", paginate: { page: 1, param: "p" }, concurrency: 2 },
  );
  const { flow } = await runNode(node, { from: [recordFlow(ids(50))], send });
  await assert.rejects(recordsOf(flow), {
    name: "NodeFailure",
    message: "GET /l?o={{ id }}, record 1, page 1 returned 404; expected 200 to 299.",
  });
  assert(urls.length <= 3, urls.join(" "));
});

test("a failure stops the others also while nobody asks for records", async (t) => {
  const failed = Promise.withResolvers<void>();
  const { send, urls } = await target(t, (_request, response, url) => {
    const [order = 0, page = 0] = ["o", "p"].map((name) => Number(url.searchParams.get(name)));
    if (order === 1 && page === 2) {
      response.writeHead(404).end();
      return void setTimeout(failed.resolve, 20);
    }
    const text = `${page}`.repeat(order === 0 ? 300_000 : 1);
    const answer = json(order === 0 && page > 3 ? [] : [{ text, page }]);
    // The one that fails does so while the first one's records are read.
    return void setTimeout(() => response.end(answer), order === 1 ? 100 : 3);
  });
  const node = http(
    { url: "/l?o={{ id }}" },
    { records: "$", paginate: { page: 1, param: "p" }, concurrency: 3 },
  );
  const { flow } = await runNode(node, { from: [recordFlow(ids(3))], send });
  assert(flow?.kind === "records");
  await assert.rejects(async () => {
    for await (const _ of flow.batches) {
      await failed.promise;
      const before = urls.length;
      await new Promise((resolve) => setTimeout(resolve, 30));
      assert.equal(urls.length, before);
    }
  }, /record 1, page 2 returned 404/);
});

test("a run that is stopped ends what is under way", async (t) => {
  const { send, urls } = await target(t, (_request, response, url) =>
    response.end(json([{ page: url.searchParams.get("p") }])),
  );
  const node = http({ url: "/" }, { records: "$", paginate: { page: 1, param: "p" }, concurrency: 3 });
  const stop = new AbortController();
  const { flow } = await runNode(node, {
    from: [recordFlow(ids(20))],
    send: async (request) => {
      if (urls.length >= 9) stop.abort(new Error("run cancelled"));
      return await send(request);
    },
    signal: stop.signal,
  });
  await assert.rejects(recordsOf(flow), /run cancelled/);
  assert(urls.length <= 12, String(urls.length));
});

const BYTES = Buffer.from([0xff, 0, 1, 2, 0x25, 0x50, 0x44, 0x46]);
const FILE = {
  filename: "a 7.pdf",
  content_type: "application/pdf",
  size_bytes: 8,
  base64: BYTES.toString("base64"),
};

test("`save: file` gives each record its file, and a node behind it sends it on", async (t) => {
  const got: { readonly type: string | undefined; readonly body: string }[] = [];
  const { send } = await target(t, (request, response) => {
    if (request.method === "GET")
      return response
        .writeHead(200, {
          "content-type": "application/pdf",
          "content-disposition": 'attachment; filename="a 7.pdf"',
        })
        .end(BYTES);
    got.push({ type: request.headers["content-type"], body: request.body });
    return response.end(json({}));
  });
  const saved = await runNode(http({ url: "/f/{{ id }}" }, { save: "file", concurrency: 2 }), {
    from: [recordFlow([{ id: 7 }, { id: 8 }])],
    send,
  });
  const data = await dataOf(saved.flow);
  assert.deepEqual(data, [
    { id: 7, status: 200, file: FILE },
    { id: 8, status: 200, file: FILE },
  ]);
  const sendOn = async (request: JsonObject, rows: readonly JsonObject[]) => {
    const node = http({ method: "POST", url: "/up", ...request }, { effect: "read", records: "$" });
    return await recordsOf((await runNode(node, { from: [recordFlow(rows)], send })).flow);
  };
  await sendOn({ file: "rows" }, data as JsonObject[]);
  assert.deepEqual(
    got.map(({ type, body }) => [type, Buffer.from(body).length > 0]),
    [
      ["application/pdf", true],
      ["application/pdf", true],
    ],
  );
  got.length = 0;
  await sendOn({ multipart: { id: "{{ id }}", doc: { file: "rows" } } }, [{ id: 7, file: FILE }, { id: 8 }]);
  assert.match(
    String(got[0]?.body),
    /name="doc"; filename="a 7\.pdf"\r\nContent-Type: application\/pdf\r\n\r\n/,
  );
  assert.doesNotMatch(String(got[1]?.body), /name="doc"/);
  await assert.rejects(sendOn({ file: "rows" }, [{ id: 8 }]), /request\.file: the record has no file/);
  for (const file of ["x", { base64: "a" }, { base64: "a b=" }, { base64: 1 }])
    await assert.rejects(
      sendOn({ file: "rows" }, [{ file }]),
      /the record's field `file` is not a file from `save: file`/,
    );
});

test("a file in a record holds no handle: nobody would find it in base64", async (t) => {
  const handle = `lkhandle${"7".repeat(40)}`;
  const { send } = await target(t, (_request, response) => response.end(`a ${handle} b`));
  const { flow } = await runNode(http({ url: "/" }, { save: "file" }), { from: [recordFlow(ids(1))], send });
  const [{ file }] = (await dataOf(flow)) as [{ file: { base64: string; size_bytes: number } }];
  const kept = Buffer.from(file.base64, "base64").toString();
  assert.deepEqual([kept, file.size_bytes], ["a [REDACTED] b", kept.length]);
});

test("a field that the file would replace fails the node, and says what to do", async (t) => {
  const { send } = await target(t, (_request, response) => response.end("x"));
  const { flow } = await runNode(http({ url: "/" }, { save: "file" }), {
    from: [recordFlow([{ file: "invoice 7" }])],
    send,
  });
  await assert.rejects(recordsOf(flow), /record 0: the record already has a field `file`; .*in a `map`/);
});

test("what makes no sense with `for_each` is refused by place", () => {
  const refusal = (rest: JsonObject, request: JsonObject = {}) =>
    check(http({ url: "/", ...request }, rest))
      .map(({ path, message }) => `${path.join(".")}: ${message}`)
      .join(" | ");
  assert.match(
    refusal({ save: "file", max_bytes: 20_000_000 }),
    /^max_bytes: with `for_each` a file is part/,
  );
  assert.match(refusal({ save: "file" }, { method: "POST" }), /^save: the answer of a write is not a file/);
  assert.match(refusal({ paginate: { page: 1, param: "p" } }), /^paginate: only records can be paginated/);
  assert.match(
    refusal({ save: "file", paginate: { page: 1, param: "p" } }),
    /^paginate: only records can be paginated/,
  );
  assert.match(
    refusal({ records: "$", paginate: { page: 1, param: "p" } }, { method: "POST" }),
    /^paginate: a write can't be paginated/,
  );
  assert.equal(refusal({ records: "$", paginate: { link_header: true }, concurrency: 20 }), "");
  assert.equal(refusal({ save: "file" }), "");
});
