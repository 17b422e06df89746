// Spec, POST /blueprints/{blueprintKey}/trigger; docs/api.md#order-of-checks: what a body may be, and what is said about one that may not.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, type Caller } from "../caller.ts";
import { assertRefused, bearer, json, openStage, type Stage } from "./stage.ts";

let stage: Stage;
let acme: Caller;
let earlier: readonly number[];

before(async () => {
  stage = await openStage();
  acme = stage.acme;
});
after(() => stage?.[Symbol.asyncDispose]());

const counts = async () => [
  await stage.count("run"),
  await stage.count("credential_session"),
  stage.countFiles(),
];
beforeEach(async () => {
  earlier = await counts();
});

/** Files that no run needs go after the answer. */
async function assertFiles(count: number): Promise<void> {
  for (let tries = 0; tries < 100 && stage.countFiles() !== count; tries++) await sleep(20);
  assert.equal(stage.countFiles(), count);
}

const NEEDED = { needed: "a", needed_too: "b" };
const triggerOpen = async (body?: unknown) => await acme.post("/blueprints/open/trigger", body);
const metadataOf = async (id: string) => {
  const rows = await stage.installation.database.db.query<{ metadata: Buffer; name: Buffer | null }>(
    "select metadata, name from run where id = $1",
    [id],
  );
  return { metadata: rows[0]?.metadata.toString("utf8"), name: rows[0]?.name?.toString("utf8") ?? null };
};

test("what is not a JSON object is 422, of another type 415, too large 413, nested too deeply 422; on both endpoints", async () => {
  const paths = ["/credential-sessions", "/blueprints/open/trigger"];
  const key = bearer(stage.key);
  for (const path of paths) {
    const post = async (body: string | Uint8Array, ...headers: readonly (readonly [string, string])[]) =>
      await stage.send({
        method: "POST",
        path,
        headers: [key, ...(headers.length > 0 ? headers : [json])],
        body,
      });
    for (const body of [
      "[]",
      '"x"',
      "7",
      "null",
      "true",
      "{",
      "",
      "{}{}",
      "{'a':1}",
      '{"a":1,}',
      "\u0000",
      "NaN",
      '{"a":"\\ud800"}',
      '{"\\udc00":1}',
    ]) {
      assertRefused(await post(body), body === "" && path.endsWith("trigger") ? 400 : 422);
    }
    assertRefused(await post(Buffer.from('{"a":"\xff"}', "latin1")), 422);
    assertRefused(await post(`{"a":${"[".repeat(100)}${"]".repeat(100)}}`), 422);
    assertRefused(await post("[".repeat(500_000)), 422);
    for (const type of [
      "text/plain",
      "application/xml",
      "application/x-www-form-urlencoded",
      "application/json; charset=utf-16",
      "application/jsonp",
      "application",
    ]) {
      assertRefused(await post("{}", ["Content-Type", type]), 415);
    }
    assertRefused(await post("{}", ["X-None", "x"]), 415);
    assertRefused(await post(`{"a":"${"x".repeat(5_300_000)}"}`), 413);
    assertRefused(await post(`{"a":[${"1,".repeat(250_001)}1]}`), 413);
    assert.equal(
      (
        await post('{"strategy_id":"strat_acme","needed":1,"needed_too":1}', [
          "content-type",
          'Application/JSON; Charset="UTF-8"',
        ])
      ).status < 300,
      true,
    );
  }
  const over = JSON.stringify({ strategy_id: "strat_acme", padding: "x".repeat(1_048_576) });
  assertRefused(
    await stage.send({ method: "POST", path: "/credential-sessions", headers: [key, json], body: over }),
    413,
  );
  // A trigger may have five times as much.
  assert.equal((await triggerOpen({ ...NEEDED, padding: "x".repeat(4_000_000) })).status, 202);
  assertRefused(
    await stage.send({
      method: "POST",
      path: "/credential-sessions",
      headers: [key, ["Content-Type", "multipart/form-data; boundary=x"]],
      body: "--x--",
    }),
    415,
  );
});

test("multipart: no boundary 415, a broken body, a repeated name or a file where a text belongs 422; nothing stays behind", async () => {
  const part = (name: string, rest = "", value = "v") =>
    `--b\r\nContent-Disposition: form-data; name="${name}"${rest}\r\n\r\n${value}\r\n`;
  const post = async (body: string, type = "multipart/form-data; boundary=b") =>
    await stage.send({
      method: "POST",
      path: "/blueprints/open/trigger",
      headers: [bearer(stage.key), ["Content-Type", type]],
      body,
    });
  const needed = part("needed") + part("needed_too");
  assertRefused(await post(`${needed}--b--\r\n`, "multipart/form-data"), 415);
  assertRefused(await post(`${needed}--b--\r\n`, `multipart/form-data; boundary=${"b".repeat(80)}`), 415);
  assertRefused(await post(needed), 422);
  assertRefused(await post(`${needed}${part("data")}${part("data")}--b--\r\n`), 422, "data");
  assertRefused(await post(`${needed}${part("x")}${part("x")}--b--\r\n`), 422, "x");
  for (const field of ["needed", "run_name", "credential_id"]) {
    const others = field === "needed" ? part("needed_too") : needed;
    assertRefused(await post(`${others}${part(field, '; filename="f"')}--b--\r\n`), 422, field);
  }
  assertRefused(await post(`${part("needed")}--b--\r\n`), 400, "needed_too");
  assert.deepEqual(await counts(), earlier);
  // A file under a key that is ignored is not kept either; that of an INPUT is.
  assert.equal(
    (await post(`${needed}${part("data", "", "[]")}${part("x", '; filename="f"')}--b--\r\n`)).status,
    202,
  );
  await assertFiles(earlier[2] ?? 0);
  const form = new FormData();
  form.append("credential_id", stage.credential);
  form.append("file", new File(["kept"], "kept.txt"));
  form.append("fiel", new File(["misspelled"], "gone.txt"));
  assert.equal((await acme.post("/blueprints/with-login/trigger", form)).status, 202);
  await assertFiles((earlier[2] ?? 0) + 1);
  assert.equal(
    (
      await post(
        `${needed}${part("data", "", "[]")}${part("credential_id", "", stage.credential)}${part("credential_id", "", stage.credential)}--b--\r\n`,
      )
    ).status,
    202,
  );
});

