// Spec, Idempotency; docs/decisions/0010: on the three endpoints, through HTTP.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect, openCaller, submitHostedForm, type ApiAnswer, type Caller } from "../caller.ts";
import { bearer, json, openStage, type Stage } from "./stage.ts";

let stage: Stage;
let acme: Caller;

before(async () => {
  stage = await openStage();
  acme = stage.acme;
});
after(() => stage?.[Symbol.asyncDispose]());

const keyed = (key: string) => ({ "Idempotency-Key": key });
const NEEDED = { needed: "a", needed_too: "b" };
const openRun = async (key: string, body: unknown = NEEDED, caller: Caller = acme) =>
  await caller.post("/blueprints/open/trigger", body, keyed(key));
const openSession = async (key: string, body: unknown = { strategy_id: "strat_acme" }) =>
  await acme.post("/credential-sessions", body, keyed(key));
const newCredential = async () => await connect(acme, "strat_acme", { token: "some-token" });

function assertReplay(first: ApiAnswer, second: ApiAnswer): void {
  assert.equal(first.headers.get("idempotent-replay"), null);
  assert.equal(second.headers.get("idempotent-replay"), "true");
  assert.deepEqual([second.status, second.text], [first.status, first.text]);
  assert.equal(second.headers.get("content-type"), first.headers.get("content-type"));
}

function assertReused(answer: ApiAnswer): void {
  assert.equal(answer.status, 409, answer.text);
  assert.deepEqual(Object.keys(answer.body), ["error"]);
  assert.equal(answer.body.error.type, "conflict");
  assert.deepEqual(
    answer.body.error.details.map(({ code }: any) => code),
    ["idempotency_key_reuse"],
  );
  assert.equal(answer.headers.get("idempotent-replay"), null);
}

test("a session's creation is replayed byte for byte, hosted_url included, also after it was completed", async () => {
  const first = await openSession("s1");
  assertReplay(first, await openSession("s1"));
  assert.match(first.body.hosted_url, /\/connect\/.{20}/);
  const sessions = await stage.count("credential_session");
  await submitHostedForm(first.body.hosted_url, { token: "t" });
  assertReplay(first, await openSession("s1"));
  assert.equal(await stage.count("credential_session"), sessions);
  assert.equal((await acme.get(`/credential-sessions/${first.body.id}`)).body.status, "completed");
  // The token is in no column: it is derived again.
  const rows = await stage.installation.database.db.query<{ body: string }>(
    "select convert_from(body, 'UTF8') as body from idempotency_key where body is not null",
  );
  const token = String(first.body.hosted_url).split("/").at(-1) ?? "";
  assert.ok(rows.length > 0 && rows.every(({ body }) => !body.includes(token)));
});

test("a trigger is replayed and makes one run", async () => {
  const runs = await stage.count("run");
  const first = await openRun("t1");
  assert.equal(first.status, 202);
  assertReplay(first, await openRun("t1"));
  await acme.waitForRun(first.body.id);
  assertReplay(first, await openRun("t1"));
  assert.equal(await stage.count("run"), runs + 1);
});

test("a deletion is replayed as 204 without a body, whatever body is sent; without the key it is 404", async () => {
  const id = await newCredential();
  const first = await acme.delete(`/credentials/${id}`, keyed("d1"));
  assert.deepEqual([first.status, first.text], [204, ""]);
  assertReplay(first, await acme.delete(`/credentials/${id}`, keyed("d1")));
  const withBody = await stage.send({
    method: "DELETE",
    path: `/credentials/${id}`,
    headers: [bearer(stage.key), json, ["Idempotency-Key", "d1"]],
    body: "{}",
  });
  assert.deepEqual([withBody.status, withBody.headers["idempotent-replay"]], [204, "true"]);
  assert.equal((await acme.delete(`/credentials/${id}`)).status, 404);
  assert.equal((await acme.delete(`/credentials/${id}`, keyed("d2"))).status, 404);
});

