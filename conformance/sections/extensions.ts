import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { completedRun, foreign, trigger } from "../flows.ts";
import { assertProblem, assertProjection } from "../shapes.ts";
import { deployment, first, other, prove, section } from "../suite.ts";

/** What the service adds to the interface. The sentences are those that the additions must not break. */

/** A run that stands still at the target, running. */
async function heldRun(): Promise<{ readonly id: string; release(): void }> {
  const name = `hold-${randomUUID()}`;
  const hold = deployment().target.hold(name);
  const id = (await trigger("conformance-open", { hold: name })).string("id");
  await hold.reached;
  return { id, release: () => hold.release() };
}

const EMBEDDED = "/embedded-credential-sessions";

section("Extensions", [
  prove(
    [
      'Spec, Identifier prefixes: "ecs_ | Embedded credential session"',
      'Spec, Embedded credential session: "exists with ids prefixed ecs_"',
    ],
    "an embedded session is made for one origin; its token is in that answer and its replay alone",
    async () => {
      const body = { origin: "https://app.conformance.example", blueprint_keys: ["conformance-ledger"] };
      const key = { "idempotency-key": randomUUID() };
      const made = await first().post(EMBEDDED, body, key);
      assert.equal(made.status, 201, made.text);
      assert.match(made.string("id"), /^ecs_/);
      assert.match(made.string("client_token"), /^.{20,}$/);
      assert.deepEqual(
        [made.at("status"), made.at("origin"), made.at("selected_blueprint_key"), made.at("credential_id")],
        ["pending", body.origin, "conformance-ledger", null],
      );
      const replay = await first().post(EMBEDDED, body, key);
      assert.deepEqual([replay.text, replay.headers.get("idempotent-replay")], [made.text, "true"]);
      assertProblem(await first().post(EMBEDDED, { ...body, locale: "de" }, key), 409);
      const path = `${EMBEDDED}/${made.string("id")}`;
      const { client_token: _, ...shown } = made.object();
      assert.deepEqual((await first().get(path)).object(), shown);
      assertProblem(await other().get(path), 404);
      assertProblem(await first().post(EMBEDDED, { ...body, origin: "https://evil.example" }), 422);
      assertProblem(await first().post(EMBEDDED, { ...body, blueprint_keys: ["unknown"] }), 422);
      const page = await fetch(made.string("embed_url"));
      assert.match(
        page.headers.get("content-security-policy") ?? "",
        /frame-ancestors https:\/\/app\.conformance\.example(;|$)/,
      );
    },
  ),
  prove(
    [
      'Spec, Blueprint run status: "cancelled | yes | cancelled"',
      'Spec, GET /blueprint-runs/{runId}/results 3: "While the run is incomplete the endpoint returns 409"',
    ],
    "a running run is cancelled once: 200 with the projection, its replay the same, then 409; it has no results",
    async () => {
      const run = await heldRun();
      const path = `/blueprint-runs/${run.id}`;
      const key = { "idempotency-key": randomUUID() };
      const answer = await first().post(`${path}/cancel`, undefined, key);
      assert.equal(answer.status, 200, answer.text);
      assertProjection(answer.object());
      assert.equal(answer.at("status"), "cancelled");
      assert.equal(answer.text, (await first().get(`${path}/status`)).text);
      const replay = await first().post(`${path}/cancel`, undefined, key);
      assert.deepEqual([replay.text, replay.headers.get("idempotent-replay")], [answer.text, "true"]);
      assertProblem(await first().post(`${path}/cancel`), 409);
      assertProblem(await first().get(`${path}/results`), 409);
      run.release();
      assert.equal((await first().get(`${path}/status`)).text, answer.text);
      assertProblem(await first().post(`/blueprint-runs/${(await foreign()).run}/cancel`), 404);
    },
  ),
  prove(
    'Spec, Run status projection: "The projection never contains run inputs, outputs, file URLs, raw error strings or other run content"',
    "the events of a run are its projections, the last one is the status, and 204 tells who has seen it to stop",
    async () => {
      const run = await completedRun();
      const answer = await first().get(`/blueprint-runs/${run}/events`);
      assert.equal(answer.status, 200);
      assert.match(answer.headers.get("content-type") ?? "", /^text\/event-stream\b/);
      const [, id = "", data = ""] = /^event: status\nid: (\d+)\ndata: (.*)\n\n$/m.exec(answer.text) ?? [];
      assert.equal(data, (await first().get(`/blueprint-runs/${run}/status`)).text);
      const seen = await first().get(`/blueprint-runs/${run}/events`, { "last-event-id": id });
      assert.deepEqual([seen.status, seen.text], [204, ""]);
      assertProblem(await first().get(`/blueprint-runs/${(await foreign()).run}/events`), 404);
    },
  ),
  prove(
    'Spec, POST /blueprints/{blueprintKey}/trigger: "Silently ignored, including misspelled keys (no error)"',
    "ignored keys are named to a caller that asks, and a Blueprint's schema names those that are not ignored",
    async () => {
      const path = "/blueprints/conformance-open";
      const asked = await first().post(`${path}/trigger`, { odd: 1 }, { prefer: "report-ignored-keys" });
      assert.equal(asked.status, 202);
      assert.equal(asked.headers.get("preference-applied"), "report-ignored-keys");
      assert.equal(asked.headers.get("ignored-keys"), "odd");
      const schema = await first().get(`${path}/schema`);
      assert.equal(schema.at("$schema"), "https://json-schema.org/draft/2020-12/schema");
      assert.equal(schema.at("properties.odd"), undefined);
      assert.notEqual(schema.at("properties.hold"), undefined);
      assertProblem(await first().get("/blueprints/unknown/schema"), 404);
    },
  ),
]);
