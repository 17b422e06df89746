// Orders, documents, meters, the ledger, and the switches at `/__control`.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { load } from "cheerio";
import { createFaults } from "../../examples/portal/faults.ts";
import { LEDGER_KEY } from "../../examples/portal/ledger.ts";
import { openPortal, signedInVisitor, type Visitor } from "./portal-visitor.ts";

const ORDER = { article: "AB-101", quantity: 2, unit_price: 1.5 };

async function place(origin: string, visitor: Visitor, token: string, body: unknown): Promise<Response> {
  return await fetch(`${origin}/api/orders`, {
    method: "POST",
    body: JSON.stringify(body),
    headers: {
      "content-type": "application/json",
      cookie: await visitor.jar.getCookieString(origin),
      ...(token !== "" && { "idempotency-key": token }),
    },
  });
}

const control = async (origin: string, switches?: unknown): Promise<Response> =>
  await fetch(
    `${origin}/__control`,
    switches === undefined
      ? {}
      : { method: "PUT", body: JSON.stringify(switches), headers: { "content-type": "application/json" } },
  );

test("an order is placed once a token; the second is refused, and the first can be looked up by it", async (t) => {
  const { url } = await openPortal(t);
  const visitor = await signedInVisitor(url);
  assert.equal((await place(url, visitor, "token-0001", ORDER)).status, 201);
  const again = await place(url, visitor, "token-0001", { ...ORDER, quantity: 9 });
  assert.deepEqual([again.status, ((await again.json()) as { id: string }).id], [409, "ORD-0001"]);
  const found = async (token: string) =>
    ((await (await visitor.get(`/api/orders?token=${token}`)).json()) as { orders: object[] }).orders;
  assert.deepEqual(await found("token-0001"), [{ id: "ORD-0001", ...ORDER, placed_by: "demo" }]);
  assert.deepEqual(await found("token-0002"), []);
  assert.equal((await place(url, visitor, "", ORDER)).status, 400);
  for (const change of [{ article: "x" }, { quantity: 0 }, { quantity: 1.5 }, { unit_price: "1" }]) {
    const refused = await place(url, visitor, "token-0003", { ...ORDER, ...change });
    assert.equal(refused.status, 422, JSON.stringify(change));
  }
  assert.equal((await fetch(`${url}/api/orders`)).status, 401);
});

test("the upload form takes a file to the byte, with its token only", async (t) => {
  const { url } = await openPortal(t);
  const visitor = await signedInVisitor(url);
  const bytes = Buffer.from([0, 1, 2, 253, 254, 255, 13, 10]);
  const send = async (csrf: string): Promise<Response> => {
    const form = new FormData();
    form.set("_csrf", csrf);
    form.set("title", "A <title>");
    form.set("document", new File([bytes], "bytes.bin"));
    const cookie = await visitor.jar.getCookieString(url);
    return await fetch(`${url}/documents`, {
      method: "POST",
      body: form,
      headers: { cookie },
      redirect: "manual",
    });
  };
  assert.equal((await send("wrong")).status, 403);
  const page = load(await (await visitor.get("/documents")).text());
  const sent = await send(page("form#upload input[name=_csrf]").attr("value") ?? "");
  assert.deepEqual([sent.status, sent.headers.get("location")], [303, "/documents/DOC-0001"]);
  const document = load(await (await visitor.get("/documents/DOC-0001")).text())("article.document");
  assert.equal(document.find("code").text(), createHash("sha256").update(bytes).digest("hex"));
  assert.equal(document.find("h1").text(), "A <title>");
});

test("the ledger is another origin, and opens with its key alone", async (t) => {
  const { url, ledgerUrl } = await openPortal(t);
  assert.notEqual(new URL(url).port, new URL(ledgerUrl).port);
  const read = async (path: string, key: string): Promise<Response> =>
    await fetch(ledgerUrl + path, { headers: { "x-api-key": key } });
  assert.equal((await read("/v1/invoices", "no")).status, 401);
  const counts: number[] = [];
  for (const page of [1, 2, 3, 4]) {
    const { data } = (await (await read(`/v1/invoices?page=${page}`, LEDGER_KEY)).json()) as {
      data: unknown[];
    };
    counts.push(data.length);
  }
  assert.deepEqual(counts, [15, 15, 10, 0]);
  const lines = (await (await read("/v1/receipts", LEDGER_KEY)).text()).trim().split("\n");
  assert.equal(lines.length, 39);
});

test("faults are switched at /__control: 429 with Retry-After, 503, an answer that is lost though its order is placed", async (t) => {
  const { url } = await openPortal(t);
  const visitor = await signedInVisitor(url);
  const set = await control(url, {
    faults: [
      { kind: "limit", path: "/api/meters", count: 1, seconds: 3 },
      { kind: "unavailable", path: "/api/meters", count: 1 },
      { kind: "lost_answer", path: "/api/orders", count: 1 },
    ],
  });
  assert.equal(set.status, 200);
  const limited = await visitor.get("/api/meters");
  assert.deepEqual([limited.status, limited.headers.get("retry-after")], [429, "3"]);
  assert.equal((await visitor.get("/api/meters")).status, 503);
  assert.equal((await visitor.get("/api/meters")).status, 200);
  await assert.rejects(place(url, visitor, "token-0001", ORDER));
  assert.equal((await place(url, visitor, "token-0001", ORDER)).status, 409);
  const state = (await (await control(url)).json()) as { orders: unknown[]; faults: { struck: number }[] };
  assert.equal(state.orders.length, 1);
  assert.deepEqual(
    state.faults.map(({ struck }) => struck),
    [1, 1, 1],
  );
});

test("a mistake in the switches is named, and switches nothing", async (t) => {
  const { url } = await openPortal(t);
  for (const [switches, message] of [
    [{ fault: [] }, "fault is no switch"],
    [
      {
        faults: [
          { kind: "limit", path: "/a" },
          { kind: "flood", path: "/a" },
        ],
      },
      /^faults\[1\]: kind must be/,
    ],
    [{ faults: [{ kind: "limit", path: "a" }] }, "faults[0]: path must begin with /"],
    [{ faults: [{ kind: "limit", path: "/a", probability: 2 }] }, /^faults\[0\]: probability/],
    [{ access_token_uses: 0 }, /^access_token_uses/],
  ] as const) {
    const answer = await control(url, switches);
    const { error } = (await answer.json()) as { error: string };
    assert.equal(answer.status, 422);
    if (typeof message === "string") assert.equal(error, message);
    else assert.match(error, message);
  }
  const state = (await (await control(url)).json()) as { faults: unknown[] };
  assert.deepEqual(state.faults, []);
});

test("the same seed and the same requests give the same faults", () => {
  const draw = (seed: number): string => {
    const faults = createFaults();
    faults.set(seed, [{ kind: "limit", path: "/", count: null, probability: 0.5, seconds: 1 }]);
    return Array.from({ length: 64 }, () => (faults.strike("/x", ["limit"]) ? "x" : "-")).join("");
  };
  assert.equal(draw(7), draw(7));
  assert.notEqual(draw(7), draw(8));
});