test("the same key with another body is 409 on both endpoints that have one, and changes nothing", async () => {
  await openSession("b1");
  await openRun("b2");
  const [sessions, runs] = [await stage.count("credential_session"), await stage.count("run")];
  assertReused(await openSession("b1", { strategy_id: "strat_acme", name: "x" }));
  assertReused(await openSession("b1", { strategy_id: "strat_acme", unknown: 1 }));
  for (const body of [
    { ...NEEDED, data: [] },
    { ...NEEDED, ignored: 1 },
    { needed: "a", needed_too: 1 },
    {},
    [],
    "not json",
  ]) {
    const answer = await openRun("b2", body);
    // A body that is none is refused before keys are compared (docs/api.md#order-of-checks).
    if (Array.isArray(body) || typeof body === "string") assert.equal(answer.status, 422);
    else assertReused(answer);
  }
  assert.deepEqual([await stage.count("credential_session"), await stage.count("run")], [sessions, runs]);
});

test("the same body in other white space, key order or escapes is the same; other digits of a number are not", async () => {
  const first = await openRun("v1", '{"needed":"é","needed_too":{"a":1.0,"b":[9007199254740993]}}');
  assertReplay(
    first,
    await openRun("v1", '\n{ "needed_too" : {"b":[9007199254740993], "a":1.0}, "needed":"\\u00e9" }'),
  );
  for (const body of [
    '{"needed":"é","needed_too":{"a":1.0,"b":[9007199254740992]}}',
    '{"needed":"é","needed_too":{"a":1,"b":[9007199254740993]}}',
    '{"needed":"e\u0301","needed_too":{"a":1.0,"b":[9007199254740993]}}',
  ]) {
    assertReused(await openRun("v1", body));
  }
});

test("multipart is compared by its parts, whatever the boundary and the order of names; JSON is another body", async () => {
  const form = (...parts: readonly (readonly [string, string | File])[]) => {
    const data = new FormData();
    for (const [name, value] of parts) data.append(name, value);
    return data;
  };
  const file = (text: string, name = "a.csv") => new File([text], name, { type: "text/csv" });
  const first = await openRun(
    "m1",
    form(["needed", "a"], ["needed_too", "b"], ["data", "[]"], ["x", file("1")]),
  );
  assert.equal(first.status, 202, first.text);
  assertReplay(
    first,
    await openRun("m1", form(["x", file("1")], ["data", "[]"], ["needed_too", "b"], ["needed", "a"])),
  );
  for (const other of [file("2"), file("1", "b.csv")]) {
    assertReused(
      await openRun("m1", form(["needed", "a"], ["needed_too", "b"], ["data", "[]"], ["x", other])),
    );
  }
  assertReused(await openRun("m1", { needed: "a", needed_too: "b", data: "[]" }));
});

test("the same key for another path, another endpoint or another credential is 409, and nothing happens", async () => {
  const [one, two] = [await newCredential(), await newCredential()];
  assert.equal((await acme.delete(`/credentials/${one}`, keyed("p1"))).status, 204);
  assertReused(await acme.delete(`/credentials/${two}`, keyed("p1")));
  assertReused(await openRun("p1"));
  assertReused(await openSession("p1"));
  assertReused(await acme.post("/blueprints/with-login/trigger", { credential_id: two }, keyed("p1")));
  assert.equal((await acme.delete(`/credentials/${two}`)).status, 204);
});

test("a refused request records nothing: the same key works once the body is right", async () => {
  assert.equal((await openRun("r1", { needed: "a" })).status, 400);
  assert.equal((await openRun("r1", { ...NEEDED, data: {} })).status, 422);
  assert.equal((await acme.post("/blueprints/nowhere/trigger", {}, keyed("r1"))).status, 404);
  const first = await openRun("r1");
  assert.equal(first.status, 202);
  assertReplay(first, await openRun("r1"));
  assert.equal((await acme.delete("/credentials/cred_x", keyed("r2"))).status, 404);
  assert.equal((await openSession("r2", { strategy_id: "nope" })).status, 422);
  assert.equal((await openSession("r2")).status, 201);
});

test("keys belong to the account: another key of it replays, if it may; another account's is independent", async () => {
  const first = await openRun("k1");
  const { installation, service } = stage;
  const second = openCaller(service.url, await installation.createKey("acme"));
  assertReplay(first, await openRun("k1", NEEDED, second));
  const limited = openCaller(
    service.url,
    await installation.createKey("acme", { blueprints: ["with-login"] }),
  );
  assert.equal((await openRun("k1", NEEDED, limited)).status, 403);
  const foreign = await openRun("k1", NEEDED, stage.globex);
  assert.equal(foreign.status, 202);
  assert.equal(foreign.headers.get("idempotent-replay"), null);
  assert.notEqual(foreign.body.id, first.body.id);
});