test("required metadata that is omitted is 400 with one detail each; null counts as omitted, an empty text does not", async () => {
  for (const body of [undefined, {}, { needed: null, needed_too: null }])
    assertRefused(await triggerOpen(body), 400, "needed", "needed_too");
  assertRefused(await triggerOpen({ needed: "a" }), 400, "needed_too");
  // Before credentials and inputs are looked at.
  assertRefused(await triggerOpen({ data: {}, credential_id: "x" }), 400, "needed", "needed_too");
  assert.deepEqual(await counts(), earlier);
  assert.equal((await triggerOpen({ needed: "", needed_too: [] })).status, 202);
});

test("metadata and run_name are coerced to texts with their digits as written, names of Object's members included", async () => {
  const trigger = async (body: string) => await acme.post("/blueprints/with-login/trigger", body);
  const answer = await trigger(
    `{"credential_ids":["${stage.credential}"],"run_name":{"a":[1.0,null]},"po":12345678901234567890.10,"__proto__":{"x":"\\u00e9"},"constructor":"ignored","data":[]}`,
  );
  assert.equal(answer.status, 202, answer.text);
  const stored = await metadataOf(answer.body.id);
  assert.equal(stored.name, '{"a":[1.0,null]}');
  assert.equal(stored.metadata, '{"po":"12345678901234567890.10","__proto__":"{\\"x\\":\\"é\\"}"}');
  await acme.waitForRun(answer.body.id);
  const { text } = await acme.get(`/blueprint-runs/${answer.body.id}/results`);
  assert.ok(text.includes(`"metadata":${stored.metadata}`), text);
  const plain = await trigger(`{"credential_id":"${stage.credential}","run_name":null,"po":false}`);
  assert.deepEqual(await metadataOf(plain.body.id), { metadata: '{"po":"false"}', name: null });
});

test("run_name and metadata: too long or with U+0000 is 422 on the key", async () => {
  for (const run_name of ["x".repeat(256), "a\u0000b", ["x".repeat(300)]])
    assertRefused(await triggerOpen({ ...NEEDED, run_name }), 422, "run_name");
  assertRefused(await triggerOpen({ ...NEEDED, needed: "a\u0000b" }), 422, "needed");
  assert.deepEqual(await counts(), earlier);
  const named = await triggerOpen({ ...NEEDED, run_name: 42 });
  assert.equal((await metadataOf(named.body.id)).name, "42");
});

test("keys that the Blueprint does not know are ignored without a word, misspelled ones too", async () => {
  const body = {
    ...NEEDED,
    Data: "not json",
    dat: 1,
    credentials: "x",
    blueprint: {},
    status: "failed",
    "": 1,
    toString: 1,
  };
  const answer = await triggerOpen(body);
  assert.equal(answer.status, 202);
  assert.deepEqual(answer.body, { id: answer.body.id, run_key: answer.body.run_key, status: "queued" });
  assert.equal((await acme.waitForRun(answer.body.id)).body.status, "completed");
});

test("results: deliveryMethod is direct, presigned_url or absent; not completed is 409", async () => {
  const { body } = await triggerOpen({ ...NEEDED, data: '[{"a":1}]' });
  await acme.waitForRun(body.id);
  for (const query of [
    "deliveryMethod=",
    "deliveryMethod=Direct",
    "deliveryMethod=direct&deliveryMethod=direct",
    "deliveryMethod=inline",
  ]) {
    assertRefused(await acme.get(`/blueprint-runs/${body.id}/results?${query}`), 422, "deliveryMethod");
  }
  const direct = await acme.get(`/blueprint-runs/${body.run_key}/results?deliveryMethod=direct&other=1`);
  assert.deepEqual(direct.body.results, {
    out: { totalRecords: 1, records: [{ data: { a: 1 }, errors: [], isValid: true }] },
  });
  for (const query of ["", "?deliveryMethod=presigned_url"]) {
    const answer = await acme.get(`/blueprint-runs/${body.id}/results${query}`);
    assert.equal(answer.body.dataDeliveryMethod, "presigned_url");
    assert.equal((await fetch(answer.body.results.out)).status, 200);
  }
  const failing = await triggerOpen({ ...NEEDED, data: "[1]" });
  await acme.waitForRun(failing.body.id);
  const answer = await acme.get(`/blueprint-runs/${failing.body.id}/results`);
  assert.deepEqual(
    [answer.status, Object.keys(answer.body), answer.body.error.type],
    [409, ["error"], "conflict"],
  );
});

test("DELETE with a JSON content type and no body, or with any body, deletes", async () => {
  for (const headers of [[json], [["Content-Type", "text/plain"]], []] as const) {
    for (const body of [undefined, "not json"]) {
      const id = await connect(acme, "strat_acme", { token: "t-123" });
      const answer = await stage.send({
        method: "DELETE",
        path: `/credentials/${id}`,
        headers: [bearer(stage.key), ...headers],
        ...(body === undefined ? {} : { body }),
      });
      assert.deepEqual([answer.status, answer.text], [204, ""]);
      const used = await acme.post("/blueprints/with-login/trigger", { credential_id: id });
      assertRefused(used, 422, "credential_id");
    }
  }
});
