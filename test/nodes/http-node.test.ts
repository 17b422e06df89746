import { test } from "node:test";
import assert from "node:assert/strict";
import { OutboundError, type OutboundRequest } from "#domain/http-exchange.ts";
import type { Json, JsonObject } from "#domain/json.ts";
import { blueprintNode, dataOf, runNode, target } from "./node-context.ts";

const http = (request: JsonObject, rest: JsonObject = {}): JsonObject => ({ type: "http", request, ...rest });
const json = (value: unknown) => JSON.stringify(value);

test("a response is a value: its text", async (t) => {
  const { send } = await target(t, (_request, response) =>
    response.setHeader("content-type", "text/plain; charset=latin1").end(Buffer.from("h\xe4", "latin1")),
  );
  const { flow } = await runNode(http({ url: "/a" }), { send });
  assert.deepEqual(flow, { kind: "value", value: { form: "text", text: "hä" } });
});

test("a response that is no text fails, and is never mangled", async (t) => {
  const { send } = await target(t, (_request, response) =>
    response.setHeader("content-type", "application/pdf").end(Buffer.from([0x25, 0xff, 0xfe])),
  );
  await assert.rejects(runNode(http({ url: "/a" }), { send }), {
    name: "NodeFailure",
    message:
      "GET /a: the response (application/pdf) is not UTF-8 text. Use `save: file` to keep it as a file.",
  });
});

test("`parse: { format: text }` gives the text as a field; 204 gives no record", async (t) => {
  const { send } = await target(t, (_request, response, url) => {
    if (url.pathname === "/none") response.writeHead(204).end();
    else response.setHeader("content-type", "text/plain; charset=utf-8").end(Buffer.from("h\xe4", "latin1"));
  });
  const read = async (url: string, parse: JsonObject): Promise<Json[]> =>
    await dataOf((await runNode(http({ url }, { parse: { format: "text", ...parse } }), { send })).flow);
  assert.deepEqual(await read("/a", { charset: "latin1", field: "page" }), [{ page: "hä" }]);
  assert.deepEqual(await read("/none", {}), []);
  await assert.rejects(read("/a", {}), /^NodeFailure: GET \/a is not utf-8 text/);
});

test("query, headers and url are templates; what gives nothing leaves its key out; a list repeats it", async (t) => {
  const { send } = await target(t, (request, response, url) =>
    response.end(
      json([
        {
          path: url.pathname,
          query: [...url.searchParams],
          a: request.headers["x-a"] ?? null,
          b: request.headers["x-b"] ?? null,
        },
      ]),
    ),
  );
  const request = {
    url: "/of/{{ $inputs.id }}/x?q={{ $inputs.q }}",
    query: {
      one: "{{ $inputs.n }}",
      none: "{{ $inputs.nope }}",
      list: "{{ $inputs.list }}",
      flag: true,
      nil: null,
      mixed: "a-{{ $inputs.nope }}-b",
    },
    headers: { "x-a": "{{ $inputs.n }}", "x-b": "{{ $inputs.nope }}" },
  };
  const variables = { inputs: { id: "a/../b?c#d@e\\", q: "1&r=2", n: 7, list: ["x", "y"] } };
  const { flow } = await runNode(http(request, { records: "$" }), { send, variables });
  assert.deepEqual(await dataOf(flow), [
    {
      path: "/of/a%2F..%2Fb%3Fc%23d%40e%5C/x",
      query: [
        ["q", "1&r=2"],
        ["one", "7"],
        ["list", "x"],
        ["list", "y"],
        ["flag", "true"],
        ["mixed", "a--b"],
      ],
      a: "7",
      b: null,
    },
  ]);
});

test("a value can't climb out of its path segment, name a host or begin a header", async () => {
  const fails = async (request: JsonObject, value: string, message: RegExp) =>
    assert.rejects(
      runNode(http(request), { variables: { inputs: { v: value } } }),
      (error: Error) => message.test(error.message) && !error.message.includes("evil"),
    );
  await fails({ url: "/a/{{ $inputs.v }}/b" }, "..", /path segment/);
  await fails({ url: "/a/.{{ $inputs.v }}" }, ".", /path segment/);
  await fails(
    { url: "/a", headers: { "x-a": "{{ $inputs.v }}" } },
    "evil\r\nx: y",
    /request.headers.x-a: the value contains a character/,
  );
  await fails(
    { url: "/a", query: { q: "{{ { 'a': $inputs.v } }}" } },
    "evil",
    /request.query.q evaluates to an object/,
  );
  await fails({ url: "{{ $inputs.nope }}" }, "", /request.url evaluates to nothing/);
  await fails({ url: "/{{ $number($inputs.v) }}" }, "evil", /expression `\$number\(\$inputs.v\)`/);
});

test("a url that is one expression is sent as it is, and the gate keeps it to the hosts", async (t) => {
  const { send, urls, origin } = await target(t, (_request, response) => response.end("ok"));
  for (const url of ["/x/y?z=1", `${origin}/abs`])
    await runNode(http({ url: "{{ $inputs.url }}" }), { send, variables: { inputs: { url } } });
  assert.deepEqual(urls, ["/x/y?z=1", "/abs"]);
  const evil = { send, variables: { inputs: { url: "//evil.example/" } } };
  await assert.rejects(runNode(http({ url: "{{ $inputs.url }}" }), evil), {
    name: "NodeFailure",
    message: /: its origin is not one of the allowed hosts \(http:[^)]*\)$/,
  });
});

