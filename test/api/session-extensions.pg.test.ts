// docs/api.md#extensions-of-a-session; docs/decisions/0012: they change nothing for a client of the interface.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Caller } from "../caller.ts";
import { assertRefused, openStage, type Stage } from "./stage.ts";

let stage: Stage;
let acme: Caller;
before(async () => {
  stage = await openStage();
  acme = stage.acme;
});
after(() => stage?.[Symbol.asyncDispose]());

const NINE = [
  ...["id", "status", "hosted_url", "return_url", "strategy_id", "credential_id"],
  ...["expires_at", "completed_at", "created_at"],
];
const create = async (extension: object) =>
  await acme.post("/credential-sessions", { strategy_id: "strat_acme", ...extension });
const formOf = async ({ hosted_url: url }: { hosted_url: string }): Promise<string> =>
  await (await fetch(url)).text();
const cancelLinks = (form: string): readonly (string | undefined)[] =>
  [...form.matchAll(/<a class="quiet" href="([^"]*)">Cancel</g)].map(([, href]) => href);

test("without extensions a session has the interface's nine fields, and its form no way to cancel", async () => {
  for (const extension of [{}, { metadata: null, cancel_url: null, expires_in_seconds: null }]) {
    const { body } = await create(extension);
    assert.deepEqual(Object.keys(body), NINE);
    assert.deepEqual(Object.keys((await acme.get(`/credential-sessions/${body.id}`)).body), NINE);
    assert.deepEqual(cancelLinks(await formOf(body)), []);
  }
});

test("metadata comes back as it was given, from the creation, its replay and each read, and operators see it", async () => {
  const metadata = { order: "4711", "customer.id": 'a"b\\🔑', __proto__x: "", "0": "zero" };
  const request = { strategy_id: "strat_acme", metadata };
  const headers = { "Idempotency-Key": "with-metadata" };
  const made = await acme.post("/credential-sessions", request, headers);
  assert.deepEqual([made.status, made.body.metadata], [201, metadata]);
  assert.deepEqual(Object.keys(made.body), [...NINE, "metadata"]);
  assert.deepEqual((await acme.post("/credential-sessions", request, headers)).body, made.body);
  assert.deepEqual((await acme.get(`/credential-sessions/${made.body.id}`)).body.metadata, metadata);
  assert.deepEqual((await create({ metadata: {} })).body.metadata, {});
  const { stdout } = await stage.installation.command("sessions", "list", "--json");
  const listed = JSON.parse(stdout).items.find(({ id }: any) => id === made.body.id);
  assert.deepEqual(listed.metadata, metadata);
});

test("metadata that is no object of short strings is refused by its field, and nothing is made", async () => {
  const before = await stage.count("credential_session");
  const many = Object.fromEntries(Array.from({ length: 21 }, (_, at) => [`n${at}`, ""]));
  for (const metadata of ["text", 7, [], many, { "": "x" }, { "a b": "x" }, { ["n".repeat(41)]: "x" }])
    assertRefused(await create({ metadata }), 422, "metadata");
  for (const value of [1, null, true, {}, "x".repeat(501), "a\u0000b"])
    assertRefused(await create({ metadata: { order: value } }), 422, "metadata.order");
  assert.equal(await stage.count("credential_session"), before);
});

test("cancel_url follows the rules of return_url, is echoed, and is the form's way back; the session stays pending", async () => {
  for (const cancel_url of [
    "https://evil.example/",
    "/done",
    "javascript:alert(1)",
    "https://app.acme.example\\@x",
    7,
  ])
    assertRefused(await create({ cancel_url }), 422, "cancel_url");
  const cancel_url = "https://app.acme.example/settings?tab=1&session_id=old#end";
  const { body } = await create({ cancel_url });
  assert.equal(body.cancel_url, cancel_url);
  assert.deepEqual(cancelLinks(await formOf(body)), [
    `https://app.acme.example/settings?tab=1&amp;session_id=${body.id}#end`,
  ]);
  assert.equal((await acme.get(`/credential-sessions/${body.id}`)).body.status, "pending");
  // The allowlist counts when the form is shown, too.
  await stage.installation.database.db.query("update account set allowed_origins = '{}' where slug = 'acme'");
  assert.deepEqual(cancelLinks(await formOf(body)), []);
});

test("expires_in_seconds shortens a session, and does not extend what the operator has set", async () => {
  const { body } = await create({ expires_in_seconds: 3_600 });
  assert.equal(Date.parse(body.expires_at) - Date.parse(body.created_at), 3_600_000);
  assert.deepEqual(Object.keys(body), NINE);
  for (const expires_in_seconds of [59, 0, -1, 61.5, 7 * 86_400 + 1, 1e12, "3600", true])
    assertRefused(await create({ expires_in_seconds }), 422, "expires_in_seconds");
  assert.equal((await create({ expires_in_seconds: 7 * 86_400 })).status, 201);
});
