// docs/logins/http.md: every key of a step, of `check`, and of `session`.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { blueprint, dataOf, openBench, type Bench } from "./bench.ts";
import { to } from "./target.ts";

let bench: Bench;

const READ = `
- { id: read, type: http, credential: it, request: { url: /api/read }, records: $ }
- { id: out, type: output, refKey: out, from: read }`;

/** A strategy and a Blueprint that reads with it, both named after the case. */
const loginCase = (name: string, login: string): readonly string[] => [
  `strategy: strat_${name}
account: acme
hosts: ["{TARGET}"]
fields:
  - { key: username, type: text }
  - { key: password, type: password }
  - { key: realm, type: text, required: false }
login:
  type: http
${login.replaceAll(/^/gm, "  ")}`,
  blueprint(name, READ, `credentials: { it: { strategy: strat_${name} } }`),
];

const EXTRACTS = `
steps:
  - request: { url: /start }
    extract:
      css_text: { css: "h1.title" }
      css_attr: { css: "input[name=token]", attr: value }
      found: { regex: "build=([a-z0-9]+);" }
      whole: { regex: "build=[a-z0-9]+;", group: 0 }
      second: { regex: "(b)uild=([a-z0-9]+)", group: 2 }
      header: { header: X-Nonce }
      cookie: { cookie: sid }
      absent: { css: "#nowhere", required: false }
  - request: { url: "/start.json" }
    extract:
      number: { json: "session.number" }
      list: { json: "session.roles" }
  - request:
      method: POST
      url: "/login/{{ $number }}"
      query: { roles: "{{ $list }}", absent: "{{ $absent }}", nonce: "n-{{ $header }}" }
      headers: { X-Cookie: "{{ $cookie }}", X-Found: "{{ $found }}/{{ $whole }}/{{ $second }}" }
      json:
        user: { name: "{{ $credential.username }}", realm: "{{ $credential.realm }}" }
        secret: "{{ $credential.password }}"
        title: "{{ $css_text }}"
        token: "{{ $css_attr }}"
        number: "{{ $number }}"
        absent: "{{ $absent }}"
        list: ["{{ $list }}", 1, true, null]`;

const DOCUMENTS = [
  ...loginCase("extracts", EXTRACTS),
  ...loginCase(
    "bodies",
    `
steps:
  - request: { method: POST, url: /form, form: { u: "{{ $credential.username }}", many: [a, "{{ $credential.realm }}", b], n: 1, yes: true } }
  - request: { method: PUT, url: /text, text: "user={{ $credential.username }};" }
  - request: { method: PATCH, url: /own-type, headers: { Content-Type: application/vnd.x+json }, json: { a: "{{ $credential.username }}" } }
  - request: { method: DELETE, url: "{TARGET}/absolute" }
  - request: { method: HEAD, url: /head }`,
  ),
  ...loginCase(
    "follow",
    `
steps:
  - request: { url: /hop }
    follow: true
    extract: { end: { json: at } }
  - request: { url: /hop }
    expect: { status: [302] }
    extract: { where: { header: location } }
  - request: { url: "{{ $where }}", query: { end: "{{ $end }}" } }`,
  ),
  ...loginCase(
    "conditions",
    `
steps:
  - { when: $exists($credential.realm), request: { url: /realm }, extract: { realm: { json: name } } }
  - { when: $not($exists($realm)), request: { url: /no-realm } }
  - { when: $realm = "north", request: { url: /north } }`,
  ),
  ...loginCase(
    "expects",
    `
steps:
  - request: { url: /one }
    expect: { status: [200, 207], text: Welcome, not_text: Wrong }
  - request: { url: /two }
    expect: { json: "ok = true and $credential.username in users" }`,
  ),
  ...loginCase(
    "session",
    `
steps:
  - { request: { method: POST, url: /token, json: { p: "{{ $credential.password }}" } }, extract: { access: { json: access_token } } }
session: { headers: { Authorization: "Bearer {{ $access }}", X-User: "{{ $credential.username }}", X-Realm: "{{ $credential.realm }}" } }
check: { request: { url: /me, query: { u: "{{ $credential.username }}" } }, expect: { status: [200], json: "name = $credential.username" } }`,
  ),
];

