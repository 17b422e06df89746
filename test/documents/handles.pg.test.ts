// What the target gave itself, nodes see as a handle: put whole into a request to the same place, it becomes the value again. What is kept
// has neither.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { blueprint, dataOf, openBench, type Bench, type EndedRun } from "./bench.ts";
import { openTarget, type Target } from "./target.ts";

let bench: Bench;
let other: Target;

const CSRF = "csrf+cookie/of==the-login";
const SESSION = "0123456789abcdefSESSION";
const TENANT = "tenant-4711-north";

const NODES: Readonly<Record<string, string>> = {
  // A page sets a cookie and holds the same token in a hidden field.
  hidden: `
- { id: page, type: http, credential: it, request: { url: /form }, parse: { format: html, rows: form, columns: { token: "input@value" } } }
- { id: sent, type: http, credential: it, for_each: page, request: { method: POST, url: /form, form: { token: "{{ token }}", name: new } }, records: items }
- { id: out, type: output, refKey: out, from: sent }`,
  // A cookie of the login, which one node reads and the next sends as a header.
  header: `
- { id: me, type: http, credential: it, request: { url: /me }, records: "$" }
- { id: sent, type: http, credential: it, for_each: me, request: { method: POST, url: /write, headers: { X-CSRF: "{{ csrf }}" }, json: { csrf: "{{ csrf }}", list: ["{{ csrf }}"], tenant: "{{ number }}" } }, records: items }
- { id: out, type: output, refKey: out, from: sent }`,
  // Session ids in links.
  links: `
- { id: list, type: http, credential: it, request: { url: /list }, records: items }
- { id: detail, type: http, credential: it, for_each: list, request: { url: "{{ next_url }}" }, records: items }
- { id: out, type: output, refKey: out, from: detail }`,
  pages: `
- { id: list, type: http, credential: it, request: { url: /pages }, records: items, paginate: { link_header: true } }
- { id: out, type: output, refKey: out, from: list }`,
  // The tenant's id stands in every record, and in the address of the next request.
  tenant: `
- { id: list, type: http, credential: it, request: { url: /tenants }, records: items }
- { id: detail, type: http, credential: it, for_each: list, request: { url: "/tenants/{{ tenant }}/items/{{ n }}", query: { of: "{{ tenant }}" } }, records: items }
- { id: out, type: output, refKey: out, from: detail }`,
  // A form with a file.
  parts: `
- { id: me, type: http, credential: it, request: { url: /me } }
- { id: file, type: http, credential: it, request: { url: /me }, save: file }
- { id: read, type: parse, from: me, format: json }
- { id: sent, type: http, credential: it, request: { method: POST, url: /upload, multipart: { token: "{{ $nodes.read[0].csrf }}", near: "x{{ $nodes.read[0].csrf }}", file: { file: file } } }, records: items }
- { id: out, type: output, refKey: out, from: sent }`,
  // Elsewhere: in a longer text, under another name, at another origin, without the credential.
  elsewhere: `
- { id: me, type: http, credential: it, request: { url: /me }, records: "$" }
- { id: near, type: http, credential: it, for_each: me, request: { method: POST, url: "/near/x{{ csrf }}", query: { a: "Token {{ csrf }}" }, headers: { X-A: "Bearer {{ csrf }}" }, json: { a: "<{{ csrf }}>" } }, records: items }
- { id: away, type: http, for_each: me, request: { method: POST, url: "{OTHER}/away", query: { a: "{{ csrf }}" }, headers: { X-A: "{{ csrf }}" }, json: { a: "{{ csrf }}" } }, records: items }
- { id: second, type: http, credential: second, for_each: me, request: { method: POST, url: "/second", headers: { X-A: "{{ csrf }}" }, json: { a: "{{ csrf }}" } }, records: items }
- { id: across, type: http, credential: wide, for_each: me, request: { method: POST, url: "{OTHER}/across", headers: { X-A: "{{ csrf }}" } }, records: items }
- { id: own, type: http, credential: wide, request: { url: "{TARGET}/me" }, records: "$" }
- { id: cross, type: http, credential: wide, for_each: own, request: { method: POST, url: "{OTHER}/cross", headers: { X-A: "{{ csrf }}" } }, records: items }
- { id: out, type: output, refKey: out, from: me }`,
  // What a node reads itself is data.
  exchange: `
- { id: token, type: http, credential: it, request: { method: POST, url: /token }, effect: read, records: "$" }
- { id: read, type: http, credential: it, for_each: token, request: { url: /with, headers: { X-Access: "Bearer {{ access_token }}" } }, records: items }
- { id: out, type: output, refKey: out, from: read }`,
};

const login = (id: string, hosts: string): string => `
strategy: ${id}
account: acme
hosts: [${hosts}]
fields:
  - { key: username, type: text }
  - { key: password, type: password }
  - { key: method, type: select, required: false, options: [{ value: sms, label: Text }, { value: app, label: App }] }
login:
  type: http
  steps:
    - request: { method: POST, url: /login, form: { u: "{{ $credential.username }}", p: "{{ $credential.password }}" } }
      extract: { tenant: { json: tenant }, number: { json: number }, open: { json: open, secret: false } }
    - when: $credential.method = 'sms'
      request: { method: POST, url: /sms }`;