test("a search by POST reads: json, form and text bodies with their content types", async (t) => {
  const { send } = await target(t, (request, response) =>
    response.end(json({ method: request.method, type: request.headers["content-type"], body: request.body })),
  );
  const sent = async (request: JsonObject): Promise<Json | undefined> => {
    const { flow } = await runNode(
      http({ method: "POST", url: "/s", ...request }, { effect: "read", records: "$" }),
      { send, variables: { inputs: { n: 1, t: "ä&b" } } },
    );
    return (await dataOf(flow))[0];
  };
  assert.deepEqual(await sent({ json: { a: ["{{ $inputs.n }}"], b: "{{ $inputs.nope }}", c: null } }), {
    method: "POST",
    type: "application/json",
    body: '{"a":[1],"c":null}',
  });
  assert.deepEqual(await sent({ form: { t: "{{ $inputs.t }}", l: ["1", 2], x: "{{ $inputs.nope }}" } }), {
    method: "POST",
    type: "application/x-www-form-urlencoded",
    body: "t=%C3%A4%26b&l=1&l=2",
  });
  assert.deepEqual(
    await sent({ text: "<q>{{ $inputs.t }}</q>", headers: { "Content-Type": "application/xml" } }),
    { method: "POST", type: "application/xml", body: "<q>ä&b</q>" },
  );
});

test("records: a list, one object, or nothing; anything else fails with its place", async (t) => {
  let body = "";
  const { send } = await target(t, (_request, response) =>
    body === "204" ? response.writeHead(204).end() : response.end(body),
  );
  const records = async (value: string) => {
    body = value;
    return dataOf((await runNode(http({ url: "/a" }, { records: "items" }), { send })).flow);
  };
  assert.deepEqual(await records('{"items":[{"a":1},{"a":2}]}'), [{ a: 1 }, { a: 2 }]);
  assert.deepEqual(await records('{"items":{"a":1}}'), [{ a: 1 }]);
  assert.deepEqual(await records('{"items":[]}'), []);
  assert.deepEqual(await records("{}"), []);
  assert.deepEqual(await records("204"), []);
  await assert.rejects(
    records('{"items":["secret"]}'),
    /GET \/a: records: item 0 is a string; every record must be an object/,
  );
  await assert.rejects(records("<html>secret"), {
    message: "GET /a: the response (no content type) is not JSON.",
  });
  await assert.rejects(records(""), /is empty, not JSON/);
});

test("parse in place: csv, html and json as the parse node reads them", async (t) => {
  const { send } = await target(t, (_request, response, url) => {
    if (url.pathname === "/csv")
      return response
        .setHeader("content-type", "text/csv; charset=iso-8859-1")
        .end(Buffer.from("a;b\n\xe4;2\n", "latin1"));
    return response.end(url.pathname === "/html" ? "<ul><li><a href=1>x</a></ul>" : '{"l":[{"a":1}]}');
  });
  const parsed = async (url: string, parse: JsonObject) =>
    dataOf((await runNode(http({ url }, { parse }), { send })).flow);
  assert.deepEqual(await parsed("/csv", { format: "csv", delimiter: ";" }), [{ a: "ä", b: "2" }]);
  assert.deepEqual(await parsed("/html", { format: "html", rows: "li", columns: { t: "a", h: "a@href" } }), [
    { t: "x", h: "1" },
  ]);
  assert.deepEqual(await parsed("/json", { format: "json", records: "l" }), [{ a: 1 }]);
  assert.deepEqual(await parsed("/json", { format: "json" }), [{ l: [{ a: 1 }] }]);
});

test("expect: 200 to 299 by default, a list of statuses, and texts that must or must not be there", async (t) => {
  const { send } = await target(t, (_request, response, url) =>
    response.writeHead(Number(url.searchParams.get("s"))).end("Wrong password"),
  );
  const run = (status: number, expect?: JsonObject) =>
    runNode(http({ url: `/?s=${status}` }, expect && { expect }), { send });
  await run(200);
  await run(299);
  await run(404, { status: [200, 404] });
  await assert.rejects(run(404), {
    name: "NodeFailure",
    message: "GET /?s=404 returned 404; expected 200 to 299.",
  });
  await assert.rejects(run(200, { status: [201, 202] }), /returned 200; expected 201, 202/);
  await assert.rejects(run(200, { not_text: "Wrong" }), /the response contains `Wrong`/);
  await assert.rejects(run(200, { text: "Welcome" }), /expected text `Welcome` is not in the response/);
  await run(200, { text: "Wrong", not_text: "Welcome" });
});

