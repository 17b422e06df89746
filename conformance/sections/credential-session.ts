import assert from "node:assert/strict";
import { createSession, openHostedForm, PASSWORD_STRATEGY, rightLogin, submitHostedForm } from "../flows.ts";
import { assertSession } from "../shapes.ts";
import { first, prove, section } from "../suite.ts";

const RETURN_URL = "https://app.conformance.example/done?plan=pro";
const DAY_MS = 86_400_000;

section("Credential session", [
  prove(
    [
      'Spec, Credential session: "id | string | sess_..."',
      'Spec, Credential session: "status | string | pending, completed, expired"',
      'Spec, Credential session: "strategy_id | string | strat_..."',
      'Spec, Credential session: "created_at | timestamp"',
      'Spec, Credential session: "Form URL for the end user"',
    ],
    "a new session has its nine fields and no other, and its URL shows a form",
    async () => {
      const before = Date.now();
      const session = await createSession(first());
      assertSession(session.object(), "pending");
      assert.equal(session.at("strategy_id"), PASSWORD_STRATEGY);
      // Clocks of two machines: near is enough.
      assert.ok(Math.abs(Date.parse(session.string("created_at")) - before) < 600_000);
      assert.match(await openHostedForm(session.string("hosted_url")), /<form\b/);
    },
  ),
  prove(
    [
      'Spec, Credential session: "Populated only while status is pending; null after completed or expired"',
      'Spec, Credential session: "cred_...; null until status is completed; stable for the life of the credential"',
      'Spec, Credential session: "completed_at | timestamp or null | null until completed"',
    ],
    "hosted_url, credential_id and completed_at change at the completion together, and stay",
    async () => {
      const session = await createSession(first());
      const path = `/credential-sessions/${session.string("id")}`;
      assertSession((await first().get(path)).object(), "pending");
      await submitHostedForm(session.string("hosted_url"), rightLogin());
      const completed = await first().get(path);
      assertSession(completed.object(), "completed");
      assert.ok(completed.string("completed_at") >= completed.string("created_at"));
      assert.equal((await first().get(path)).text, completed.text);
    },
  ),
  prove(
    [
      'Spec, Credential session: "The caller-supplied URL given at creation, if any"',
      'Spec, Credential session: "the end user is redirected there with session_id appended as a query parameter"',
    ],
    "return_url is shown as it was given, null without one, and gets session_id after the form",
    async () => {
      const session = await createSession(first(), { return_url: RETURN_URL });
      assert.equal(session.at("return_url"), RETURN_URL);
      const { location } = await submitHostedForm(session.string("hosted_url"), rightLogin());
      assert.equal(location, `${RETURN_URL}&session_id=${session.string("id")}`);
      assert.equal((await createSession(first())).at("return_url"), null);
    },
  ),
  prove(
    [
      'Spec, Credential session: "Default lifetime 7 days from creation"',
      'Spec, Limits: "Credential session lifetime | 7 days by default"',
    ],
    "expires_at is seven days after created_at, to the millisecond",
    async () => {
      const session = await createSession(first());
      const lifetimeMs = Date.parse(session.string("expires_at")) - Date.parse(session.string("created_at"));
      assert.equal(lifetimeMs, 7 * DAY_MS);
    },
  ),
]);
