import assert from "node:assert/strict";
import { createSession, rightLogin, submitHostedForm } from "../flows.ts";
import { first, prove, section } from "../suite.ts";

section("Events", [
  prove(
    [
      'Spec, Events: "The end user\'s browser is redirected to return_url with query parameter session_id=<session_id> after a successful submission of the hosted form"',
      'Spec, Events: "This is a redirect, not a server-side event"',
    ],
    "the redirect goes with the form's answer to the browser, once, with the query and the fragment kept",
    async () => {
      const cases = [
        [
          "https://app.conformance.example/a",
          (id: string) => `https://app.conformance.example/a?session_id=${id}`,
        ],
        [
          "http://127.0.0.1:4799/a?b=c%20d&e",
          (id: string) => `http://127.0.0.1:4799/a?b=c%20d&e&session_id=${id}`,
        ],
        [
          "https://app.conformance.example/a?session_id=old#top",
          (id: string) => `https://app.conformance.example/a?session_id=${id}#top`,
        ],
      ] as const;
      for (const [returnUrl, expected] of cases) {
        const session = await createSession(first(), { return_url: returnUrl });
        const refused = await submitHostedForm(session.string("hosted_url"), {});
        assert.equal(refused.location, null, "a form that did not succeed leads nowhere");
        const { status, location } = await submitHostedForm(session.string("hosted_url"), rightLogin());
        assert.deepEqual([status, location], [303, expected(session.string("id"))]);
      }
    },
  ),
]);
