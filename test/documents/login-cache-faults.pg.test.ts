// A cached login is shared by runs and processes, survives no tampering, and is never half there.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { openCaller } from "../caller.ts";
import { assertInvariants } from "../invariants.ts";
import { blueprint, openBench, type Bench } from "./bench.ts";

let bench: Bench;

before(async () => {
  bench = await openBench([
    `
strategy: strat_cached
account: acme
hosts: ["{TARGET}"]
fields: [{ key: word, type: password }]
login:
  type: http
  steps:
    - { request: { method: POST, url: /login, json: { w: "{{ $credential.word }}" } }, extract: { pass: { json: pass } } }
  session: { headers: { X-Pass: "{{ $pass }}" } }
  check: { request: { url: /me } }
  cache: 15m`,
    blueprint(
      "cached",
      "- { id: read, type: http, credential: it, request: { url: /api/read }, records: $ }\n- { id: out, type: output, refKey: out, from: read }",
      "credentials: { it: { strategy: strat_cached } }",
    ),
  ]);
  // A pass belongs to who logged in.
  bench.target.on("POST /login", ({ body }, nth) => ({
    json: { pass: `${JSON.parse(body).w}-pass-${nth}` },
  }));
  bench.target.on("GET /me", {});
  bench.target.on("GET /api/read", { json: [] });
});
after(() => bench?.[Symbol.asyncDispose]());

const logins = () => bench.target.seen("POST /login").length;
const lastPass = () => String(bench.target.seen("GET /api/read").at(-1)?.headers["x-pass"]);
const connect = async (word: string) => await bench.connect("strat_cached", { word });
const run = async (id: string) => await bench.run("cached", { credential_id: id });

test("of 20 runs at once, in two processes, one logs in", async () => {
  const second = await bench.installation.serveProcess();
  const id = await connect("many");
  const before = logins();
  const runs = await Promise.all(Array.from({ length: 20 }, async () => await run(id)));
  for (const { status, detail } of runs) assert.equal(status.status, "completed", String(detail));
  assert.equal(logins() - before, 1);
  await second.end();
});

test("a cached login of another credential, or one that was altered, is never used: the run fails, and the target hears nothing", async () => {
  const [mine, other] = [await connect("mine"), await connect("other")];
  await run(mine);
  await run(other);
  const { db } = bench.installation.database;
  for (const change of [
    "sealed = (select sealed from login_session where credential_id = $2)",
    "sealed = set_byte(sealed, length(sealed) - 1, get_byte(sealed, length(sealed) - 1) # 1) where $2 <> ''",
    "sealed = ''::bytea where $2 <> ''",
  ]) {
    const where = change.includes(" where $2 <>") ? " and credential_id = $1" : " where credential_id = $1";
    await db.query(`update login_session set ${change}${where}`, [mine, other]);
    const before = bench.target.all.length;
    const again = await run(mine);
    assert.equal(again.status.status, "failed", change);
    assert.equal(again.kind, "vault");
    assert.match(String(again.detail), /cached login of cred_\w+ can.t be opened/);
    assert.equal(bench.target.all.length, before, change);
  }
  assert.ok(!bench.installation.logs().includes("mine-pass"));
});

test("a deleted credential leaves no cached login behind", async () => {
  const id = await connect("gone");
  await run(id);
  const count = async () =>
    (await bench.installation.database.db.query("select 1 from login_session where credential_id = $1", [id]))
      .length;
  assert.equal(await count(), 1);
  assert.equal((await bench.caller.delete(`/credentials/${id}`)).status, 204);
  assert.equal(await count(), 0);
});

test("a worker killed between the target's yes and the cache leaves none: the run goes on elsewhere and logs in anew", async () => {
  const id = await connect("killed");
  let hold = true;
  bench.target.on("GET /me", async () => {
    while (hold) await sleep(20);
    return {};
  });
  const checks = bench.target.seen("GET /me").length;
  const before = logins();
  await bench.service.end();
  const worker = await bench.installation.serveProcess();
  const { body } = await openCaller(worker.url, bench.key).post("/blueprints/cached/trigger", {
    credential_id: id,
  });
  while (bench.target.seen("GET /me").length === checks) await sleep(20);
  await worker.end("SIGKILL");
  hold = false;
  const caller = openCaller((await bench.installation.serve()).url, bench.key);
  const ended = await caller.waitForRun(body.id, 60_000);
  assert.equal(ended.body.status, "completed");
  assert.equal(logins() - before, 2);
  assert.equal(lastPass(), `killed-pass-${logins() - 1}`);
  await assertInvariants(bench.installation);
});