test("a key is an opaque text of 1 to 255 characters, sent once", async () => {
  const send = async (...keys: readonly string[]) =>
    await stage.send({
      method: "POST",
      path: "/blueprints/open/trigger",
      headers: [bearer(stage.key), json, ...keys.map((key) => ["Idempotency-Key", key] as const)],
      body: JSON.stringify(NEEDED),
    });
  const runs = await stage.count("run");
  const utf8 = (text: string) => Buffer.from(text, "utf8").toString("latin1");
  for (const keys of [[""], ["   "], ["x".repeat(256)], [utf8("é".repeat(256))], ["a", "a"], ["a", "b"]]) {
    const answer = await send(...keys);
    assert.equal(answer.status, 422, keys.join("|").slice(0, 20));
    assert.deepEqual(
      answer.body.error.details.map(({ code, field }: any) => [code, field]),
      [["invalid_input_data", "Idempotency-Key"]],
    );
  }
  const sessions = await acme.post(
    "/credential-sessions",
    { strategy_id: "strat_acme" },
    { "Idempotency-Key": "" },
  );
  const deletion = await acme.delete(`/credentials/${stage.credential}`, { "Idempotency-Key": "" });
  assert.deepEqual([sessions.status, deletion.status], [422, 422]);
  assert.equal(await stage.count("run"), runs);
  // 255 characters, not bytes; quotes, case and inner spaces count.
  const good = [
    "y".repeat(255),
    utf8("é".repeat(255)),
    utf8("🔑".repeat(255)),
    "abc",
    '"abc"',
    "ABC",
    "a bc",
    "a  bc",
    "a,b",
  ];
  const ids = new Set<string>();
  for (const key of good) {
    const answer = await send(key);
    assert.equal(answer.status, 202, key.slice(0, 10));
    ids.add(answer.body.id);
  }
  assert.equal(ids.size, good.length);
});

test("on a GET the header is ignored", async () => {
  const { body } = await openSession("g1");
  assert.equal(
    (
      await stage.send({
        path: `/credential-sessions/${body.id}`,
        headers: [bearer(stage.key), ["Idempotency-Key", ""]],
      })
    ).status,
    200,
  );
});

test("20 duplicates at the same time make one run and get equal bodies; exactly one is the first", async () => {
  const [runs, sessions] = [await stage.count("run"), await stage.count("credential_session")];
  const triggers = await Promise.all(Array.from({ length: 20 }, () => openRun("c1")));
  assert.equal(new Set(triggers.map(({ status, text }) => `${status} ${text}`)).size, 1);
  assert.equal(triggers.filter(({ headers }) => headers.get("idempotent-replay") === null).length, 1);
  assert.equal(await stage.count("run"), runs + 1);
  const opened = await Promise.all(Array.from({ length: 20 }, () => openSession("c2")));
  assert.equal(new Set(opened.map(({ text }) => text)).size, 1);
  assert.equal(await stage.count("credential_session"), sessions + 1);
  const id = await newCredential();
  const deleted = await Promise.all(
    Array.from({ length: 20 }, () => acme.delete(`/credentials/${id}`, keyed("c3"))),
  );
  assert.deepEqual([...new Set(deleted.map(({ status }) => status))], [204]);
  // And of 20 different bodies with one key exactly one is processed.
  const mixed = await Promise.all(Array.from({ length: 20 }, (_, n) => openRun("c4", { ...NEEDED, n })));
  assert.deepEqual(
    mixed.map(({ status }) => status).sort((a, b) => a - b),
    [202, ...Array(19).fill(409)],
  );
  assert.equal(await stage.count("run"), runs + 2);
});

test("after exactly 24 hours, by the database's clock, the key is new again", async (t) => {
  t.after(async () => await stage.moveClock("0"));
  const first = await openRun("h1");
  await stage.moveClock("23 hours 59 minutes 50 seconds");
  assertReplay(first, await openRun("h1"));
  assertReused(await openRun("h1", { ...NEEDED, other: 1 }));
  await stage.moveClock("24 hours");
  const second = await openRun("h1", { ...NEEDED, other: 1 });
  assert.equal(second.status, 202);
  assert.notEqual(second.body.id, first.body.id);
  assertReplay(second, await openRun("h1", { ...NEEDED, other: 1 }));
});
