import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { Answer, Caller } from "../caller.ts";
import { connectLedger, PASSWORD_STRATEGY } from "../flows.ts";
import { assertProblem } from "../shapes.ts";
import { first, limited, other, prove, section } from "../suite.ts";

const OPEN = "/blueprints/conformance-open/trigger";
const REPLAY = "idempotent-replay";
const AT_ONCE = 20;

const post = async (key: string, body: unknown, caller: Caller = first(), path = OPEN): Promise<Answer> =>
  await caller.post(path, body, { "idempotency-key": key });

function assertReplay(answer: Answer, original: Answer): void {
  assert.equal(answer.status, original.status);
  assert.equal(answer.text, original.text);
  assert.equal(answer.headers.get(REPLAY), "true");
}

section("Idempotency", [
  prove(
    'Spec, Idempotency 1: "The header Idempotency-Key is optional but recommended on the three supported endpoints"',
    "without a key two equal requests are two; a key on a GET is not looked at",
    async () => {
      const [one, two] = [await first().post(OPEN, {}), await first().post(OPEN, {})];
      assert.deepEqual([one.status, two.status], [202, 202]);
      assert.notEqual(one.at("id"), two.at("id"));
      const key = { "idempotency-key": "" };
      const status = await first().get(`/blueprint-runs/${one.string("id")}/status`, key);
      assert.equal(status.status, 200);
      assert.equal(status.headers.get(REPLAY), null);
    },
  ),
  prove(
    [
      'Spec, Idempotency 2: "First request: processed normally, the response is stored with the key"',
      'Spec, Idempotency 3: "Same key and same body: the original response is replayed, with response header Idempotent-Replay: true"',
    ],
    "the first answer has no replay header; the second is the same status and bytes, with it, at all three endpoints",
    async () => {
      const credential = await connectLedger();
      const requests = [
        (key: string) => post(key, { strategy_id: PASSWORD_STRATEGY }, first(), "/credential-sessions"),
        (key: string) => post(key, { hold: "none" }),
        (key: string) => first().delete(`/credentials/${credential}`, { "idempotency-key": key }),
      ];
      for (const request of requests) {
        const key = randomUUID();
        const original = await request(key);
        assert.ok(original.status < 300);
        assert.equal(original.headers.get(REPLAY), null);
        assertReplay(await request(key), original);
        assertReplay(await request(key), original);
      }
    },
  ),
  prove(
    'Spec, Idempotency 3: "Same key and same body"',
    "bodies are compared as values: key order, white space and escapes do not count, digits and ignored keys do",
    async () => {
      const key = randomUUID();
      const original = await post(key, '{"hold":"\u00e9","n":[1,2.50]}');
      assertReplay(await post(key, ' { "n" : [1, 2.50],\n"hold": "\\u00e9" } '), original);
      for (const body of ['{"hold":"é","n":[1,2.5]}', '{"hold":"é","n":[2.50,1]}', '{"hold":"é"}', "{}"]) {
        assertProblem(await post(key, body), 409, { code: "idempotency_key_reuse" });
      }
    },
  ),
  prove(
    'Spec, Idempotency 3: "the original response is replayed"',
    "of twenty equal requests at once one is processed and all give its answer",
    async () => {
      const key = randomUUID();
      const answers = await Promise.all(Array.from({ length: AT_ONCE }, async () => await post(key, {})));
      assert.deepEqual([...new Set(answers.map((answer) => answer.status))], [202]);
      assert.equal(new Set(answers.map((answer) => answer.text)).size, 1);
      assert.equal(answers.filter((answer) => answer.headers.get(REPLAY) === "true").length, AT_ONCE - 1);
    },
  ),
  prove(
    'Spec, Idempotency 4: "Same key and different body: 409 conflict with detail code idempotency_key_reuse"',
    "another body, another endpoint or another path under a used key is 409 and does nothing",
    async () => {
      const key = randomUUID();
      await post(key, { a: 1 });
      const [credential, detail] = [await connectLedger(), { code: "idempotency_key_reuse" }];
      assertProblem(await post(key, { a: 2 }), 409, detail);
      const session = { strategy_id: PASSWORD_STRATEGY };
      assertProblem(await post(key, session, first(), "/credential-sessions"), 409, detail);
      assertProblem(await post(key, { a: 1 }, first(), "/blueprints/conformance-sized/trigger"), 409, detail);
      assertProblem(
        await first().delete(`/credentials/${credential}`, { "idempotency-key": key }),
        409,
        detail,
      );
      assert.equal((await first().delete(`/credentials/${credential}`)).status, 204);
    },
  ),
  prove(
    'Spec, Idempotency 2: "processed normally"',
    "a refused request was not processed: corrected, it may be sent again under its key",
    async () => {
      const key = randomUUID();
      const path = "/blueprints/conformance-echo/trigger";
      assertProblem(await post(key, {}, first(), path), 400);
      const corrected = await post(key, { order: "1" }, first(), path);
      assert.equal(corrected.status, 202);
      assert.equal(corrected.headers.get(REPLAY), null);
      assertReplay(await post(key, { order: "1" }, first(), path), corrected);
    },
  ),
  prove(
    [
      'Spec, Idempotency 5: "Keys are scoped to the account"',
      'Spec, Authentication 5: "Idempotency keys are scoped to the account"',
    ],
    "two API keys of an account share their idempotency keys, two accounts do not",
    async () => {
      const key = randomUUID();
      const original = await post(key, {});
      assertReplay(await post(key, {}, limited()), original);
      const theirs = await post(key, {}, other(), "/blueprints/conformance-other/trigger");
      assert.equal(theirs.status, 202);
      assert.equal(theirs.headers.get(REPLAY), null);
      assert.notEqual(theirs.at("id"), original.at("id"));
    },
  ),
]);
