import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { Answer } from "../caller.ts";
import {
  complete,
  completedRun,
  connect,
  connectLedger,
  createSession,
  download,
  openHostedForm,
  readResults,
  rightLogin,
  submitHostedForm,
  trigger,
  waitForRun,
  wrongLogin,
} from "../flows.ts";
import { assertProblem, CREDENTIAL_ID } from "../shapes.ts";
import { deployment, first, prove, section } from "../suite.ts";
import { CODE_SECRET, ENTRIES } from "../target.ts";

const RETURN_URL = "https://app.conformance.example/connected";

section("What the service does", [
  prove(
    [
      'Spec, What the service does: "Typical flow: create session, send the user to hosted_url, the user submits and is redirected"',
      'Spec, What the service does: "connect an end user\'s third-party account and then run configured workflows"',
      'Spec, What the service does 3: "A trigger creates a run"',
      'Spec, What the service does 3: "The caller polls a status projection and, after completion, fetches outputs"',
    ],
    "the typical flow, from the session over the form, the redirect, the run and its results to the disconnect",
    async () => {
      const session = await createSession(first(), { return_url: RETURN_URL });
      const id = session.string("id");
      const submitted = await submitHostedForm(session.string("hosted_url"), rightLogin());
      assert.equal(submitted.location, `${RETURN_URL}?session_id=${id}`);
      const completed = await first().get(`/credential-sessions/${id}`);
      assert.equal(completed.at("status"), "completed");
      const credential = completed.string("credential_id");
      const run = await complete("conformance-ledger", { credential_id: credential });
      const results = await readResults(run);
      assert.equal(results.at("results.entries.totalRecords"), ENTRIES.length);
      const urls = await readResults(run, "");
      const { json } = await download(urls.string("results.entries"));
      assert.deepEqual(json, results.at("results.entries"));
      assert.equal((await first().delete(`/credentials/${credential}`)).status, 204);
    },
  ),
  prove(
    [
      'Spec, What the service does 1: "a short-lived, service-hosted form that collects an end user\'s credentials"',
      'Spec, What the service does 1: "The caller receives only an opaque credential id"',
      'Spec, What the service does 1: "Secret values are never returned by any endpoint"',
      'Spec, Credential: "Field values are encrypted at rest and never returned"',
    ],
    "the form is the service's own, and what was typed into it is in no answer of any endpoint",
    async () => {
      const login = rightLogin();
      const wrong = wrongLogin();
      const answers: Answer[] = [];
      for (const values of [login, wrong]) {
        const session = await createSession(first());
        assert.match(await openHostedForm(session.string("hosted_url")), /<form\b[^>]*method="post"/i);
        const submitted = await submitHostedForm(session.string("hosted_url"), values);
        assert.doesNotMatch(submitted.page, new RegExp(values.password));
        const completed = await first().get(`/credential-sessions/${session.string("id")}`);
        assert.match(completed.string("credential_id"), CREDENTIAL_ID);
        const body = { credential_id: completed.string("credential_id") };
        const triggered = await trigger("conformance-ledger", body);
        const { last } = await waitForRun(triggered.string("id"));
        answers.push(session, completed, triggered, last);
        for (const method of ["direct", "presigned_url"]) {
          answers.push(
            await first().get(`/blueprint-runs/${triggered.string("id")}/results?deliveryMethod=${method}`),
          );
        }
        answers.push(await first().delete(`/credentials/${completed.string("credential_id")}`));
      }
      for (const answer of answers) {
        const whole = JSON.stringify([...answer.headers]) + answer.text;
        for (const { username, password } of [login, wrong]) {
          assert.ok(!whole.includes(password), "an answer holds a password");
          assert.ok(!whole.includes(username), "an answer holds a user name");
        }
      }
    },
  ),
  prove(
    'Spec, What the service does 2: "The request body of a trigger is defined by the Blueprint\'s configuration"',
    "the same body is refused by one Blueprint and taken by another",
    async () => {
      assertProblem(await first().post("/blueprints/conformance-echo/trigger", { bytes: "10" }), 400);
      await trigger("conformance-sized", { bytes: "10" });
    },
  ),
  prove(
    [
      'Spec, What the service does 3: "The run executes asynchronously"',
      'Spec, POST /blueprints/{blueprintKey}/trigger: "202 means queued, not done"',
      'Spec, POST /blueprints/{blueprintKey}/trigger: "Queues an asynchronous run"',
    ],
    "a trigger answers while the target has not answered yet, and the run ends later by itself",
    async () => {
      const name = `hold-${randomUUID()}`;
      const hold = deployment().target.hold(name);
      const run = (await trigger("conformance-open", { hold: name })).string("id");
      await hold.reached;
      const status = await first().get(`/blueprint-runs/${run}/status`);
      assert.equal(status.at("ended_at"), null);
      hold.release();
      assert.equal((await waitForRun(run)).last.at("status"), "completed");
    },
  ),
  prove(
    'Spec, What the service does 3: "either inline or through temporary download URLs"',
    "a completed run's outputs are the same inline and behind the download URLs",
    async () => {
      const run = await completedRun();
      const inline = (await readResults(run)).at("results") as Record<string, unknown>;
      const urls = (await readResults(run, "?deliveryMethod=presigned_url")).at("results") as Record<
        string,
        string
      >;
      assert.deepEqual(Object.keys(urls).toSorted(), Object.keys(inline).toSorted());
      for (const [key, url] of Object.entries(urls))
        assert.deepEqual((await download(url)).json, inline[key]);
    },
  ),
  prove(
    'Spec, What the service does 5: "There is no list-credentials and no get-credential endpoint, and no update-credential operation"',
    "credentials can't be listed, read or changed: 404 for every such request",
    async () => {
      const credential = await connectLedger();
      const { baseUrl, apiKey } = deployment();
      const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };
      const requests = [
        ["GET", "/credentials"],
        ["POST", "/credentials"],
        ["GET", "/credential-sessions"],
        ["GET", `/credentials/${credential}`],
        ["PUT", `/credentials/${credential}`],
        ["PATCH", `/credentials/${credential}`],
        ["POST", `/credentials/${credential}`],
      ] as const;
      for (const [method, path] of requests) {
        const body = method === "GET" ? {} : { body: "{}" };
        const response = await fetch(`${baseUrl}${path}`, { method, headers, ...body });
        assert.equal(response.status, 404, `${method} ${path}`);
        assert.deepEqual(Object.keys((await response.json()) as object), ["error"]);
      }
      await complete("conformance-ledger", { credential_id: credential });
    },
  ),
  prove(
    'Spec, What the service does 5: "To replace a stale credential, create a new session and use the new credential id"',
    "a stale credential's run fails, and a new session's credential for the same user works",
    async () => {
      const stale = { ...rightLogin(), password: "wrong-by-now" };
      const failed = await trigger("conformance-ledger", { credential_id: await connectLedger(stale) });
      assert.equal((await waitForRun(failed.string("id"))).last.at("status"), "failed");
      const fresh = await connectLedger({ ...rightLogin(), username: stale.username });
      await complete("conformance-ledger", { credential_id: fresh });
    },
  ),
  prove(
    'Spec, What the service does 6: "the secret is stored during collection and codes are generated at run time"',
    "a credential of a one-time-code strategy was given the secret alone, and its run logs in with the code of the moment",
    async () => {
      const credential = await connect("strat_conformance_code", { username: "ada", secret: CODE_SECRET });
      await complete("conformance-code", { credential_id: credential });
    },
  ),
]);
