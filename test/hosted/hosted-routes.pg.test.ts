/** The pages under /connect as a browser, a link preview or an attacker meets them, over real HTTP. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { load } from "cheerio";
import { REAL_TIME } from "../clock.ts";
import { openCaller } from "../caller.ts";
import { csrfOf, openForm, send, submit, type WireAnswer } from "./form-visitor.ts";
import {
  acmeDocument,
  GOOD,
  RETURN_ORIGIN,
  setUpHosted,
  type Hosted,
  type SessionBody,
} from "./hosted-setup.ts";

const HOSTILE = `"><script>alert(1)</script>`;
const rivalDocuments = [
  JSON.stringify({ account: "rival", name: `Rival ${HOSTILE}`, allowed_origins: [] }),
  JSON.stringify({
    strategy: "strat_portal",
    account: "rival",
    name: `Target ${HOSTILE}`,
    description: `About ${HOSTILE}`,
    hosts: ["https://rival.example"],
    fields: [
      {
        key: "login",
        label: `Login ${HOSTILE}`,
        type: "text",
        placeholder: `Type ${HOSTILE}`,
        help: `Help ${HOSTILE}`,
      },
      { key: "code", label: `Code ${HOSTILE}`, type: "password" },
    ],
    login: { type: "none" },
  }),
];

let hosted: Hosted;
before(async () => {
  hosted = await setUpHosted(...rivalDocuments);
});
after(async () => await hosted[Symbol.asyncDispose]());

const TYPES: Readonly<Record<string, string>> = {
  css: "text/css",
  js: "text/javascript",
  svg: "image/svg+xml",
};

/** What every answer under /connect is: a page of ours which tells nothing of any session. */
function assertPage(answer: WireAnswer, status: number, title: RegExp): void {
  assert.equal(answer.status, status, answer.text);
  assert.equal(answer.headers["content-type"], "text/html; charset=utf-8");
  assert.equal(answer.headers["cache-control"], "no-store");
  assert.match(String(answer.headers["content-security-policy"]), /frame-ancestors 'none'/);
  assert.match(load(answer.text)("title").text(), title);
  assertNoIds(answer.text);
}

function assertNoIds(text: string): void {
  assert.doesNotMatch(text, /\b(?:sess|cred|acct|acc|strat|run|bp)_[0-9A-Za-z]/, "an id stands in the page");
}

/** Nothing was kept: the session waits for its form as before. */
async function assertPending(session: SessionBody): Promise<void> {
  assert.equal((await hosted.read(session.id)).status, "pending");
  assert.equal(await hosted.credentialsOf(session.id), 0);
}

const FORBIDDEN = /fill in the form again/;
const UNKNOWN = /does not work/;
const USED = /already been used/;
const EXPIRED = /has expired/;
const SUCCESS = /login is saved/;

const policy = (script: string): string =>
  `default-src 'none'; style-src 'self'; script-src ${script}; img-src 'self'; base-uri 'none'; frame-ancestors 'none'; ` +
  "require-trusted-types-for 'script'";
// A form asks whether the service can be reached.
const FORM_POLICY = `${policy("'self'")}; connect-src 'self'`;

test("the form's headers are exactly these, and its policy has no form-action", async () => {
  const { hosted_url } = await hosted.session();
  const { headers } = await send(hosted_url);
  const {
    date: _date,
    "x-request-id": requestId,
    "content-length": length,
    connection: _connection,
    ...rest
  } = headers;
  assert.match(String(requestId), /^req_/);
  assert.ok(Number(length) > 500);
  const { "permissions-policy": features, ...fixed } = rest;
  assert.match(String(features), /\bcamera=\(\).*\bpayment=\(\)/);
  assert.deepEqual(fixed, {
    "content-security-policy": FORM_POLICY,
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "strict-transport-security": "max-age=63072000",
    "x-robots-tag": "noindex",
    "content-type": "text/html; charset=utf-8",
  });
});

test("a redirect and a page without a form have the same headers, with form-action 'none'", async () => {
  const session = await hosted.session({ return_url: `${RETURN_ORIGIN}/back` });
  const redirect = await submit(session.hosted_url, GOOD);
  assert.equal(redirect.status, 303);
  for (const { headers } of [redirect, await send(session.hosted_url)]) {
    assert.equal(headers["content-security-policy"], `${policy("'none'")}; form-action 'none'`);
    assert.equal(headers["cache-control"], "no-store");
    assert.equal(headers["referrer-policy"], "same-origin");
    assert.equal(headers["x-content-type-options"], "nosniff");
    assert.equal(headers["set-cookie"], undefined);
  }
});