before(async () => {
  other = await openTarget();
  const written = (text: string): string => text.replaceAll("{OTHER}", other.url);
  bench = await openBench(
    [
      login("strat_web", '"{TARGET}"'),
      login("strat_second", '"{TARGET}"'),
      login("strat_wide", '"{TARGET}", "{OTHER}"'),
      ...Object.entries(NODES).map(([key, nodes]) =>
        blueprint(
          key,
          nodes,
          key === "elsewhere"
            ? 'hosts: ["{OTHER}"]\ncredentials: { it: { strategy: strat_web }, second: { strategy: strat_second }, wide: { strategy: strat_wide } }'
            : "credentials: { it: { strategy: strat_web } }",
        ),
      ),
    ].map(written),
  );
  const { target } = bench;
  target.on("POST /login", {
    headers: { "set-cookie": [`csrftoken=${CSRF}; Path=/`, `JSESSIONID=${SESSION}; Path=/`] },
    json: { tenant: TENANT, number: 471_100, open: "open-to-all" },
  });
  target.on("POST /sms", {});
  target.on("GET /me", { json: { csrf: CSRF, number: 471_100, owner: "amelia-the-user" } });
  for (const path of ["write", "upload", "second", "near/x%5BREDACTED%5D"])
    target.on(`POST /${path}`, { json: { items: [{ ok: true }] } });
  for (const path of ["away", "across", "cross"])
    other.on(`POST /${path}`, { json: { items: [{ ok: true }] } });
});
after(async () => {
  await bench?.[Symbol.asyncDispose]();
  await other?.[Symbol.asyncDispose]();
});

async function runOf(key: string, more: Record<string, string> = {}): Promise<EndedRun> {
  const values = { username: "amelia-the-user", password: "correct-horse", ...more };
  const [it, second, wide] = await Promise.all(
    ["strat_web", "strat_second", "strat_wide"].map(async (id) => await bench.connect(id, values)),
  );
  const run = await bench.run(
    key,
    key === "elsewhere" ? { credential_ids: [it, second, wide] } : { credential_id: it },
  );
  assert.equal(run.status.status, "completed", run.detail ?? "");
  assert.doesNotMatch(JSON.stringify(run.results), /lkhandle/);
  return run;
}

const lastOf = (target: Target, route: string) => target.seen(route).at(-1) ?? assert.fail(route);

test("a hidden field and the cookie that the same page sets come back together", async () => {
  bench.target.on("GET /form", (_seen, before) => ({
    headers: { "set-cookie": `form=token&"of"-form-${before}<; Path=/` },
    html: `<form><input type="hidden" name="token" value="token&amp;&quot;of&quot;-form-${before}&lt;"></form>`,
  }));
  bench.target.on("POST /form", ({ body }) => ({
    json: { items: [{ got: new URLSearchParams(body).get("token") }] },
  }));
  const run = await runOf("hidden");
  const { headers, body } = lastOf(bench.target, "POST /form");
  const token = new URLSearchParams(body).get("token") ?? "";
  assert.match(token, /^token&"of"-form-\d<$/);
  assert.ok(headers.cookie?.includes(`form=${token}`), headers.cookie);
  assert.deepEqual(dataOf(run), [{ got: "[REDACTED]" }]);
});

test("a cookie of the login that one node reads is sent by the next one as a header and in JSON", async () => {
  await runOf("header");
  const { headers, body } = lastOf(bench.target, "POST /write");
  assert.equal(headers["x-csrf"], CSRF);
  assert.deepEqual(JSON.parse(body), { csrf: CSRF, list: [CSRF], tenant: 471_100 });
});

test("a write that may have happened is shown with what was sent, and without what the target gave", async () => {
  bench.target.on("POST /write", { status: 500 });
  const values = { username: "amelia-the-user", password: "correct-horse" };
  const { body } = await bench.trigger("header", { credential_id: await bench.connect("strat_web", values) });
  let sent: string | null | undefined;
  for (let tries = 0; sent === undefined && tries < 1_000; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    const rows = await bench.installation.database.db.query<{ sent: string | null }>(
      "select sent from run_write where run_id = $1 and status = 'in_doubt'",
      [body.id],
    );
    sent = rows[0]?.sent;
  }
  assert.equal(sent, 'POST /write\n{"csrf":"[REDACTED]","list":["[REDACTED]"],"tenant":"[REDACTED]"}');
  bench.target.on("POST /write", { json: { items: [{ ok: true }] } });
});

