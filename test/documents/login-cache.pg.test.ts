// docs/strategies.md#http: `cache` keeps the logged-in session, sealed; `check` is also how a cached login is tested.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { moveClock } from "../clock.ts";
import { blueprint, dataOf, openBench, type Bench } from "./bench.ts";

let bench: Bench;

const NODES = `
- { id: read, type: http, credential: it, request: { url: /api/read }, records: $ }
- { id: out, type: output, refKey: out, from: read }`;

const strategy = (id: string, cache: string, check: string) => `
strategy: ${id}
account: acme
hosts: ["{TARGET}"]
fields: [{ key: word, type: password }, { key: totp, type: totp_secret, required: false }]
login:
  type: http
  steps:
    - { request: { method: POST, url: /login, json: { w: "{{ $credential.word }}" } }, extract: { pass: { json: pass } } }
    - { when: $exists($credential.totp), request: { method: POST, url: /code, form: { code: "{{ $credential.totp.code }}" } } }
  session: { headers: { X-Pass: "{{ $pass }}" } }
  ${check}
  cache: ${cache}`;

const CHECK = "check: { request: { url: /me }, expect: { status: [200] } }";

before(async () => {
  bench = await openBench([
    strategy("strat_cached", "15m", CHECK),
    blueprint("cached", NODES, "credentials: { it: { strategy: strat_cached } }"),
    strategy("strat_unchecked", "15m", ""),
    blueprint("unchecked", NODES, "credentials: { it: { strategy: strat_unchecked } }"),
    strategy("strat_never", "0", CHECK),
    blueprint("never", NODES, "credentials: { it: { strategy: strat_never } }"),
  ]);
  // Every login opens a new session: a header value and a cookie.
  bench.target.on("POST /login", (_seen, nth) => ({
    headers: { "set-cookie": `sid=cookie-${nth}; Path=/` },
    json: { pass: `pass-${nth}-secret` },
  }));
  bench.target.on("GET /me", {});
  bench.target.on("GET /api/read", ({ headers }) => ({ json: { cookie: headers.cookie ?? null } }));
});
after(() => bench?.[Symbol.asyncDispose]());

const count = (route: string) => bench.target.seen(route).length;
const lastHeaders = (route: string) => bench.target.seen(route).at(-1)?.headers ?? {};

test("a cached login is checked and used again by the next run: cookies and session headers, without a login", async () => {
  const id = await bench.connect("strat_cached", { word: "w-123456" });
  const first = await bench.run("cached", { credential_id: id });
  assert.equal(first.status.status, "completed", String(first.detail));
  const [logins, checks] = [count("POST /login"), count("GET /me")];
  const second = await bench.run("cached", { credential_id: id });
  assert.deepEqual([count("POST /login"), count("GET /me")], [logins, checks + 1]);
  assert.equal(lastHeaders("GET /me")["x-pass"], lastHeaders("GET /api/read")["x-pass"]);
  assert.match(String(lastHeaders("GET /api/read")["x-pass"]), /^pass-\d-secret$/);
  assert.deepEqual(dataOf(second), dataOf(first));

  // The check fails: the session is over, and the run logs in again.
  bench.target.on("GET /me", (_seen, nth) => ({ status: nth === checks + 1 ? 401 : 200 }));
  const third = await bench.run("cached", { credential_id: id });
  assert.equal(third.status.status, "completed", String(third.detail));
  assert.equal(count("POST /login"), logins + 1);
  assert.notDeepEqual(dataOf(third), dataOf(first));
  // And the new one is kept.
  await bench.run("cached", { credential_id: id });
  assert.equal(count("POST /login"), logins + 1);
});

test("credentials don't share a cached login", async () => {
  const before = count("POST /login");
  await bench.run("cached", { credential_id: await bench.connect("strat_cached", { word: "other-word" }) });
  assert.equal(count("POST /login"), before + 1);
  assert.equal(bench.target.seen("POST /login").at(-1)?.body, '{"w":"other-word"}');
});

test("cache: 0 logs in for every run", async () => {
  const id = await bench.connect("strat_never", { word: "w-123456" });
  const before = count("POST /login");
  await bench.run("never", { credential_id: id });
  await bench.run("never", { credential_id: id });
  assert.equal(count("POST /login"), before + 2);
});

test("without a check a cached login is good until its time is over, by the database's clock", async (t) => {
  const id = await bench.connect("strat_unchecked", { word: "w-123456" });
  const before = count("POST /login");
  await bench.run("unchecked", { credential_id: id });
  await bench.run("unchecked", { credential_id: id });
  assert.equal(count("POST /login"), before + 1);
  t.after(async () => await moveClock(bench.installation.database.db, "0"));
  await moveClock(bench.installation.database.db, "16 minutes");
  await bench.run("unchecked", { credential_id: id });
  assert.equal(count("POST /login"), before + 2);
});

test("a new version of the strategy does not go on with the login of the old one", async () => {
  const id = await bench.connect("strat_cached", { word: "w-123456" });
  await bench.run("cached", { credential_id: id });
  const before = count("POST /login");
  await bench.apply(`${strategy("strat_cached", "15m", CHECK)}\ndescription: another version`);
  await bench.run("cached", { credential_id: id });
  assert.equal(count("POST /login"), before + 1);
});

test("a one-time code that the target refuses is tried once more with the next one, and none is sent twice", async (t) => {
  const id = await bench.connect("strat_never", {
    word: "w-123456",
    totp: "gezd gnbv gy3t qojq gezd gnbv gy3t qojq",
  });
  const codes = () => bench.target.seen("POST /code").map(({ body }) => body);
  // The next code comes with the next time step: while the target thinks, its clock and ours go on by one, instead of waiting.
  bench.target.on("POST /code", async (_seen, nth) => {
    if (nth > 0) return {};
    await moveClock(bench.installation.database.db, "30 seconds");
    return { status: 403, headers: { date: new Date(Date.now() + 30_000).toUTCString() } };
  });
  t.after(async () => await moveClock(bench.installation.database.db, "0"));
  const run = await bench.run("never", { credential_id: id });
  assert.equal(run.status.status, "completed", String(run.detail));
  assert.equal(new Set(codes()).size, 2, codes().join(" "));
});
