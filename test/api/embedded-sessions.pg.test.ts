/** `POST` and `GET /embedded-credential-sessions`, and what the frame's own requests are answered, without a browser. */
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { linkSession } from "#actions/operators/manage-sessions.ts";
import type { Principal } from "#actions/operators/operator-caller.ts";
import { openCaller } from "../caller.ts";
import {
  accountDocument,
  askFrame,
  blueprint,
  csrfOf,
  GOOD,
  PAGE_ORIGIN,
  setUpEmbedded,
  submitFrame,
  type Embedded,
  type EmbeddedBody,
} from "../hosted/embedded-setup.ts";
import { signingOf } from "../invariants.ts";

const PATH = "/embedded-credential-sessions";
let embedded: Embedded;

before(async () => {
  embedded = await setUpEmbedded({
    documents: [blueprint("old", { portal: "strat_portal" }, { retired: true })],
  });
});
after(async () => await embedded[Symbol.asyncDispose]());

const post = async (body: unknown, headers?: Record<string, string>) =>
  await embedded.acme.post(PATH, body, headers);

suite("creation", () => {
  test("a session of one Blueprint is pending, with its form at once, and its token in this answer alone", async () => {
    const answer = await post({ origin: PAGE_ORIGIN, blueprint_keys: ["one"], locale: "de-AT", extra: 1 });
    assert.equal(answer.status, 201);
    const { id, client_token: token, created_at: created, expires_at: expires, ...rest } = answer.body;
    assert.match(id, /^ecs_[0-9A-Za-z]{24,}$/);
    assert.match(token, /^[\w-]{43}$/);
    assert.equal(Date.parse(expires) - Date.parse(created), 30 * 60_000);
    assert.deepEqual(rest, {
      status: "pending",
      embed_url: `${embedded.service.url}/embed/v1/${id}`,
      origin: PAGE_ORIGIN,
      blueprint_keys: ["one"],
      selected_blueprint_key: "one",
      credential_id: null,
      credential_ids: {},
      completed_at: null,
    });
    const { client_token: _, ...shown } = answer.body;
    assert.deepEqual((await embedded.acme.get(`${PATH}/${id}`)).body, shown);
  });

  test("a form of one is opened in its frame alone: operators get no link of it", async () => {
    const { installation, service } = embedded;
    const { db } = installation.database;
    const { body } = await post({ origin: PAGE_ORIGIN, blueprint_keys: ["one"] });
    const [form] = await db.query<{ id: string }>(
      "select id from credential_session where embedded_session_id = $1 and status = 'pending'",
      [body.id],
    );
    const services = { db, signing: signingOf(installation), publicUrl: () => service.url };
    await assert.rejects(linkSession(services, {} as Principal, form?.id ?? ""), {
      message: "The session is part of an embedded session, which has no link of its own.",
    });
  });

  test("without blueprint_keys the choice is every Blueprint that takes a credential and is in force", async () => {
    const { body } = await post({ origin: PAGE_ORIGIN, blueprint_keys: null, expires_in_seconds: 60 });
    assert.deepEqual([body.blueprint_keys, body.selected_blueprint_key], [["one", "two"], null]);
    assert.equal(Date.parse(body.expires_at) - Date.parse(body.created_at), 60_000);
  });

  const refused: readonly (readonly [name: string, body: unknown, field: string])[] = [
    ["no origin", {}, "origin"],
    ["another origin", { origin: "https://evil.example" }, "origin"],
    ["another port", { origin: `${PAGE_ORIGIN}:8443` }, "origin"],
    ["another scheme", { origin: "http://app.acme.example" }, "origin"],
    ["a sub-domain", { origin: "https://x.app.acme.example" }, "origin"],
    ["a path", { origin: `${PAGE_ORIGIN}/x` }, "origin"],
    ["a wildcard", { origin: "https://*.acme.example" }, "origin"],
    ["null as text", { origin: "null" }, "origin"],
    ["two origins", { origin: `${PAGE_ORIGIN} https://evil.example` }, "origin"],
    ["a policy of one's own", { origin: `${PAGE_ORIGIN}; script-src *` }, "origin"],
    ["a number", { origin: 1 }, "origin"],
    ["an unknown Blueprint", { blueprint_keys: ["one", "none"] }, "blueprint_keys.1"],
    ["a retired one", { blueprint_keys: ["old"] }, "blueprint_keys.0"],
    ["one without slots", { blueprint_keys: ["free"] }, "blueprint_keys.0"],
    ["no Blueprint", { blueprint_keys: [] }, "blueprint_keys"],
    ["no list", { blueprint_keys: "one" }, "blueprint_keys"],
    ["no text in it", { blueprint_keys: ["one", 2] }, "blueprint_keys.1"],
    ["U+0000", { blueprint_keys: ["o\u0000ne"] }, "blueprint_keys.0"],
    ["a long name", { name: "x".repeat(256) }, "name"],
    ["no language tag", { locale: "de_AT" }, "locale"],
    ["too short a time", { expires_in_seconds: 59 }, "expires_in_seconds"],
    ["too long a time", { expires_in_seconds: 86_401 }, "expires_in_seconds"],
    ["part of a second", { expires_in_seconds: 90.5 }, "expires_in_seconds"],
    ["a time as text", { expires_in_seconds: "90" }, "expires_in_seconds"],
  ];
  for (const [name, body, field] of refused) {
    test(`${name} is refused, and changes nothing`, async () => {
      const rows = await embedded.count("from embedded_credential_session");
      const whole = name === "no origin" ? body : { origin: PAGE_ORIGIN, ...(body as object) };
      const answer = await post(whole);
      assert.equal(answer.status, 422);
      assert.deepEqual(
        [answer.body.error.type, answer.body.error.details[0].code, answer.body.error.details[0].field],
        ["validation_error", "invalid_input_data", field],
      );
      assert.equal(await embedded.count("from embedded_credential_session"), rows);
    });
  }

  test("a replay has the same bytes, the token among them, and the database has the token nowhere", async () => {
    const key = { "idempotency-key": "embed-1" };
    const first = await post({ origin: PAGE_ORIGIN, blueprint_keys: ["one"] }, key);
    const replay = await post({ blueprint_keys: ["one"], origin: PAGE_ORIGIN }, key);
    assert.deepEqual([replay.status, replay.text], [201, first.text]);
    assert.equal(replay.headers.get("idempotent-replay"), "true");
    const stored = await embedded.count(
      `from idempotency_key where position('${first.body.client_token}'::bytea in body) > 0`,
    );
    assert.equal(stored, 0);
    assert.equal((await post({ origin: PAGE_ORIGIN, blueprint_keys: ["two"] }, key)).status, 409);
    const entries = await embedded.count(
      `from audit_entry where action = 'embedded_session.create' and subject_id = '${first.body.id}'`,
    );
    assert.equal(entries, 1);
  });

  test("what belongs to another account, and what is no id, is as if it were not there", async () => {
    const { installation, service } = embedded;
    await installation.apply(JSON.stringify({ account: "other", allowed_origins: [PAGE_ORIGIN] }));
    const other = openCaller(service.url, await installation.createKey("other"));
    const { id } = await embedded.create();
    const missing = await other.get(`${PATH}/ecs_${"0".repeat(28)}`);
    assert.equal(missing.status, 404);
    for (const text of [id, "ecs_x", "sess_x", "%00", `${id}'`])
      assert.equal((await other.get(`${PATH}/${text}`)).text, missing.text);
    const answer = await other.post(PATH, { origin: PAGE_ORIGIN, blueprint_keys: ["one"] });
    assert.deepEqual([answer.status, answer.body.error.details[0].field], [422, "blueprint_keys.0"]);
  });

  test("embed_origins stands in the place of allowed_origins, and its mistakes are named", async () => {
    const { installation } = embedded;
    const framing = "https://frames.acme.example";
    await installation.apply(accountDocument([PAGE_ORIGIN], { embed_origins: [framing] }));
    const session = await post({ origin: framing, blueprint_keys: ["one"] });
    assert.equal(session.status, 201);
    assert.equal((await post({ origin: PAGE_ORIGIN, blueprint_keys: ["one"] })).status, 422);
    await installation.apply(accountDocument([PAGE_ORIGIN]));
    // The origin is no longer one of the account's: nothing of its sessions can be opened.
    const page = await fetch(session.body.embed_url);
    assert.equal(page.status, 404);
    assert.match(String(page.headers.get("content-security-policy")), /frame-ancestors 'none'/);
    assert.equal((await askFrame(session.body, "view")).status, 404);
    await assert.rejects(
      installation.apply(accountDocument([PAGE_ORIGIN], { embed_origins: [`${framing}/x`] })),
      /embed_origins\[0\] must be scheme, host and port only/,
    );
  });
});