test("the form with errors has no form-action either: its submit leaves the service too", async () => {
  const { hosted_url } = await hosted.session();
  const answer = await submit(hosted_url, {});
  assertPage(answer, 422, /^Error: Connect/);
  assert.equal(answer.headers["content-security-policy"], FORM_POLICY);
});

test("GET, HEAD and bots change nothing: the session stays pending and its link works", async () => {
  const session = await hosted.session();
  const bots = [
    "Slackbot-LinkExpanding 1.0",
    "facebookexternalhit/1.1",
    "Mozilla/5.0 (compatible; Googlebot/2.1)",
  ];
  for (const agent of bots) {
    for (const method of ["GET", "HEAD"]) {
      const answer = await send(session.hosted_url, {
        method,
        headers: { "user-agent": agent, "sec-purpose": "prefetch" },
      });
      assert.equal(answer.status, 200);
      assert.equal(answer.headers["content-type"], "text/html; charset=utf-8");
      assert.equal(answer.text === "", method === "HEAD");
    }
  }
  const after = await hosted.read(session.id);
  assert.equal(after.status, "pending");
  assert.equal(after.hosted_url, session.hosted_url);
  assert.equal((await submit(session.hosted_url, GOOD)).status, 200);
});

test("two renderings have different CSRF values, and both are good", async () => {
  const { hosted_url, id } = await hosted.session();
  const [first, second] = [await openForm(hosted_url), await openForm(hosted_url)];
  assert.notEqual(first.csrf, second.csrf);
  assertPage(await submit(hosted_url, { ...GOOD, email: "x" }, { csrf: second.csrf }), 422, /Error/);
  assertPage(await submit(hosted_url, GOOD, { csrf: first.csrf }), 200, SUCCESS);
  assert.equal(await hosted.credentialsOf(id), 1);
});

test("a CSRF value that is missing, empty, changed, of another session or twelve hours old is refused", async () => {
  const session = await hosted.session();
  const { csrf } = await openForm(session.hosted_url);
  const other = await openForm((await hosted.session()).hosted_url);
  const changed = csrf.replace(/.$/, (last) => (last === "A" ? "B" : "A"));
  const [nonce = "", issued = "", mac = ""] = csrf.split(".");
  const younger = `${nonce}.${Number(issued) + 1}.${mac}`;
  for (const wrong of [null, "", changed, younger, other.csrf, `${csrf}=`]) {
    assertPage(await submit(session.hosted_url, GOOD, { csrf: wrong }), 403, FORBIDDEN);
  }
  try {
    await hosted.setClock(`${REAL_TIME} + interval '12 hours 1 minute'`);
    // The form again, with what was typed and no secret; nothing is kept.
    const stale = await submit(session.hosted_url, GOOD, { csrf });
    assertPage(stale, 403, /^Error: Connect/);
    assert.equal(load(stale.text)("input[name=email]").attr("value"), GOOD.email);
    assert.ok(!stale.text.includes(GOOD.password));
    assert.match(load(stale.text)("[role=alert]").text(), /open for a long time/);
    await hosted.setClock(`${REAL_TIME} + interval '11 hours 50 minutes'`);
    await assertPending(session);
    assertPage(await submit(session.hosted_url, GOOD, { csrf }), 200, SUCCESS);
  } finally {
    await hosted.setClock();
  }
});

test("a good CSRF value in the query does not count, only in the body", async () => {
  const session = await hosted.session();
  const { csrf } = await openForm(session.hosted_url);
  const withQuery = `${session.hosted_url}?_csrf=${encodeURIComponent(csrf)}&email=a@b.example&password=long-enough-1`;
  assertPage(await submit(withQuery, GOOD, { csrf: null }), 403, FORBIDDEN);
  await assertPending(session);
});

test("Sec-Fetch-Site: only same-origin or its absence is let in", async () => {
  const refused = await hosted.session();
  for (const site of ["cross-site", "same-site", "none", "", "Same-Origin"]) {
    const answer = await submit(refused.hosted_url, GOOD, { headers: { "sec-fetch-site": site } });
    assertPage(answer, 403, FORBIDDEN);
  }
  await assertPending(refused);
  const headers = { "sec-fetch-site": "same-origin", origin: hosted.service.url };
  assertPage(await submit(refused.hosted_url, GOOD, { headers }), 200, SUCCESS);
});

