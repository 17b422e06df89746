// What an operator learns of a request that failed, without asking the target again; and what callers, viewers and the run's row don't.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually } from "../eventually.ts";
import { blueprint, openBench, type Bench } from "./bench.ts";
import { to } from "./target.ts";

let bench: Bench;

before(async () => {
  bench = await openBench([
    `strategy: strat_form
account: acme
hosts: ["{TARGET}"]
fields: [{ key: user, type: text }, { key: pass, type: password }]
login:
  type: http
  steps:
    - request: { url: /login }
    - submit: { form: "form#in", fields: { u: "{{ $credential.user }}", p: "{{ $credential.pass }}" } }
      expect: { status: [302] }`,
    `strategy: strat_basic
account: acme
hosts: ["{TARGET}"]
fields: [{ key: user, type: text }, { key: pass, type: password }]
login: { type: basic, username: user, password: pass, check: { request: { url: /me } } }`,
    blueprint(
      "form",
      `- { id: read, type: http, credential: it, request: { url: /items }, records: $ }\n- { id: out, type: output, refKey: out, from: read }`,
      "credentials: { it: { strategy: strat_form } }",
    ),
  ]);
  bench.target.on("GET /login", {
    html: `<form id=in method=post action=/session><input name=u><input name=p type=password></form>`,
  });
  bench.target.on("POST /session", ({ body }) => ({
    html: `<input type=hidden name=csrf value="hidden-token-1234567890">Wrong password for ana, you typed ${new URLSearchParams(body).get("p")}.`,
  }));
});
after(async () => await bench?.[Symbol.asyncDispose]());

/** What the operator sees of a failed run, on the command line. */
const shown = async (id: string): Promise<string> =>
  (await bench.installation.command("runs", "show", id)).stdout;

test("a failed request shows the operator what was answered: status, address, title, how it begins; callers see one sentence", async () => {
  bench.target.on("POST /orders", { status: 422, json: { error: "amount must be positive" } });
  bench.target.on("GET /moved", to("/sign-in?next=secret"));
  bench.target.on("GET /sign-in", {
    status: 403,
    html: "<title>Sign in &amp; go</title><script>var a = 1</script><p>Your <b>plan</b> has ended.</p>",
  });
  const node = (key: string, request: string): string =>
    blueprint(
      key,
      `- { id: ask, type: http, ${request} }\n- { id: out, type: output, refKey: out, from: ask }`,
      "hosts: ['{TARGET}']",
    );
  await bench.apply(
    node("unprocessable", `request: { method: POST, url: "{TARGET}/orders", json: {} }, records: $`),
    node("forbidden", `request: { url: "{TARGET}/moved" }, records: $`),
  );
  const write = await bench.run("unprocessable");
  assert.match(
    await shown(write.id),
    /^ask received 422 from http:\/\/127\.0\.0\.1:\d+\/orders \(application\/json\)\n {2}\{"error":"amount must be positive"\}$/m,
  );
  const page = await bench.run("forbidden");
  assert.match(
    await shown(page.id),
    /^ask received 403 from \S+\/sign-in\?next=… \(text\/html; charset=utf-8, title "Sign in & go"\)\n {2}Your plan has ended\.$/m,
  );
  // Spec, Errors: callers get one sentence of a failure.
  for (const run of [write, page])
    assert.doesNotMatch(JSON.stringify(run.status.error), /positive|plan|sign-in|40[0-9]|422/);
  // Neither of the two is in the run's row, which stays when the run's data goes.
  assert.doesNotMatch(`${write.detail}${page.detail}`, /positive|plan/);
});

test("a failed login shows its step with what came instead, and nothing of the credential", async () => {
  const id = await bench.connect("strat_form", { user: "ana", pass: "canary-pass-4711" });
  const run = await bench.run("form", { credential_id: id });
  const text = await shown(run.id);
  assert.match(text, /^login step 2 \(submit form#in\) received 200 from \S+\/session \(text\/html/m);
  assert.match(text, /^ {2}Wrong password for ana, you typed \[REDACTED\]\.$/m);
  assert.doesNotMatch(text, /canary-pass|hidden-token/);
});

test("a write that may have happened shows the answer that leaves it open", async () => {
  bench.target.on("POST /open", { html: "<title>Ticket 7</title>Thank you" });
  await bench.apply(
    blueprint(
      "open",
      `- { id: file, type: http, request: { method: POST, url: "{TARGET}/open", json: {} }, expect: { text: Filed }, records: $ }
- { id: out, type: output, refKey: out, from: file }`,
      "hosts: ['{TARGET}']",
    ),
  );
  const { body } = await bench.trigger("open");
  const text = await eventually("it waits", async () => {
    const now = await shown(body.id);
    return now.includes(" received ") ? now : undefined;
  });
  assert.match(text, /^file received 200 from \S+\/open \(text\/html.*title "Ticket 7"\)\n {2}Thank you$/m);
});

test("a form that a script makes is said to be one", async () => {
  bench.target.on("GET /login", { html: "<div id=app></div><script src=/app.js></script>" });
  const id = await bench.connect("strat_form", { user: "ana", pass: "right" });
  assert.match(
    String((await bench.run("form", { credential_id: id })).detail),
    /has no form `form#in`; it has no form at all, only scripts: JavaScript creates it\. Find its requests in a browser's network tab/,
  );
});

test("a credential of another strategy is named with the one that the slot takes", async () => {
  const id = await bench.connect("strat_basic", { user: "ana", pass: "right" });
  const refused = await bench.trigger("form", { credential_id: id });
  assert.equal(refused.status, 422);
  assert.match(
    refused.text,
    new RegExp(
      `needs a credential of strategy strat_form for its slot .*it.*; ${id} is of strategy strat_basic`,
    ),
  );
});