suite("the frame's page", () => {
  let session: EmbeddedBody;
  before(async () => {
    session = await embedded.create();
  });

  test("names exactly its origin, holds no token, and looking at it changes nothing", async () => {
    for (const method of ["GET", "HEAD"]) {
      const page = await fetch(session.embed_url, { method });
      assert.equal(page.status, 200);
      const policy = String(page.headers.get("content-security-policy")).split("; ");
      assert.ok(policy.includes(`frame-ancestors ${PAGE_ORIGIN}`), policy.join());
      assert.ok(policy.includes("default-src 'none'") && policy.includes("base-uri 'none'"));
      assert.equal(page.headers.get("x-frame-options"), null);
      assert.equal(page.headers.get("set-cookie"), null);
      assert.ok(!(await page.text()).includes(session.client_token));
    }
    assert.equal((await embedded.read(session.id)).status, "pending");
  });

  test("is nothing by itself, and no other id has one", async () => {
    const headers = { "sec-fetch-dest": "document" };
    assert.equal((await fetch(session.embed_url, { headers })).status, 404);
    for (const id of [`ecs_${"0".repeat(28)}`, "x", session.client_token]) {
      const page = await fetch(`${embedded.service.url}/embed/v1/${id}`);
      assert.equal(page.status, 404);
      assert.match(String(page.headers.get("content-security-policy")), /frame-ancestors 'none'/);
    }
  });

  test("answers nothing without the token, with another session's, or to another site", async () => {
    const other = await embedded.create();
    const swapped = { ...session, client_token: other.client_token };
    const cases: readonly (readonly [typeof session, Record<string, string>, number])[] = [
      [session, { authorization: "" }, 404],
      [session, { authorization: `Bearer ${"x".repeat(43)}` }, 404],
      [swapped, {}, 404],
      [session, { "sec-fetch-site": "cross-site" }, 403],
      [session, { "sec-fetch-site": "same-site" }, 403],
      [session, { origin: PAGE_ORIGIN }, 403],
    ];
    for (const [given, headers, status] of cases) {
      for (const step of ["view", "choose", "submit?slot=portal", "sign-in"]) {
        const answer = await askFrame(given, step, {}, headers);
        assert.equal(answer.status, status, `${step} ${JSON.stringify(headers)}`);
        assert.equal(answer.body.error.code, "internal");
        // Whose page it is stands in the policy of the same answer.
        assert.doesNotMatch(answer.body.html, /Northwind|portal/i, "nothing of the session is shown");
      }
    }
  });

  test("takes no form without its value against forgery, and none of another slot or session", async () => {
    const other = await embedded.create();
    const _csrf = csrfOf(await askFrame(other, "view"));
    for (const form of [{ ...GOOD }, { _csrf, ...GOOD }]) {
      const answer = await askFrame(session, "submit?slot=portal", form);
      assert.equal(answer.body.error?.code, "internal");
    }
    const elsewhere = await askFrame(session, "submit?slot=ledger", GOOD);
    assert.equal(elsewhere.body.view, "form");
    assert.deepEqual((await embedded.read(session.id)).credential_ids, {});
  });

  test("twenty forms at once make one credential, and all of them see that it is done", async () => {
    const own = await embedded.create();
    const _csrf = csrfOf(await askFrame(own, "view"));
    const answers = await Promise.all(
      Array.from({ length: 20 }, async () => await askFrame(own, "submit?slot=portal", { _csrf, ...GOOD })),
    );
    const now = await embedded.read(own.id);
    assert.equal(now.status, "completed");
    for (const { body } of answers)
      assert.deepEqual([body.view, body.completed.credential_id], ["success", now.credential_id]);
    const made = await embedded.count(
      `from credential join credential_session s on s.id = session_id where embedded_session_id = '${own.id}'`,
    );
    assert.equal(made, 1);
    // Opened once more it is used up.
    assert.equal((await askFrame(own, "view")).body.error.code, "session_used");
  });

  test("the slots of a Blueprint are collected one after the other; the first one's credential is credential_id", async () => {
    const own = await embedded.create({ blueprint_keys: ["two"] });
    assert.equal((await submitFrame(own)).body.view, "form");
    const half = await embedded.read(own.id);
    assert.deepEqual([half.status, half.credential_id], ["pending", null]);
    assert.deepEqual(Object.keys(half.credential_ids), ["portal"]);
    const { body } = await submitFrame(own, "ledger", { token: "tk_1" });
    const done = await embedded.read(own.id);
    assert.equal(done.status, "completed");
    assert.deepEqual(Object.keys(done.credential_ids), ["portal", "ledger"]);
    assert.equal(done.credential_id, done.credential_ids["portal"]);
    assert.deepEqual(body.completed, {
      session_id: own.id,
      credential_id: done.credential_id,
      credential_ids: done.credential_ids,
      blueprint_key: "two",
    });
    const run = await embedded.acme.post("/blueprints/two/trigger", {
      credential_ids: Object.values(done.credential_ids),
      text: "x",
    });
    assert.equal(run.status, 202, run.text);
  });

  test("a choice is made by a form, can be made anew, and stands once a credential was made for it", async () => {
    const own = await embedded.create({ blueprint_keys: ["two", "one"] });
    const picker = await askFrame(own, "view");
    assert.equal(picker.body.view, "picker");
    const _csrf = csrfOf(picker);
    const choose = async (key: string) => await askFrame(own, "choose", { _csrf, blueprint_key: key });
    assert.equal((await askFrame(own, "choose", { blueprint_key: "two" })).body.error.code, "internal");
    assert.equal((await choose("free")).body.view, "picker");
    for (const key of ["one", "two", "one", "two"]) {
      assert.equal((await choose(key)).body.blueprint_selected, key);
      assert.equal((await embedded.read(own.id)).selected_blueprint_key, key);
    }
    // A form of the other choice, from another tab, is not taken.
    await submitFrame(own);
    assert.equal((await choose("one")).body.blueprint_selected, undefined);
    assert.equal((await embedded.read(own.id)).selected_blueprint_key, "two");
  });

  test("a session ends in time: its forms are not taken, and what is no secret is given back", async () => {
    const own = await embedded.create();
    const _csrf = csrfOf(await askFrame(own, "view"));
    await embedded.setClock(`timestamptz '${own.expires_at}'`);
    try {
      const { body } = await askFrame(own, "submit?slot=portal", { _csrf, ...GOOD });
      assert.equal(body.error.code, "session_expired");
      assert.ok(body.html.includes(GOOD.email) && !body.html.includes(GOOD.password));
      const now = await embedded.read(own.id);
      assert.deepEqual([now.status, now.embed_url, now.credential_ids], ["expired", null, {}]);
    } finally {
      await embedded.setClock();
    }
  });

  test("forms can't be tried forever", async () => {
    const own = await embedded.create();
    await embedded.installation.database.db.query(
      "update embedded_credential_session set submits = 60 where id = $1",
      [own.id],
    );
    const { body } = await submitFrame(own);
    assert.deepEqual([body.error.code, body.error.recoverable], ["too_many_attempts", false]);
    assert.equal((await embedded.read(own.id)).status, "pending");
  });

  test("a slot is no session of its own: neither the API nor a link leads to it", async () => {
    const { db } = embedded.installation.database;
    const rows = await db.query<{ id: string }>(
      "select id from credential_session where embedded_session_id = $1",
      [session.id],
    );
    assert.equal(rows.length, 1);
    assert.equal((await embedded.acme.get(`/credential-sessions/${rows[0]?.id}`)).status, 404);
  });
});
