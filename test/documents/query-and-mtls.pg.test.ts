// docs/strategies.md#query and docs/strategies.md#mtls, from the form to what the target gets.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { submitHostedForm } from "../caller.ts";
import { blueprint, dataOf, openBench, type Bench } from "./bench.ts";
import { openTarget, to, type Target } from "./target.ts";
import { CA_FILE, certificate, openTlsTarget, type TlsTarget } from "./tls-target.ts";

const KEY = "k-canary 7&=";

let bench: Bench;
let second: Target;
let outside: Target;
let tls: TlsTarget;

const read = (url: string, more = "") => `
- { id: read, type: http, credential: it, request: { url: "${url}" }, records: $ ${more} }
- { id: out, type: output, refKey: out, from: read }`;
const slot = (id: string) => `credentials: { it: { strategy: ${id} } }`;

before(async () => {
  [second, outside] = await Promise.all([openTarget(), openTarget()]);
  tls = await openTlsTarget((request, response) => {
    if (request.url === "/away") response.writeHead(302, { location: `${outside.url}/trap` }).end();
    else response.setHeader("content-type", "application/json").end('[{"ok":true}]');
  });
  const query = `
strategy: strat_query
account: acme
hosts: ["{TARGET}", "${second.url}"]
fields: [{ key: key, type: password }]
login: { type: query, params: { api_key: "{{ $credential.key }}" } }`;
  const mtls = `
strategy: strat_mtls
account: acme
hosts: ["${tls.url}"]
fields:
  - { key: cert, label: Certificate, type: file }
  - { key: key, label: Key, type: file }
  - { key: word, label: Passphrase, type: password, required: false }
login: { type: mtls, certificate: cert, key: key, passphrase: word }`;
  bench = await openBench(
    [
      query,
      blueprint("plain", read("/api/read?q=a%20b"), slot("strat_query")),
      blueprint("hop", read("/hop"), slot("strat_query")),
      blueprint("leave", read("/leave"), slot("strat_query")),
      blueprint("fail", read("/fail"), slot("strat_query")),
      blueprint(
        "pages",
        read("/pages", ", paginate: { link_header: true, max_pages: 3 }"),
        slot("strat_query"),
      ),
      mtls,
      blueprint("tls", read("/api/read"), slot("strat_mtls")),
      blueprint("away", read("/away"), slot("strat_mtls")),
      // Without the credential the same host sees no certificate.
      blueprint(
        "open",
        `${read(`${tls.url}/api/read`).replace(" credential: it,", "")}`,
        `hosts: ["${tls.url}"]`,
      ),
    ],
    undefined,
    { NODE_EXTRA_CA_CERTS: CA_FILE },
  );
  const echo = ({ query: seen }: { readonly query: URLSearchParams }) => ({
    json: [{ key: seen.get("api_key"), count: seen.getAll("api_key").length, q: seen.get("q") }],
  });
  bench.target.on("GET /api/read", echo);
  second.on("GET /landed", echo);
  bench.target.on("GET /hop", ({ query: seen }) => to(`/again?${String(seen)}&n=1`));
  bench.target.on("GET /again", ({ query: seen }) => to(`${second.url}/landed?${String(seen)}`));
  bench.target.on("GET /leave", ({ query: seen }) => to(`${outside.url}/trap?${String(seen)}`));
  bench.target.on("GET /fail", { status: 418 });
  bench.target.on("GET /pages", ({ query: seen }) => ({
    json: [{ page: seen.get("page") ?? "1", count: seen.getAll("api_key").length }],
    ...(seen.has("page") ? {} : { headers: { link: `</pages?page=2&${String(seen)}>; rel="next"` } }),
  }));
});
after(async () => {
  await bench?.[Symbol.asyncDispose]();
  tls?.close();
  await Promise.all([second, outside].map(async (target) => await target?.[Symbol.asyncDispose]()));
});

const connectQuery = async (): Promise<string> => await bench.connect("strat_query", { key: KEY });

test("query: every request carries the parameter, and what the target echoes of it is redacted", async () => {
  const run = await bench.run("plain", { credential_id: await connectQuery() });
  assert.deepEqual(dataOf(run), [{ key: "[REDACTED]", count: 1, q: "a b" }]);
  assert.equal(bench.target.seen("GET /api/read").at(-1)?.query.get("api_key"), KEY);
});

