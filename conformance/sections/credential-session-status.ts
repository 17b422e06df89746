import assert from "node:assert/strict";
import {
  complete,
  connectLedger,
  createSession,
  openHostedForm,
  rightLogin,
  submitHostedForm,
  trigger,
  waitForRun,
  wrongLogin,
} from "../flows.ts";
import { assertSession, CREDENTIAL_ID } from "../shapes.ts";
import { first, prove, section } from "../suite.ts";

const RETURN_URL = "https://app.conformance.example/back";

section("Credential session status", [
  prove(
    'Spec, Credential session status: "POST /credential-sessions | valid request | pending | hosted_url populated, credential_id null"',
    "a valid request makes a pending session with its form and no credential",
    async () => {
      const session = await createSession(first());
      assertSession(session.object(), "pending");
      assert.equal((await first().get(`/credential-sessions/${session.string("id")}`)).text, session.text);
    },
  ),
  prove(
    'Spec, Credential session status: "credential_id populated, completed_at set, hosted_url becomes null, redirect to return_url with session_id if a return URL was given; otherwise the hosted page shows a success message"',
    "a submitted form completes the session: with a return_url by redirect, without one with a page that says so",
    async () => {
      const session = await createSession(first(), { return_url: RETURN_URL });
      const redirect = await submitHostedForm(session.string("hosted_url"), rightLogin());
      assert.equal(redirect.status, 303);
      assert.equal(redirect.location, `${RETURN_URL}?session_id=${session.string("id")}`);
      assertSession(
        (await first().get(`/credential-sessions/${session.string("id")}`)).object(),
        "completed",
      );
      const without = await createSession(first());
      const page = await submitHostedForm(without.string("hosted_url"), rightLogin());
      assert.deepEqual([page.status, page.location], [200, null]);
      assert.match(page.page, /<h1>[^<]+<\/h1>/);
      assert.doesNotMatch(page.page, /<form\b/);
      assertSession(
        (await first().get(`/credential-sessions/${without.string("id")}`)).object(),
        "completed",
      );
    },
  ),
  prove(
    'Spec, Credential session status: "the same hosted_url can be reopened"',
    "opening the form again and again changes nothing, and it can still be submitted",
    async () => {
      const session = await createSession(first());
      const url = session.string("hosted_url");
      const path = `/credential-sessions/${session.string("id")}`;
      for (let visit = 0; visit < 3; visit++) assert.match(await openHostedForm(url), /<form\b/);
      assert.equal((await first().get(path)).text, session.text);
      await submitHostedForm(url, rightLogin());
      assert.equal((await first().get(path)).at("status"), "completed");
    },
  ),
  prove(
    [
      'Spec, Credential session status 1: "completed means terminal and usable: the credential is vaulted and can be passed to a run"',
      'Spec, Credential session status 3: "completed will always mean terminal and usable"',
      'Spec, Versioning: "The meaning of completed for sessions will not change"',
    ],
    "a completed session never changes again, whatever is done with its link, and its credential works in a run",
    async () => {
      const session = await createSession(first());
      const url = session.string("hosted_url");
      const path = `/credential-sessions/${session.string("id")}`;
      const form = await openHostedForm(url);
      await submitHostedForm(url, rightLogin());
      const completed = await first().get(path);
      // A second tab: the form as it was rendered before.
      const csrf = /name="_csrf" value="([^"]*)"/.exec(form)?.[1] ?? "";
      await fetch(url, {
        method: "POST",
        body: new URLSearchParams({ _csrf: csrf, ...wrongLogin() }),
        redirect: "manual",
      });
      const reopened = await fetch(url);
      assert.doesNotMatch(await reopened.text(), /<form\b/);
      assert.equal((await first().get(path)).text, completed.text);
      await complete("conformance-ledger", { credential_id: completed.string("credential_id") });
    },
  ),
  prove(
    [
      'Spec, Credential session status 1: "the credentials were collected and vaulted, not that they were tested; validity is checked at the first run, so wrong credentials surface as a failed run"',
      'Spec, Blueprint run status: "the run is logging into the target system; invalid credentials surface here"',
    ],
    "wrong credentials complete their session, and fail their first run before it is running",
    async () => {
      const credential = await connectLedger(wrongLogin());
      assert.match(credential, CREDENTIAL_ID);
      const run = await trigger("conformance-ledger", { credential_id: credential });
      const { last } = await waitForRun(run.string("id"));
      assert.equal(last.at("status"), "failed");
      assert.equal(last.at("started_at"), null);
    },
  ),
]);
