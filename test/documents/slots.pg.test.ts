// docs/api.md#credentials-of-a-trigger, `credentials`, `hosts` and `concurrency`: which request carries which login, and how many at once.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { blueprint, dataOf, openBench, type Bench } from "./bench.ts";
import { openTarget, type Target } from "./target.ts";

let bench: Bench;
let other: Target;
let shop: string;
let shop2: string;
let bank: string;

const bearer = (id: string, host: string, more = "") =>
  `strategy: ${id}\naccount: acme\nhosts: ["${host}"]\nfields: [{ key: token, type: password }]\nlogin: { type: bearer, token: token }\n${more}`;

const read = (id: string, slot: string) =>
  `- { id: ${id}, type: http, credential: ${slot}, request: { url: /api/who }, records: $ }`;
const OUT = (from: string) => `- { id: out, type: output, refKey: out, from: ${from} }`;

before(async () => {
  other = await openTarget();
  bench = await openBench([
    bearer("strat_shop", "{TARGET}"),
    bearer("strat_bank", other.url),
    bearer("strat_one", "{TARGET}", "concurrency: 1"),
    blueprint(
      "two-systems",
      `${read("a", "shop")}\n${read("b", "bank")}\n${OUT("[a, b]")}`,
      "credentials: { shop: { strategy: strat_shop }, bank: { strategy: strat_bank } }",
    ),
    blueprint(
      "same-system-twice",
      `${read("b", "second")}\n${read("a", "first")}\n${OUT("[a, b]")}`,
      "credentials: { first: { strategy: strat_shop }, second: { strategy: strat_shop } }",
    ),
    blueprint(
      "public",
      `- { id: a, type: http, request: { url: "${other.url}/api/who" }, records: $ }
- { id: b, type: http, request: { url: "{TARGET}/api/who?x={{ $run.name }}" }, records: $ }
${OUT("[a, b]")}`,
      `hosts: ["{TARGET}", "${other.url}"]`,
    ),
    blueprint(
      "mixed",
      `${read("a", "shop")}\n- { id: b, type: http, request: { url: "${other.url}/api/who" }, records: $ }\n${OUT("[a, b]")}`,
      `credentials: { shop: { strategy: strat_shop } }\nhosts: ["${other.url}"]`,
    ),
    blueprint(
      "one-at-a-time",
      `- { id: a, type: http, credential: it, request: { url: /api/slow }, records: $ }\n${OUT("a")}`,
      "credentials: { it: { strategy: strat_one } }",
    ),
    blueprint(
      "free",
      `- { id: a, type: http, credential: it, request: { url: /api/slow }, records: $ }\n${OUT("a")}`,
      "credentials: { it: { strategy: strat_shop } }",
    ),
  ]);
  for (const target of [bench.target, other]) {
    // The tokens are told apart by their number: the tokens themselves are redacted.
    target.on("GET /api/who", ({ headers }) => ({
      json: { who: /\d/.exec(headers.authorization ?? "")?.[0] ?? null },
    }));
  }
  bench.target.on("GET /api/slow", { json: [], delayMs: 400 });
  shop = await bench.connect("strat_shop", { token: "token-1" });
  shop2 = await bench.connect("strat_shop", { token: "token-2" });
  bank = await bench.connect("strat_bank", { token: "token-3" });
});
after(async () => {
  await bench?.[Symbol.asyncDispose]();
  await other?.[Symbol.asyncDispose]();
});

const whoOf = async (key: string, body: object) => dataOf(await bench.run(key, body)).map(({ who }) => who);

test("two slots with two strategies: each request carries its own slot's login, in whatever form the ids come", async () => {
  for (const body of [
    { credential_id: `${shop},${bank}` },
    { credential_id: `${bank} , ${shop}` },
    { credential_ids: [bank, shop] },
    { credential_id: shop, credential_ids: bank },
    { credential_id: [shop, shop], credential_ids: `${bank},,${shop}` },
  ]) {
    assert.deepEqual(await whoOf("two-systems", body), ["1", "3"], JSON.stringify(body));
  }
  assert.ok(bench.target.all.every(({ headers }) => headers.authorization !== "Bearer token-3"));
  assert.ok(
    other.all.every(
      ({ headers }) => !["Bearer token-1", "Bearer token-2"].includes(String(headers.authorization)),
    ),
  );
});