test("query: it goes along on redirects of its origin, once, also where the target repeats it, and to no other origin", async () => {
  const run = await bench.run("hop", { credential_id: await connectQuery() });
  assert.equal(run.status.status, "completed", String(run.detail));
  assert.deepEqual(bench.target.seen("GET /again").at(-1)?.query.getAll("api_key"), [KEY]);
  // Another of the hosts: no secret across origins (docs/decisions/0015).
  assert.deepEqual(second.seen("GET /landed").at(-1)?.query.getAll("api_key"), []);
  const paged = await bench.run("pages", { credential_id: await connectQuery() });
  assert.deepEqual(dataOf(paged), [
    { page: "1", count: 1 },
    { page: "2", count: 1 },
  ]);
});

test("query: it never leaves the hosts, and stands in no message, log or table", async () => {
  const credential = { credential_id: await connectQuery() };
  const left = await bench.run("leave", credential);
  assert.match(
    String(left.detail),
    /redirected to 127\.0\.0\.1:\d+: http:\/\/127\.0\.0\.1:\d+ is not one of/,
  );
  assert.equal(outside.all.length, 0);
  assert.equal((await bench.run("fail", credential)).status.status, "failed");
  const { db } = bench.installation.database;
  const tables = await db.query<{ name: string }>(
    "select tablename as name from pg_tables where schemaname = 'public'",
  );
  const rows = await Promise.all(
    tables.map(async ({ name }) => await db.query<{ text: string }>(`select t::text as text from ${name} t`)),
  );
  const everything =
    bench.installation.logs() +
    rows
      .flat()
      .map(({ text }) => text)
      .join("\n");
  for (const form of ["k-canary", Buffer.from("k-canary").toString("hex")])
    assert.ok(!everything.includes(form), form);
});

const FILES = { cert: certificate("client.pem"), key: certificate("client.key.pem") };

test("mtls: the certificate is presented to the strategy's host, with and without a passphrase, and to nobody else", async () => {
  for (const files of [
    FILES,
    { ...FILES, key: certificate("client.locked.key.pem"), word: "correct-horse" },
  ]) {
    const before = tls.clients.length;
    const run = await bench.run("tls", { credential_id: await bench.connect("strat_mtls", files) });
    assert.deepEqual(dataOf(run), [{ ok: true }], String(run.detail));
    assert.deepEqual(tls.clients.slice(before), ["client"]);
  }
  const away = await bench.run("away", { credential_id: await bench.connect("strat_mtls", FILES) });
  assert.match(String(away.detail), /is not one of the allowed hosts/);
  assert.equal(outside.all.length, 0);
});

test("mtls: a certificate of 40 kB, with the whole chain and a text about it, goes through the form as any other", async () => {
  const about = `Subject: CN=client of Acme\n${"Issued for tests, and for nothing else.\n".repeat(1_000)}`;
  const long = { ...FILES, cert: `${about}${FILES.cert}\n${certificate("ca.pem")}` };
  assert.ok(long.cert.length > 40_000);
  const run = await bench.run("tls", { credential_id: await bench.connect("strat_mtls", long) });
  assert.equal(run.status.status, "completed", run.detail ?? "");
});

test("mtls: no other request of the process gets a connection with the certificate", async () => {
  const before = tls.clients.length;
  const run = await bench.run("open");
  assert.equal(run.status.status, "failed");
  assert.equal(tls.clients.length, before);
});

test("mtls: a certificate of a stranger is refused by the target, and the run says how", async () => {
  const stranger = { cert: certificate("stranger.pem"), key: certificate("stranger.key.pem") };
  const run = await bench.run("tls", { credential_id: await bench.connect("strat_mtls", stranger) });
  assert.equal(run.status.status, "failed");
  assert.match(
    String(run.detail),
    /the connection to 127\.0\.0\.1:\d+ failed \((ERR_SSL|ECONNRESET|EPIPE|UND_ERR)/,
  );
});

test("mtls: what can't be presented is refused when it is submitted, beside its field, and logged nowhere", async () => {
  const { body } = await bench.caller.post("/credential-sessions", { strategy_id: "strat_mtls" });
  for (const [files, says] of [
    [{ ...FILES, key: certificate("stranger.key.pem") }, /does not belong to the certificate/],
    [
      { ...FILES, key: certificate("client.locked.key.pem"), word: "wrong-word" },
      /be decrypted with this passphrase/,
    ],
    [
      {
        ...FILES,
        cert: readFileSync(new URL("../strategies/certificates/client.p12", import.meta.url), "latin1"),
      },
      /PKCS#12/,
    ],
  ] as const) {
    const answer = await submitHostedForm(body.hosted_url, files);
    const page = await answer.text();
    assert.equal(answer.status, 422);
    assert.match(page, says);
    assert.ok(!page.includes("PRIVATE KEY-----\n") && !page.includes("wrong-word"));
  }
  assert.ok(!bench.installation.logs().includes(FILES.key.split("\n")[1] ?? ""));
  assert.equal((await submitHostedForm(body.hosted_url, FILES)).status, 200);
});
