import assert from "node:assert/strict";
import { createSession, foreign, rightLogin, sharedLedger, submitHostedForm } from "../flows.ts";
import { assertProblem, assertSession } from "../shapes.ts";
import { first, prove, section } from "../suite.ts";

section("GET /credential-sessions/{id}", [
  prove(
    [
      'Spec, GET /credential-sessions/{id}: "Returns the credential session object with status 200"',
      'Spec, GET /credential-sessions/{id}: "Used to poll"',
    ],
    "polling a session gives 200 and the session each time, pending and then completed",
    async () => {
      const session = await createSession(first());
      const path = `/credential-sessions/${session.string("id")}`;
      for (let poll = 0; poll < 3; poll++) {
        const answer = await first().get(path);
        assert.equal(answer.status, 200);
        assertSession(answer.object(), "pending");
      }
      await submitHostedForm(session.string("hosted_url"), rightLogin());
      const answer = await first().get(path);
      assert.equal(answer.status, 200);
      assertSession(answer.object(), "completed");
    },
  ),
  prove(
    'Spec, GET /credential-sessions/{id}: "Path parameter id: string, sess_..."',
    "an id that is no session of the account is 404, whatever it looks like",
    async () => {
      const ids = [
        "sess_unknown",
        "x",
        "%00",
        "..%2f..",
        "a".repeat(400),
        await sharedLedger(),
        (await foreign()).session,
      ];
      for (const id of ids) assertProblem(await first().get(`/credential-sessions/${id}`), 404);
    },
  ),
]);