test("a read is retried on 429, 502, 503 and 504: three attempts, from 0.5 s, doubled, half of it chance", async (t) => {
  let calls = 0;
  let statuses: number[] = [];
  const { send } = await target(t, (_request, response) =>
    response.writeHead(statuses[calls++] ?? 200).end("[]"),
  );
  const run = async (answers: number[], rest: JsonObject = {}) => {
    [calls, statuses] = [0, answers];
    return (await runNode(http({ url: "/" }, rest), { send })).seen;
  };
  for (const status of [429, 502, 503, 504])
    assert.deepEqual((await run([status, status])).slept, [375, 750]);
  assert.equal(calls, 3);
  await assert.rejects(run([503, 503, 503, 200]), {
    message: "GET / returned 503; expected 200 to 299 (after 3 attempts).",
  });
  await assert.rejects(run([500, 200]), /returned 500/);
  assert.equal(calls, 1);
  const retry = { attempts: 5, backoff: "fixed", initial: "1s" };
  assert.deepEqual((await run([503, 503, 503, 503], { retry })).slept, [750, 750, 750, 750]);
  assert.deepEqual(
    (await run([503, 503, 503, 503, 503, 503], { retry: { attempts: 7 } })).slept,
    [375, 750, 1_500, 3_000, 3_750, 3_750],
  );
  await run([503], { expect: { status: [503] } });
  assert.equal(calls, 1);
  await assert.rejects(run([503, 200], { retry: { attempts: 1 } }), /returned 503; expected 200 to 299\./);
});

test("Retry-After is honoured, in seconds or as a date by the target's own clock, up to a minute", async (t) => {
  let headers: Record<string, string> = {};
  let calls = 0;
  const { send } = await target(t, (_request, response) =>
    calls++ === 0 ? response.writeHead(429, headers).end() : response.end("ok"),
  );
  const slept = async (set: Record<string, string>) => {
    [headers, calls] = [set, 0];
    return (await runNode(http({ url: "/" }), { send })).seen.slept;
  };
  assert.deepEqual(await slept({ "retry-after": "7" }), [7_000]);
  assert.deepEqual(await slept({ "retry-after": "0" }), [375]);
  assert.deepEqual(await slept({ "retry-after": "86400" }), [60_000]);
  assert.deepEqual(
    await slept({ "retry-after": "Wed, 21 Oct 2015 07:28:09 GMT", date: "Wed, 21 Oct 2015 07:28:00 GMT" }),
    [9_000],
  );
  assert.deepEqual(
    await slept({ "retry-after": "Wed, 21 Oct 2015 07:27:00 GMT", date: "Wed, 21 Oct 2015 07:28:00 GMT" }),
    [375],
  );
  assert.deepEqual(await slept({ "retry-after": "soon" }), [375]);
});

test("connection errors and timeouts are retried; what the gate refuses and a response over the cap are not", async (t) => {
  const { send } = await target(t, (request, response, url) => {
    if (url.pathname === "/drop") return request.socket.destroy();
    if (url.pathname === "/slow") return;
    if (url.pathname === "/away") return response.writeHead(302, { location: "http://evil.example/" }).end();
    if (url.pathname === "/near") return response.writeHead(302, { location: "/ok" }).end();
    return response.end("x".repeat(2_000));
  });
  let sent: OutboundRequest[] = [];
  const counting = (request: OutboundRequest) => {
    sent.push(request);
    return send(request);
  };
  const run = async (url: string, rest: JsonObject = {}) => {
    sent = [];
    return runNode(http({ url }, rest), { send: counting });
  };
  await assert.rejects(run("/drop"), /the connection to .* failed .*\(after 3 attempts\)/);
  assert.equal(sent.length, 3);
  await assert.rejects(
    run("/slow", { timeout: "50ms", retry: { attempts: 2 } }),
    (error: Error) =>
      /after 2 attempts/.test(error.message) && (error.cause as OutboundError).failure === "timeout",
  );
  assert.deepEqual(
    sent.map(({ timeoutMs }) => timeoutMs),
    [50, 50],
  );
  await assert.rejects(run("/away"), /GET \/away: .*redirected to evil.example.*hosts \(/);
  assert.equal(sent.length, 1);
  await assert.rejects(
    run("/ok", { max_bytes: 1_999 }),
    (error: Error) => (error.cause as OutboundError).failure === "too_large",
  );
  assert.equal(sent.length, 1);
  await run("/near", { max_bytes: 2_000 });
  await run("/ok");
  assert.deepEqual([sent[0]?.maxBytes, sent[0]?.redirectsMax, sent[0]?.timeoutMs], [10_000_000, 5, 30_000]);
});

test("a cancelled request is no failure of the node, and is not retried", async () => {
  let calls = 0;
  const send = () => {
    calls += 1;
    return Promise.reject(new OutboundError("cancelled", "cancelled"));
  };
  await assert.rejects(runNode(http({ url: "/" }), { send }), { name: "OutboundError" });
  assert.equal(calls, 1);
});

test("an authorization header beside a credential is refused at run time too, where the name is all there is", async () => {
  const context = {
    node: { ...blueprintNode(http({ url: "/" })), credential: "portal" },
  };
  await assert.rejects(
    runNode(http({ url: "/", headers: { Authorization: "x" } }), { context }),
    /the node has a credential/,
  );
});