test("session ids in links lead there, from one node to the next", async () => {
  const paths = [
    `/item/1;jsessionid=${SESSION}?a=1`,
    `/item/2?sid=${SESSION}&csrf=${encodeURIComponent(CSRF)}`,
    `/s/${SESSION}/item/3`,
    `${bench.target.url}/item/4?sid=${SESSION}`,
  ];
  bench.target.on("GET /list", { json: { items: paths.map((next_url) => ({ next_url })) } });
  const routes = paths.map((path) => new URL(path, bench.target.url));
  for (const { pathname } of routes)
    bench.target.on(`GET ${pathname}`, ({ query }) => ({
      json: { items: [{ at: pathname, sid: query.get("sid"), csrf: query.get("csrf") === CSRF }] },
    }));
  const run = await runOf("links");
  const shown = (text: string): string => text.replace(SESSION, "[REDACTED]");
  assert.deepEqual(
    dataOf(run),
    routes.map(({ pathname, searchParams }) => ({
      at: shown(pathname),
      sid: searchParams.has("sid") ? "[REDACTED]" : null,
      csrf: searchParams.has("csrf"),
    })),
  );
});

test("the next page is found by a link with a session id", async () => {
  bench.target.on("GET /pages", ({ query }) => ({
    headers: query.has("sid") ? {} : { link: `</pages?sid=${SESSION}&page=2>; rel="next"` },
    json: { items: [{ page: query.get("page") ?? "1", known: query.get("sid") === SESSION }] },
  }));
  assert.deepEqual(dataOf(await runOf("pages")), [
    { page: "1", known: false },
    { page: "2", known: true },
  ]);
});

test("a tenant's id in every record: the next request names it; the results don't", async () => {
  bench.target.on("GET /tenants", {
    json: {
      items: [1, 2, 3].map((n) => ({ n, tenant: TENANT, open: "open-to-all", owner: "amelia-the-user" })),
    },
  });
  for (const n of [1, 2, 3])
    bench.target.on(`GET /tenants/${TENANT}/items/${n}`, ({ query }) => ({
      json: {
        items: [
          {
            n,
            known: query.get("of") === TENANT,
            tenant: TENANT,
            open: "open-to-all",
            owner: "amelia-the-user",
          },
        ],
      },
    }));
  assert.deepEqual(
    dataOf(await runOf("tenant")),
    [1, 2, 3].map((n) => ({
      n,
      known: true,
      tenant: "[REDACTED]",
      open: "open-to-all",
      owner: "amelia-the-user",
    })),
  );
});

test("a field of a form with a file is filled in; in the file nothing is, and its size stays", async () => {
  await runOf("parts");
  const { body, headers, bytes } = lastOf(bench.target, "POST /upload");
  assert.equal(Number(headers["content-length"]), bytes.length);
  assert.ok(body.includes(`\r\n\r\n${CSRF}\r\n`), body);
  assert.ok(body.includes("\r\n\r\nx[REDACTED]\r\n"), body);
  assert.match(body, /"csrf":"\[REDACTED\] {38}"/);
  assert.doesNotMatch(body, /lkhandle/);
});

test("a handle is nothing in a longer text, for another credential, at another origin, or without a credential", async () => {
  const run = await runOf("elsewhere");
  assert.deepEqual(dataOf(run), [{ csrf: "[REDACTED]", number: "[REDACTED]", owner: "amelia-the-user" }]);
  const near = bench.target.all.findLast(({ path }) => path.startsWith("/near/")) ?? assert.fail("near");
  assert.equal(near.path, "/near/x%5BREDACTED%5D");
  assert.equal(near.query.get("a"), "Token [REDACTED]");
  assert.equal(near.headers["x-a"], "Bearer [REDACTED]");
  assert.equal(near.body, '{"a":"<[REDACTED]>"}');
  const away = lastOf(other, "POST /away");
  assert.deepEqual(
    [away.query.get("a"), away.headers["x-a"], away.body],
    ["[REDACTED]", "[REDACTED]", '{"a":"[REDACTED]"}'],
  );
  const second = lastOf(bench.target, "POST /second");
  assert.deepEqual([second.headers["x-a"], second.body], ["[REDACTED]", '{"a":"[REDACTED]"}']);
  assert.equal(lastOf(other, "POST /across").headers["x-a"], "[REDACTED]");
  assert.equal(lastOf(other, "POST /cross").headers["x-a"], "[REDACTED]");
  for (const { path, query, headers, body } of [...bench.target.all, ...other.all])
    assert.doesNotMatch(`${path} ${query.toString()} ${JSON.stringify(headers)} ${body}`, /lkhandle/);
});

test("a token that a node exchanges is data: the next node uses it as it likes", async () => {
  bench.target.on("POST /token", { json: { access_token: "access-token-of-a-node-1" } });
  bench.target.on("GET /with", ({ headers }) => ({ json: { items: [{ got: headers["x-access"] }] } }));
  assert.deepEqual(dataOf(await runOf("exchange")), [{ got: "Bearer access-token-of-a-node-1" }]);
});

test("a login asks which of its ways was chosen", async () => {
  const before = bench.target.seen("POST /sms").length;
  await runOf("header", { method: "sms" });
  assert.ok(bench.target.seen("POST /sms").length > before);
});