test("Origin: a foreign one is refused, ours and null are let in with a good CSRF value only", async () => {
  const session = await hosted.session();
  const { port } = new URL(hosted.service.url);
  const foreign = [
    "https://evil.example",
    "http://127.0.0.1",
    `https://127.0.0.1:${port}`,
    `http://localhost:${port}`,
    `${hosted.service.url}.evil.example`,
    "NULL",
  ];
  for (const origin of foreign) {
    assertPage(await submit(session.hosted_url, GOOD, { headers: { origin } }), 403, FORBIDDEN);
  }
  for (const origin of ["null", hosted.service.url]) {
    assertPage(await submit(session.hosted_url, GOOD, { headers: { origin }, csrf: "x" }), 403, FORBIDDEN);
  }
  await assertPending(session);
  assertPage(await submit(session.hosted_url, GOOD, { headers: { origin: "null" } }), 200, SUCCESS);
});

test("what is no form of ours is refused: another content type, or none", async () => {
  const session = await hosted.session();
  const { csrf } = await openForm(session.hosted_url);
  const body = JSON.stringify({ _csrf: csrf, ...GOOD });
  for (const type of ["application/json", "text/plain", "multipart/form-data; boundary=x", "nonsense", ""]) {
    const headers: Record<string, string> = type === "" ? {} : { "content-type": type };
    assertPage(await send(session.hosted_url, { method: "POST", headers, body }), 415, FORBIDDEN);
  }
  await assertPending(session);
});

test("every address and method under /connect answers with a page, also those that the framework refuses", async () => {
  const { hosted_url } = await hosted.session();
  const broken = [
    "/connect",
    "/connect/",
    "/connect/x",
    "/connect/a/b",
    "/connect/%ZZ",
    "/connect/%00",
    "/connect/..%2Fx",
  ];
  for (const path of [...broken, `/connect/${"x".repeat(600)}`, "/connect/%ZZ?x=1", "/connect/style.css/x"]) {
    for (const method of ["GET", "POST"]) assertPage(await send(hosted_url, { path, method }), 404, UNKNOWN);
  }
  for (const method of ["PUT", "PATCH", "DELETE", "OPTIONS"]) {
    assertPage(await send(hosted_url, { method }), 404, UNKNOWN);
  }
  // And nothing else does: the API keeps its envelope.
  for (const path of ["/connected", "/api/v1/%ZZ", "/x"]) {
    const answer = await send(hosted_url, { path });
    assert.equal(answer.status === 404 || answer.status === 401, true);
    assert.match(String(answer.headers["content-type"]), /^application\/json/);
  }
});

test("a link that was changed by one character is unknown, for GET and for a submit with its form's CSRF", async () => {
  const session = await hosted.session();
  const { csrf } = await openForm(session.hosted_url);
  const other = session.hosted_url.replace(/.$/, (last) => (last === "A" ? "E" : "A"));
  assertPage(await send(other), 404, UNKNOWN);
  assertPage(await submit(other, GOOD, { csrf }), 404, UNKNOWN);
  assertPage(await send(hosted.service.url, { path: `/connect/${session.id}` }), 404, UNKNOWN);
  await assertPending(session);
});

