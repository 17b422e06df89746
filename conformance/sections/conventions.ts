import assert from "node:assert/strict";
import { completedRun, createSession, readResults } from "../flows.ts";
import { TIMESTAMP } from "../shapes.ts";
import { deployment, first, prove, section } from "../suite.ts";

section("Conventions", [
  prove(
    [
      'Spec, Conventions: "is the service address including the version prefix /api/v1"',
      'Spec, Conventions: "All paths below are relative to {base_url}"',
    ],
    "the base URL ends with /api/v1, and a path after it is an endpoint",
    async () => {
      assert.match(deployment().baseUrl, /\/api\/v1$/);
      assert.equal((await createSession(first())).at("status"), "pending");
    },
  ),
  prove(
    'Spec, Conventions: "Field names are snake_case except where the results payload uses camelCase"',
    "names of fields are snake_case, and camelCase in the results",
    async () => {
      const run = await completedRun();
      const session = await createSession(first());
      const status = await first().get(`/blueprint-runs/${run}/status`);
      for (const answer of [session, status]) {
        for (const name of Object.keys(answer.object())) assert.match(name, /^[a-z]+(_[a-z]+)*$/);
      }
      const results = await readResults(run);
      const names = [...Object.keys(results.object()), ...Object.keys(results.at("executionMetadata") ?? {})];
      assert.deepEqual(names, [
        "dataDeliveryMethod",
        "results",
        "executionMetadata",
        "runKey",
        "metadata",
        "timings",
      ]);
    },
  ),
  prove(
    'Spec, Conventions: "Timestamps are ISO 8601 strings in UTC with milliseconds"',
    "every timestamp is in UTC with three digits of milliseconds",
    async () => {
      const run = await completedRun();
      const session = await createSession(first());
      for (const field of ["created_at", "expires_at"]) assert.match(session.string(field), TIMESTAMP);
      const status = await first().get(`/blueprint-runs/${run}/status`);
      for (const field of ["created_at", "started_at", "ended_at"])
        assert.match(status.string(field), TIMESTAMP);
      const results = await readResults(run);
      for (const field of ["executionBeganAt", "executionCompletedAt"]) {
        assert.match(results.string(`executionMetadata.timings.${field}`), TIMESTAMP);
      }
    },
  ),
]);