before(async () => {
  bench = await openBench(DOCUMENTS);
});
after(() => bench?.[Symbol.asyncDispose]());
beforeEach(() => {
  for (const path of ["/text", "/own-type", "/absolute", "/head", "/form", "/no-realm", "/north", "/realm"]) {
    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"])
      bench.target.on(`${method} ${path}`, {});
  }
  bench.target.on("GET /api/read", ({ headers }) => ({
    json: { cookie: headers.cookie ?? null, user: headers["x-user"] ?? null },
  }));
});

const last = (route: string) => {
  const seen = bench.target.seen(route).at(-1);
  assert.ok(seen, `the target saw no ${route}`);
  return seen;
};

async function runWith(name: string, values: Readonly<Record<string, string>> = {}) {
  const credential = await bench.connect(`strat_${name}`, {
    username: "ana",
    password: "pass word+&%",
    ...values,
  });
  return await bench.run(name, { credential_id: credential });
}

test("extract finds by css, regex, json, header and cookie, and later requests send it with its type", async () => {
  bench.target.on("GET /start", {
    headers: { "x-nonce": "77", "set-cookie": ["sid=s3ss1on; Path=/; HttpOnly", "other=1"] },
    html: `<h1 class="title"> Sign &amp; in </h1><input name=token value="a&quot;b">build=abc123; build=zzz;`,
  });
  bench.target.on("GET /start.json", { json: { session: { number: 42, roles: ["r1", "r2"] } } });
  bench.target.on("POST /login/42", { headers: { "set-cookie": "sid=second; Path=/" } });
  const run = await runWith("extracts");
  assert.equal(run.status.status, "completed", String(run.detail));
  const login = last("POST /login/42");
  assert.deepEqual(JSON.parse(login.body), {
    user: { name: "ana" },
    secret: "pass word+&%",
    title: "Sign & in",
    token: 'a"b',
    number: 42,
    list: [["r1", "r2"], 1, true, null],
  });
  assert.deepEqual(
    [...login.query],
    [
      ["roles", "r1"],
      ["roles", "r2"],
      ["nonce", "n-77"],
    ],
  );
  assert.equal(login.headers["x-cookie"], "s3ss1on");
  assert.equal(login.headers["x-found"], "abc123/build=abc123;/abc123");
  assert.equal(login.headers["content-type"], "application/json");
  // The jar: sent from the second request on, and a later Set-Cookie replaces it.
  assert.match(String(last("GET /start.json").headers.cookie), /sid=s3ss1on/);
  assert.match(dataOf(run)[0].cookie, /sid=second/);
});

test("an extract that finds nothing fails the login and names step and extract", async () => {
  bench.target.on("GET /start", {
    headers: { "x-nonce": "77", "set-cookie": "sid=1" },
    html: `<h1 class="title">x</h1>build=a;`,
  });
  const run = await runWith("extracts");
  assert.match(
    String(run.detail),
    /^strat_extracts: login step 1 \(GET \/start\): extract css_attr found nothing \(css `input\[name=token\]`, attr `value`\)$/,
  );
});

test("bodies: form, text, own content type, every method, absolute URL; a form is encoded as a browser does", async () => {
  const run = await runWith("bodies", { username: "a&b=c d+é", realm: "" });
  assert.equal(run.status.status, "completed", String(run.detail));
  const form = last("POST /form");
  assert.equal(form.headers["content-type"], "application/x-www-form-urlencoded");
  assert.deepEqual(
    [...new URLSearchParams(form.body)],
    [
      ["u", "a&b=c d+é"],
      ["many", "a"],
      ["many", "b"],
      ["n", "1"],
      ["yes", "true"],
    ],
  );
  assert.equal(last("PUT /text").body, "user=a&b=c d+é;");
  assert.equal(last("PATCH /own-type").headers["content-type"], "application/vnd.x+json");
  assert.equal(last("PATCH /own-type").body, '{"a":"a&b=c d+é"}');
  last("DELETE /absolute");
  last("HEAD /head");
});