test("what a page names is served as what it is, kept by browsers forever, and named anew when it changes", async () => {
  const { hosted_url } = await hosted.session();
  const { page } = await openForm(hosted_url);
  const names = load(page)("link[rel=stylesheet], link[rel=icon], script[src]")
    .map((_, element) => element.attribs["href"] ?? element.attribs["src"])
    .get();
  assert.equal(names.length, 3);
  const folder = String(names[0]).replace(/[^/]+$/, "");
  for (const path of [...names, `${folder}accent-3355ff.css`, `${folder}qr-decode.js`, `${folder}index.js`]) {
    const plain = await send(hosted_url, { path });
    assert.equal(plain.status, 200, path);
    assert.equal(plain.headers["content-type"], `${TYPES[path.replace(/^.*\./, "")]}; charset=utf-8`);
    assert.equal(plain.headers["x-content-type-options"], "nosniff");
    assert.equal(plain.headers["cache-control"], "public, max-age=31536000, immutable");
    assert.equal(plain.headers["content-encoding"], undefined);
    if (path.endsWith(".css")) assert.doesNotMatch(plain.text, /url\(|@import/i);
    const head = await send(hosted_url, { path, method: "HEAD" });
    assert.deepEqual([head.status, head.text], [200, ""]);
  }
  const packed = await send(hosted_url, {
    path: String(names[0]),
    headers: { "accept-encoding": "gzip, br" },
  });
  assert.equal(packed.headers["content-encoding"], "br");
  assert.equal(packed.headers["vary"], "Accept-Encoding");
  // A page of another version of the service gets what there is, and does not keep it.
  const other = await send(hosted_url, { path: "/connect/assets/another-version-/style.css" });
  assert.deepEqual([other.status, other.headers["cache-control"]], [200, "no-store"]);
  for (const name of ["accent-3355f.css", "accent-3355FF.css", "form.ts", "..%2Fheaders.ts", "constructor"])
    assertPage(await send(hosted_url, { path: `${folder}${name}` }), 404, UNKNOWN);
});

test("the link of one account shows nothing of another, and what accounts write is text, never markup", async () => {
  const rival = openCaller(hosted.service.url, await hosted.installation.createKey("rival"));
  const { body } = await rival.post("/credential-sessions", {
    strategy_id: "strat_portal",
    name: `Name ${HOSTILE}`,
  });
  const ours = await hosted.session({ name: "Ada's login" });
  const theirs = await openForm(body.hosted_url);
  const { page } = await openForm(ours.hosted_url);
  assert.match(page, /Acme Inc\./);
  assert.doesNotMatch(page, /Rival|Target|rival\.example|Ada's/);
  assert.doesNotMatch(theirs.page, /Acme|Northwind|northwind|Name /);
  assert.match(theirs.page, /rival\.example/);
  assertNoIds(page);
  assertNoIds(theirs.page);

  const again = await submit(body.hosted_url, { login: HOSTILE, code: "" }, { csrf: theirs.csrf });
  assertPage(again, 422, /^Error: Connect Target "><script>/);
  const done = await submit(body.hosted_url, { login: HOSTILE, code: "x" }, { csrf: csrfOf(again.text) });
  assertPage(done, 200, SUCCESS);
  for (const html of [theirs.page, again.text, done.text]) {
    assert.equal(load(html)("script:not([src])").length, 0);
    assert.doesNotMatch(html, /<script>/i);
  }
  assert.equal(load(again.text)("input[name=login]").attr("value"), HOSTILE);
});

test("errors stand in the page with what was typed, but never a secret", async () => {
  const { hosted_url } = await hosted.session();
  const secrets = { password: "canary-zq7", totp: "not-base32-0189" };
  const answer = await submit(hosted_url, { email: "ada at acme", ...secrets });
  assertPage(answer, 422, /^Error/);
  const page = load(answer.text);
  assert.equal(page("input[name=email]").attr("value"), "ada at acme");
  for (const [name, secret] of Object.entries(secrets)) {
    assert.equal(page(`input[name=${name}]`).attr("value"), undefined);
    assert.equal(page(`input[name=${name}]`).attr("aria-invalid"), "true");
    assert.ok(!answer.text.includes(secret), `${name} is on the page`);
    assert.ok(!hosted.installation.logs().includes(secret), `${name} is in the log`);
  }
});

test("a used and an expired link say so, for GET, HEAD and submit", async () => {
  const used = await hosted.session();
  const expiring = await hosted.session();
  const { csrf } = await openForm(expiring.hosted_url);
  assertPage(await submit(used.hosted_url, GOOD), 200, SUCCESS);
  assertPage(await send(used.hosted_url), 410, USED);
  assert.equal((await send(used.hosted_url, { method: "HEAD" })).status, 410);
  try {
    await hosted.setClock(`timestamptz '${expiring.expires_at}'`);
    assertPage(await send(expiring.hosted_url), 410, EXPIRED);
    // Used stays used.
    assertPage(await send(used.hosted_url), 410, USED);
    // A form of ours from seven days ago, which gives back what was typed, but no secret; a forged one learns nothing.
    const late = await submit(expiring.hosted_url, GOOD, { csrf });
    assertPage(late, 410, EXPIRED);
    assert.match(load(late.text)("main").text(), /ada@acme\.example/);
    assert.ok(!late.text.includes(GOOD.password));
    assertPage(await submit(expiring.hosted_url, GOOD, { csrf: "x" }), 403, FORBIDDEN);
  } finally {
    await hosted.setClock();
  }
});

test("an origin that leaves the allow-list before the submit is not redirected to", async () => {
  const { installation } = hosted;
  const session = await hosted.session({ return_url: `${RETURN_ORIGIN}/back` });
  const { csrf, page } = await openForm(session.hosted_url);
  assert.match(page, /app\.acme\.example/);
  try {
    await installation.apply(acmeDocument(["https://elsewhere.example"]));
    assert.doesNotMatch((await openForm(session.hosted_url)).page, /app\.acme\.example/);
    const answer = await submit(session.hosted_url, GOOD, { csrf });
    assertPage(answer, 200, SUCCESS);
    assert.equal(answer.headers.location, undefined);
    assert.equal((await hosted.read(session.id)).status, "completed");
  } finally {
    await installation.apply(acmeDocument());
  }
});
