import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { completedRun, createSession, PASSWORD_STRATEGY } from "../flows.ts";
import { assertProblem } from "../shapes.ts";
import { first, other, prove, section } from "../suite.ts";

/** More polls at once than many clients make in a second, each every two seconds. */
const POLLS = 200;
/** Three times the burst of the other account's document. */
const FLOOD = 120;

section("Limits", [
  prove(
    [
      'Spec, Limits: "Session polling interval | 2 seconds"',
      'Spec, Limits: "Run status polling interval | 2 to 5 seconds"',
      'Spec, GET /blueprint-runs/{runId}/status: "Poll every 2 to 5 seconds until a terminal status"',
      'Spec, GET /credential-sessions/{id}: "Poll every 2 seconds while the status is non-terminal"',
    ],
    "polling of two hundred runs and sessions in one moment is never refused",
    async () => {
      const run = await completedRun();
      const session = (await createSession(first())).string("id");
      const paths = [`/blueprint-runs/${run}/status`, `/credential-sessions/${session}`];
      const polls = Array.from(
        { length: POLLS },
        async (_, index) => await first().get(paths[index % 2] ?? ""),
      );
      const statuses = new Set((await Promise.all(polls)).map((answer) => answer.status));
      assert.deepEqual([...statuses], [200]);
    },
  ),
  prove(
    'Spec, Limits: "Idempotency key format | any non-empty string up to 255 characters | same three endpoints"',
    "a key of 255 characters is taken, one of 256 or none at all is 422, at each of the three endpoints",
    async () => {
      const requests = [
        (key: string) =>
          first().post(
            "/credential-sessions",
            { strategy_id: PASSWORD_STRATEGY },
            { "idempotency-key": key },
          ),
        (key: string) => first().post("/blueprints/conformance-open/trigger", {}, { "idempotency-key": key }),
        (key: string) => first().delete("/credentials/cred_unknown", { "idempotency-key": key }),
      ];
      for (const request of requests) {
        for (const key of ["x".repeat(256), "", " "])
          assertProblem(await request(key), 422, { field: "Idempotency-Key" });
        const unusual = `"quoted", spaced; ${randomUUID()}`;
        for (const key of [randomUUID().padEnd(255, "x"), unusual])
          assert.notEqual((await request(key)).status, 422);
      }
    },
  ),
  prove(
    [
      'Spec, Idempotency: "A 429 rate_limit_exceeded response exists"',
      'Spec, Errors: "429 | rate_limit_exceeded | Rate limit hit"',
    ],
    "requests far over an account's rate are 429 in the envelope, its polls and the other account are not, and later it goes on",
    async () => {
      const flood = Array.from(
        { length: FLOOD },
        async () => await other().post("/blueprints/unknown/trigger", {}),
      );
      const answers = await Promise.all(flood);
      const refused = answers.filter((answer) => answer.status === 429);
      assert.ok(refused.length > 0, "no request was refused");
      for (const answer of refused) assertProblem(answer, 429);
      for (const answer of answers.filter((each) => !refused.includes(each))) assertProblem(answer, 404);
      assert.equal((await other().get("/credential-sessions/sess_unknown")).status, 404);
      assert.equal((await first().post("/blueprints/unknown/trigger", {})).status, 404);
      const seconds = Math.max(...refused.map((answer) => Number(answer.headers.get("retry-after"))));
      assert.ok(seconds >= 1 && seconds <= 60, `Retry-After: ${seconds}`);
      // The refused ones took nothing: after the longest wait that was named there is room again.
      await sleep(seconds * 1_000);
      assertProblem(await other().post("/blueprints/unknown/trigger", {}), 404);
    },
  ),
]);
