// WebDAV's methods: what reads and what writes, and how far a Destination may lead.
import assert from "node:assert/strict";
import { test } from "node:test";
import { OutboundError, type OutboundResponse } from "#domain/http-exchange.ts";
import type { JsonObject } from "#domain/json.ts";
import { node as httpType } from "#nodes/types/http.ts";
import type { NodeContext } from "#nodes/define-node.ts";
import { blueprintNode, check, dataOf, runNode, target } from "./node-context.ts";

const http = (method: string, rest: JsonObject = {}, headers: JsonObject = {}): JsonObject => ({
  type: "http",
  request: { method, url: "/dav/", headers },
  ...rest,
});
const messages = (document: JsonObject): readonly string[] =>
  check(document).map(({ path, message }) => `${path.join(".")}: ${message}`);

const effectOf = (document: JsonObject): string => httpType.effect(blueprintNode(document).config);

const MULTI_STATUS = `<?xml version="1.0"?><D:multistatus xmlns:D="DAV:"><D:response><D:href>/dav/a</D:href></D:response></D:multistatus>`;

test("PROPFIND and REPORT read: sent again after a 503, redirected with method and body, and read as XML", async (t) => {
  const seen: string[] = [];
  let calls = 0;
  const { send } = await target(t, (request, response) => {
    seen.push(`${request.method} ${request.url} ${String(request.headers["depth"])} ${request.body}`);
    calls += 1;
    if (calls === 1) response.writeHead(503).end();
    else if (request.url === "/dav/") response.writeHead(302, { location: "/dav/home/" }).end();
    else response.writeHead(207, { "content-type": "application/xml" }).end(MULTI_STATUS);
  });
  const parse = { format: "xml", rows: "D\\:response", columns: { href: "D\\:href" } };
  for (const method of ["PROPFIND", "REPORT"]) {
    calls = 0;
    seen.length = 0;
    const document = http(method, { parse, retry: { attempts: 2 } }, { Depth: "1" });
    (document["request"] as { text?: string }).text = "<a/>";
    const { flow } = await runNode(document, { send });
    assert.deepEqual(await dataOf(flow), [{ href: "/dav/a" }]);
    const first = `${method} /dav/ 1 <a/>`;
    assert.deepEqual(seen, [first, first, `${method} /dav/home/ 1 <a/>`]);
  }
});

test("MKCOL, COPY and MOVE write; a method in lower case is refused, as `get` is", () => {
  for (const method of ["PROPFIND", "REPORT"]) assert.equal(effectOf(http(method)), "read", method);
  for (const method of ["MKCOL", "COPY", "MOVE"]) assert.equal(effectOf(http(method)), "write", method);
  assert.equal(effectOf(http("MKCOL", { effect: "read" })), "read");
  assert.deepEqual(
    messages(http("MKCOL", { verify: { request: { method: "PROPFIND", url: "/" }, when: "true" } })),
    [],
  );
  for (const method of ["propfind", "get", "Move", "LOCK"])
    assert.match(messages(http(method))[0] ?? "", /^request\.method: schema: /, method);
  for (const method of ["COPY", "MOVE"]) {
    assert.deepEqual(messages(http(method, {}, { destination: "/dav/b" })), []);
    assert.match(
      messages(http(method))[0] ?? "",
      /^request\.headers: a (COPY|MOVE) request needs the header `Destination`/,
    );
  }
});

/** What became of one write to a target that answers so. */
async function write(
  document: JsonObject,
  send: NodeContext["send"],
  variables: JsonObject = {},
): Promise<string> {
  const became: string[] = [];
  const unexpected = (): never => assert.fail("not in this test");
  const writes: NodeContext["writes"] = {
    token: String,
    known: async () => new Map(),
    begin: async () => {},
    commit: unexpected,
    goOn: unexpected,
    send: async (request): Promise<OutboundResponse> => await send(request),
    finish: async () => void became.push("done"),
    refuse: async () => void became.push("refused"),
    ruleOut: unexpected,
    doubt: async (_ordinal, why) => void became.push(`doubt: ${why}`),
    askOperator: () => {
      throw new Error("asked");
    },
  };
  await runNode(document, { send, variables, context: { writes } }).catch((error: unknown) => {
    became.push(String(error));
  });
  return became.join(" | ");
}

test("a COPY or MOVE of which a part failed (207) is open, and its Destination leads nowhere but into the hosts", async (t) => {
  let status = 201;
  const asked: string[] = [];
  const { send, origin } = await target(t, (request, response) => {
    asked.push(`${request.method} ${String(request.headers["destination"])}`);
    response.writeHead(status).end();
  });
  const to = (destination: string, rest: JsonObject = {}) => http("MOVE", rest, { Destination: destination });
  assert.equal(await write(to("/dav/b"), send), "done");
  assert.equal(await write(to(`${origin}/dav/b`), send), "done");
  assert.deepEqual(asked, ["MOVE /dav/b", `MOVE ${origin}/dav/b`]);
  for (const evil of ["https://evil.example/b", "//evil.example/b", "http://127.0.0.1:1/b"]) {
    const became = await write(to("{{ $inputs.to }}"), send, { inputs: { to: evil } });
    assert.match(
      became,
      /^refused \| NodeFailure: MOVE \/dav\/: .*the header Destination leads out of the allowed hosts/,
    );
  }
  await assert.rejects(
    send({ method: "COPY", url: "/a", headers: [["destination", "https://evil.example/"]] }),
    (error: unknown) => error instanceof OutboundError && error.failure === "refused",
  );
  assert.equal(asked.length, 2);
  status = 207;
  assert.equal(
    await write(to("/dav/b"), send),
    "doubt: the target returned 207: a part of it failed | Error: asked",
  );
  assert.equal(await write(to("/dav/b", { expect: { status: [207] } }), send), "done");
  assert.equal(await write(http("DELETE"), send), "done");
});
