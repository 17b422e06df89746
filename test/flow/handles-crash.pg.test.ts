// A node's records are in the journal with handles in place of what the target gave. The process that goes on with the run after a crash
// reads them there, and has the values from the session alone.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { untilDead } from "../processes.ts";
import { connect, openCaller } from "../caller.ts";
import { blueprint } from "../documents/bench.ts";
import { openTarget, type Target } from "../documents/target.ts";
import { install } from "../service.ts";
import { dumpDatabase } from "./canary-search.ts";

const NODES = `
- { id: me, type: http, credential: it, request: { url: /me }, records: "$" }
- { id: sent, type: http, credential: it, for_each: me, request: { method: POST, url: "/write/{{ tenant }}", headers: { X-CSRF: "{{ csrf }}" } }, records: items }
- { id: out, type: output, refKey: out, from: sent }`;

let installation: Awaited<ReturnType<typeof install>>;
let target: Target;
let key: string;

before(async () => {
  target = await openTarget();
  installation = await install();
  const strategy = (id: string, more: string): string => `
strategy: ${id}
account: acme
hosts: ["${target.url}"]
fields: [{ key: password, type: password }]
login:
  type: http
  ${more}
  steps:
    - request: { method: POST, url: /login, form: { p: "{{ $credential.password }}" } }
      extract: { tenant: { json: tenant } }`;
  await installation.apply(
    "account: acme",
    strategy("strat_kept", "cache: 1h"),
    strategy("strat_anew", ""),
    ...["kept", "anew"].map((name) =>
      blueprint(name, NODES, `credentials: { it: { strategy: strat_${name} } }`),
    ),
  );
  key = await installation.createKey("acme");
  target.on("POST /login", (_seen, count) => ({
    headers: { "set-cookie": `csrf=csrf-of-login-number-${count}; Path=/` },
    json: { tenant: "tenant-4711-north" },
  }));
  target.on("GET /me", ({ headers }) => ({
    json: { csrf: /csrf=([^;]+)/.exec(headers.cookie ?? "")?.[1], tenant: "tenant-4711-north" },
  }));
  target.on("POST /write/tenant-4711-north", { json: { items: [{ done: true }] } });
});
after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await target?.[Symbol.asyncDispose]();
});

/** Runs until the first node is in the journal, dies there, and goes on in another process. */
async function carriedOver(name: string) {
  const dying = await installation.serveProcess({ LATCHKEY_FAILPOINTS: "step.after_finish=kill" });
  const before = openCaller(dying.url, key);
  const credential = await connect(before, `strat_${name}`, { password: "correct-horse" });
  const { body } = await before.post(`/blueprints/${name}/trigger`, { credential_id: credential });
  await untilDead(dying);
  const reads = target.seen("GET /me").length;
  const [stored] = await installation.database.db.query<{ output: string }>(
    "select convert_from(output, 'UTF8') as output from run_step where run_id = $1 and node_id = 'me'",
    [body.id],
  );
  assert.match(stored?.output ?? "", /"csrf":"lkhandle[0-9a-f]{40}","tenant":"lkhandle[0-9a-f]{40}"/);
  const service = await installation.serveProcess();
  const caller = openCaller(service.url, key);
  const run = (await caller.waitForRun(body.id, 60_000)).body;
  const results = await caller.get(`/blueprint-runs/${body.id}/results?deliveryMethod=direct`);
  const [row] = await installation.database.db.query<{ detail: string | null }>(
    "select error_detail as detail from run where id = $1",
    [body.id],
  );
  await service.end();
  assert.equal(target.seen("GET /me").length, reads, "what the journal has is not read again");
  return { run, results: results.body.results, detail: row?.detail ?? "" };
}

test("with the session kept, the values go where they went before", async () => {
  const { run, results, detail } = await carriedOver("kept");
  assert.equal(run.status, "completed", detail);
  assert.deepEqual(results.out.records[0].data, { done: true });
  const [sent] = target.seen("POST /write/tenant-4711-north");
  assert.match(String(sent?.headers["x-csrf"]), /^csrf-of-login-number-\d$/);
});

test("with another session the run fails before it sends anything, and says why", async () => {
  const before = target.all.filter(({ method, path }) => method === "POST" && path !== "/login").length;
  const { run, detail } = await carriedOver("anew");
  assert.equal(run.status, "failed");
  assert.match(
    detail,
    /^Node sent: POST .*: the request contains a value of a login session that no longer exists: .*`cache`/,
  );
  assert.equal(
    target.all.filter(({ method, path }) => method === "POST" && path !== "/login").length,
    before,
  );
});

test("nothing of it is in the database", async () => {
  const tables = await dumpDatabase(installation.database.db);
  for (const { place, bytes } of tables)
    assert.doesNotMatch(bytes.toString("latin1"), /csrf-of-login-number|tenant-4711-north/, place);
});
