/** The TypeScript SDK against a real service, also through connections that are cut. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  AuthenticationError,
  ConflictError,
  Latchkey,
  LatchkeyError,
  NotFoundError,
  ValidationError,
  WaitTimeoutError,
} from "../../sdk/typescript/src/latchkey.ts";
import { openStage, type Stage } from "../api/stage.ts";
import { submitHostedForm } from "../caller.ts";
import { openCutter } from "./cutter.ts";

let stage: Stage;
let latchkey: Latchkey;
before(async () => {
  stage = await openStage();
  latchkey = new Latchkey({ apiKey: stage.key, baseUrl: stage.service.url });
});
after(async () => await stage[Symbol.asyncDispose]());

test("from a session to records, with a file, and to a deleted credential", async () => {
  const session = await latchkey.credentialSessions.create({
    strategy_id: "strat_acme",
    name: "User 1",
    metadata: { order: "4711" },
    cancel_url: "https://app.acme.example/",
    expires_in_seconds: 3_600,
  });
  assert.equal(session.status, "pending");
  assert.deepEqual([session.metadata, session.cancel_url], [{ order: "4711" }, "https://app.acme.example/"]);
  const states: string[] = [];
  const waiting = latchkey.credentialSessions.waitFor(session.id, {
    onChange: ({ status }) => states.push(status),
  });
  await submitHostedForm(session.hosted_url ?? "", { token: "a-token" });
  const { credential_id: credential } = await waiting;
  assert.equal(states.at(-1), "completed");

  const ignored: string[] = [];
  const run = await latchkey.blueprints.trigger(
    "with-login",
    {
      credential_id: [credential ?? ""],
      po: 17,
      data: [{ n: 1 }, { n: 2, text: 'a "quoted" {brace}' }],
      file: new File(["a,b"], "orders.csv"),
      "misspelled, key": true,
    },
    { onIgnoredKeys: (keys) => ignored.push(...keys) },
  );
  assert.deepEqual(ignored, ["misspelled, key"]);
  const steps: string[] = [];
  const ended = await latchkey.runs.waitFor(run.id, { onChange: ({ status }) => steps.push(status) });
  assert.equal(ended.status, "completed");
  assert.equal(steps.at(-1), "completed");
  const records = [];
  for await (const { data, isValid } of latchkey.runs.records<{ n: number }>(run.run_key)) {
    assert.ok(isValid);
    records.push(data);
  }
  assert.deepEqual(records, [{ n: 1 }, { n: 2, text: 'a "quoted" {brace}' }]);
  const results = await latchkey.runs.readResults(run.id, { deliveryMethod: "presigned_url" });
  assert.equal(results.dataDeliveryMethod, "presigned_url");
  assert.deepEqual(results.executionMetadata.metadata, { po: "17" });
  await assert.rejects(latchkey.runs.records(run.id, "aout").next(), /no result aout: pass one of out/);
  await assert.rejects(latchkey.runs.cancel(run.id), ConflictError);

  await latchkey.credentials.delete(credential ?? "");
  await assert.rejects(latchkey.credentials.delete(credential ?? ""), NotFoundError);
});

test("records of a large result come from its download, also when that is cut again and again", async () => {
  const rows = Array.from({ length: 34_000 }, (_, n) => ({ n, filler: `${n}-"${"x".repeat(100)}"` }));
  const run = await latchkey.blueprints.trigger("open", { needed: "a", needed_too: "b", data: rows });
  assert.equal((await latchkey.runs.waitFor(run.id)).status, "completed");
  let cuts = 0;
  const cutting: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    if (!String(input).includes("/downloads/") || cuts >= 4 || !response.body) return response;
    cuts += 1;
    let seen = 0;
    const limit = 1_000 * cuts;
    const part = response.body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(bytes, controller) {
          controller.enqueue(bytes.subarray(0, Math.max(0, limit - seen)));
          seen += bytes.length;
          if (seen >= limit) controller.error(new TypeError("terminated"));
        },
      }),
    );
    return new Response(part, response);
  };
  const through = new Latchkey({ apiKey: stage.key, baseUrl: stage.service.url, fetch: cutting });
  let next = 0;
  for await (const { data } of through.runs.records<{ n: number }>(run.id, "out")) {
    assert.equal(data.n, next);
    next += 1;
  }
  assert.equal(next, rows.length);
  assert.equal(cuts, 4);
});

test("a lost answer is asked for again with the same key: one run, one session", async () => {
  const keys: unknown[] = [];
  await using cutter = await openCutter(stage.service.url, ({ method, headers }) => {
    if (method === "POST") keys.push(headers["idempotency-key"]);
    return method === "POST" && keys.length % 3 !== 0;
  });
  const through = new Latchkey({ apiKey: stage.key, baseUrl: `${cutter.url}/api/v1/` });
  const [runs, sessions] = [await stage.count("run"), await stage.count("credential_session")];
  const run = await through.blueprints.trigger("open", { needed: "a", needed_too: "b", data: [] });
  await through.credentialSessions.create({ strategy_id: "strat_acme" }, { idempotencyKey: "mine" });
  assert.equal(await stage.count("run"), runs + 1);
  assert.equal(await stage.count("credential_session"), sessions + 1);
  assert.equal(new Set(keys.slice(0, 3)).size, 1);
  assert.deepEqual(keys.slice(3), ["mine", "mine", "mine"]);
  assert.equal((await through.runs.waitFor(run.id)).status, "completed");
});

test("errors say what is wrong, by type, code and field, and never hold the API key", async () => {
  const wrong = new Latchkey({ apiKey: "lk_wrong", baseUrl: stage.service.url });
  await assert.rejects(wrong.runs.readStatus("run_x"), AuthenticationError);
  await assert.rejects(
    latchkey.blueprints.trigger("open", { needed: "a" }),
    (error) =>
      error instanceof ValidationError &&
      error.status === 400 &&
      error.hasCode("invalid_input_data") &&
      error.details[0]?.field === "needed_too" &&
      error.requestId !== undefined &&
      !JSON.stringify(error, Object.getOwnPropertyNames(error)).includes(stage.key),
  );
  const session = await latchkey.credentialSessions.create({ strategy_id: "strat_acme" });
  await assert.rejects(
    latchkey.credentialSessions.waitFor(session.id, { timeoutMs: 0 }),
    (error) => error instanceof WaitTimeoutError && error.message.includes("pending"),
  );
  assert.throws(() => new Latchkey({ apiKey: "", baseUrl: stage.service.url }), LatchkeyError);
  assert.throws(() => new Latchkey({ apiKey: "lk_x", baseUrl: "localhost" }), /baseUrl is not a URL/);
  const dashboard = new Latchkey({
    apiKey: stage.key,
    baseUrl: `${stage.service.url}/dashboard`,
    maxRetries: 0,
  });
  await assert.rejects(dashboard.runs.readStatus("run_x"), /check baseUrl/);
});