test("a redirect is followed only where the step says so; an expect of 302 sees the redirect itself", async () => {
  bench.target.on("GET /hop", to("/landed?by=hop"));
  bench.target.on("GET /landed", { json: { at: "the end" } });
  const run = await runWith("follow");
  assert.equal(run.status.status, "completed", String(run.detail));
  assert.deepEqual(
    bench.target.seen("GET /landed").map(({ query }) => Object.fromEntries(query)),
    [{ by: "hop" }, { by: "hop", end: "the end" }],
  );
});

test("a redirect out of the hosts is not followed in a login, and the credential goes nowhere", async () => {
  bench.target.on("GET /hop", to("http://127.0.0.2:9/landed"));
  const run = await runWith("follow");
  assert.equal(run.status.status, "failed");
  assert.match(String(run.detail), /^strat_follow: /);
  bench.target.on("GET /hop", to("/landed?by=hop"));
});

test("when decides about a step by the credential and by what was extracted", async () => {
  bench.target.on("GET /realm", { json: { name: "north" } });
  assert.equal((await runWith("conditions", { realm: "x" })).status.status, "completed");
  assert.deepEqual([bench.target.seen("GET /realm").length, bench.target.seen("GET /north").length], [1, 1]);
  assert.equal(bench.target.seen("GET /no-realm").length, 0);
  assert.equal((await runWith("conditions")).status.status, "completed");
  assert.deepEqual([bench.target.seen("GET /realm").length, bench.target.seen("GET /north").length], [1, 1]);
  assert.equal(bench.target.seen("GET /no-realm").length, 1);
});

test("every expect of a login can fail it, and the story says which, without the answer", async () => {
  const good = { text: "Welcome back" };
  const cases = [
    [
      { status: 500, text: "Welcome" },
      { json: {} },
      /step 1 \(GET \/one\): expected status 200 or 207, got 500$/,
    ],
    [{ text: "Hello" }, { json: {} }, /step 1 .*: expected text `Welcome` is not in the response$/],
    [{ text: "Welcome. Wrong word" }, { json: {} }, /step 1 .*: the response contains `Wrong`$/],
    [good, { text: "no json s3cr3t" }, /step 2 .*: expected a JSON response$/],
    [good, { json: { ok: true, users: ["s3cr3t"] } }, /step 2 .*: expected `ok = true and .*` to be true$/],
    [
      good,
      { status: 302, json: { ok: true, users: ["ana"] } },
      /step 2 .*: expected status 200 to 299, got 302 \(a redirect/,
    ],
  ] as const;
  for (const [one, two, story] of cases) {
    bench.target.on("GET /one", one);
    bench.target.on("GET /two", two);
    const run = await runWith("expects");
    assert.match(String(run.detail), story);
    assert.ok(!run.detail?.includes("s3cr3t"));
    assert.equal(run.kind, "login");
    assert.deepEqual([run.status.status, run.status.started_at], ["failed", null]);
  }
  bench.target.on("GET /one", { status: 207, text: "Welcome" });
  bench.target.on("GET /two", { json: { ok: true, users: ["bob", "ana"] } });
  assert.equal((await runWith("expects")).status.status, "completed");
});

test("session.headers go along with the check and with every request of a node, and are redacted in results", async () => {
  bench.target.on("POST /token", { json: { access_token: "tok-abcdef" } });
  bench.target.on("GET /me", ({ query }) => ({ json: { name: query.get("u") } }));
  const run = await runWith("session");
  assert.equal(run.status.status, "completed", String(run.detail));
  for (const route of ["GET /me", "GET /api/read"]) {
    assert.equal(last(route).headers.authorization, "Bearer tok-abcdef");
    assert.equal(last(route).headers["x-user"], "ana");
    assert.equal(last(route).headers["x-realm"], undefined);
  }
});

test("a check that fails right after the steps fails the login", async () => {
  bench.target.on("GET /me", { json: { name: "somebody else" } });
  const run = await runWith("session");
  assert.match(
    String(run.detail),
    /^strat_session: login check \(GET \/me\): expected `name = \$credential.username` to be true$/,
  );
  assert.deepEqual(run.steps.at(-1), "failed/failed");
});