test("two slots of one strategy fill in document order with the credentials in the caller's order", async () => {
  assert.deepEqual(await whoOf("same-system-twice", { credential_id: `${shop},${shop2}` }), ["1", "2"]);
  assert.deepEqual(await whoOf("same-system-twice", { credential_id: `${shop2},${shop}` }), ["2", "1"]);
});

test("a credential too few, too many, or of another strategy is 422 on the key that the caller used, and makes no run", async () => {
  const cases: readonly (readonly [string, object, string])[] = [
    ["two-systems", {}, "credential_id"],
    ["two-systems", { credential_id: shop }, "credential_id"],
    ["two-systems", { credential_ids: [shop, shop2] }, "credential_ids"],
    ["two-systems", { credential_ids: `${shop},${bank},${shop2}` }, "credential_ids"],
    ["free", { credential_id: bank }, "credential_id"],
    ["free", { credential_id: "cred_unknown" }, "credential_id"],
    ["free", { credential_id: "no id at all" }, "credential_id"],
    ["free", { credential_id: 7 }, "credential_id"],
    ["free", { credential_id: { id: shop } }, "credential_id"],
    ["free", { credential_id: null }, "credential_id"],
    ["free", { credential_ids: [shop, 7] }, "credential_ids"],
    ["public", { credential_ids: ["cred_unknown"] }, "credential_ids"],
  ];
  const { db } = bench.installation.database;
  const countRuns = async () =>
    (await db.query<{ count: string }>("select count(*) as count from run"))[0]?.count;
  const before = await countRuns();
  for (const [key, body, field] of cases) {
    const answer = await bench.trigger(key, body);
    assert.equal(answer.status, 422, JSON.stringify(body));
    assert.deepEqual(
      answer.body.error.details.map(({ code, field }: any) => [code, field]),
      [["invalid_input_data", field]],
    );
  }
  assert.equal(await countRuns(), before);
});

test("a node without a credential reaches the Blueprint's own hosts, without any login, and ignores a valid credential", async () => {
  assert.deepEqual(await whoOf("public", { run_name: "a b&c" }), [null, null]);
  assert.equal(bench.target.seen("GET /api/who").at(-1)?.query.get("x"), "a b&c");
  assert.deepEqual(await whoOf("public", { credential_id: shop }), [null, null]);
});

test("beside a node with a credential, a node without one sends no login", async () => {
  assert.deepEqual(await whoOf("mixed", { credential_id: shop }), ["1", null]);
});

test("strategy concurrency 1: runs of one credential never overlap at the target, those of another do", async () => {
  const one = await bench.connect("strat_one", { token: "token-7" });
  const two = await bench.connect("strat_one", { token: "token-8" });
  const started = await Promise.all(
    [one, one, one, two, two, two].map((id) => bench.trigger("one-at-a-time", { credential_id: id })),
  );
  for (const { body } of started) assert.equal((await bench.ended(body.id)).status.status, "completed");
  const seen = bench.target.seen("GET /api/slow");
  for (const token of ["Bearer token-7", "Bearer token-8"]) {
    const times = seen.filter(({ headers }) => headers.authorization === token).map(({ atMs }) => atMs);
    assert.equal(times.length, 3);
    for (const [index, at] of times.entries())
      if (index > 0) assert.ok(at - (times[index - 1] ?? 0) >= 380, times.join(" "));
  }
  assert.ok(Math.max(...seen.map(({ underWay }) => underWay)) === 2, "the two credentials ran side by side");
});

test("without a concurrency, runs of one credential overlap", async () => {
  // Long enough that four runs meet there on a busy machine too.
  bench.target.on("GET /api/slow", { json: [], delayMs: 1_000 });
  const before = bench.target.seen("GET /api/slow").length;
  const started = await Promise.all([1, 2, 3, 4].map(() => bench.trigger("free", { credential_id: shop })));
  for (const { body } of started) assert.equal((await bench.ended(body.id)).status.status, "completed");
  assert.ok(
    bench.target
      .seen("GET /api/slow")
      .slice(before)
      .some(({ underWay }) => underWay > 1),
  );
});
