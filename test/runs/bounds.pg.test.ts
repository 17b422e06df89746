// What bounds a run: its retries, its logins' time, and the pace toward a target that all its workers share.
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { limits } from "#domain/limits.ts";
import { eventually } from "../eventually.ts";
import { connect, openCaller, type Caller } from "../caller.ts";
import { blueprint, openBench, type Bench } from "../documents/bench.ts";
import { assertInvariants } from "../invariants.ts";
import type { ServiceProcess } from "../service.ts";

/** Pages of each node; every page fails once, and is right when it is asked for again. */
const PAGES = 60;
const LOGIN_SECONDS = 3;

let bench: Bench;
/** The one that is up. */
let service: ServiceProcess;
let caller: Caller;

const paged = (id: string, more = ""): string =>
  `- { id: ${id}, type: http, ${more} request: { url: "{TARGET}/${id}" }, retry: { attempts: 3, initial: 1ms, max: 1ms }, paginate: { cursor: next, param: cursor }, records: items }`;

before(async () => {
  const hosts = "hosts: ['{TARGET}']";
  bench = await openBench(
    [
      blueprint(
        "flaky",
        `${paged("first")}\n${paged("second")}\n- { id: out, type: output, refKey: out, from: [first, second] }`,
        hosts,
      ),
      blueprint(
        "writes",
        `${paged("first")}
- { id: sent, type: http, for_each: first, retry: { attempts: 3, initial: 1ms, max: 1ms }, request: { method: POST, url: "{TARGET}/orders", json: { n: "{{ n }}" } } }
- { id: out, type: output, refKey: out, from: sent }`,
        hosts,
      ),
      `strategy: strat_slow
account: acme
hosts: ["{TARGET}"]
fields: [{ key: token, type: password }]
login: { type: http, steps: [{ request: { method: POST, url: /login, form: { token: "{{ $credential.token }}" } } }] }`,
      blueprint(
        "logs-in",
        `- { id: it, type: http, credential: it, request: { url: /it }, records: $ }\n- { id: out, type: output, refKey: out, from: it }`,
        "credentials: { it: { strategy: strat_slow } }",
      ),
      blueprint(
        "paced",
        `- { id: items, type: http, request: { url: "{TARGET}/paced" }, throttle: { requests: 20, per: 1s }, paginate: { cursor: next, param: cursor }, records: items }
- { id: out, type: output, refKey: out, from: items }`,
        hosts,
      ),
    ],
    "account: acme\nname: Acme",
    { LATCHKEY_LOGIN_SECONDS: String(LOGIN_SECONDS), LATCHKEY_WORKER_CONCURRENCY: "1" },
  );
  bench.target.on("GET /it", { json: [] });
  // The first test kills the process that carries its run.
  await bench.service.end();
  service = await bench.installation.serveProcess();
  caller = openCaller(service.url, bench.key);
});
afterEach(async () => await assertInvariants(bench.installation));
after(async () => await bench?.[Symbol.asyncDispose]());

const db = () => bench.installation.database.db;
const count = (route: string): number => bench.target.seen(route).length;

/** Pages by cursor, each asked for twice: 503 first. `pause` holds the answer to a page. */
function flaky(route: string, pages = PAGES, pause: (page: number) => Promise<void> = async () => {}): void {
  const asked = new Map<number, number>();
  bench.target.on(`GET /${route}`, async ({ query }) => {
    const page = Number(query.get("cursor") ?? "0");
    asked.set(page, (asked.get(page) ?? 0) + 1);
    await pause(page);
    if (asked.get(page) === 1) return { status: 503 };
    return { json: { items: [{ n: page }], ...(page + 1 < pages ? { next: String(page + 1) } : {}) } };
  });
}

test(`a run has ${limits.retriesMax} retries over all its nodes, also when it goes on in another process; then it fails at once`, async () => {
  flaky("first");
  const reached = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  flaky("second", PAGES, async (page) => {
    if (page !== 10) return;
    reached.resolve();
    await held.promise;
  });
  const { body } = await caller.post("/blueprints/flaky/trigger", {});
  await reached.promise;
  // The journal has the first node; the second begins anew, with what is left.
  await service.end("SIGKILL");
  const [left] = await db().query<{ spent: number }>("select retries as spent from run where id = $1", [
    body.id,
  ]);
  const spent = left?.spent ?? 0;
  // Whether the last one that was asked for had been committed when the process died.
  assert.ok([PAGES + 9, PAGES + 10].includes(spent), String(spent));
  const before = count("GET /second");
  flaky("second");
  held.resolve();
  service = await bench.installation.serveProcess();
  caller = openCaller(service.url, bench.key);
  const { body: ended } = await caller.waitForRun(body.id, 60_000);
  assert.equal(ended.status, "failed");
  const [row] = await db().query<{ kind: string; detail: string; retries: number }>(
    "select error_kind as kind, error_detail as detail, retries from run where id = $1",
    [body.id],
  );
  assert.equal(row?.kind, "target");
  assert.match(
    row?.detail ?? "",
    /^Node second: GET .* returned 503; .* \(the run's 100 retries are used up\)\.$/,
  );
  assert.equal(row?.retries, limits.retriesMax + 1);
  assert.equal(count("GET /first"), 2 * PAGES);
  // Each retry that was left, with the request before it; and the one that was not retried.
  assert.equal(count("GET /second") - before, 2 * (limits.retriesMax - spent) + 1);
});

test("a write that the target puts off is not sent again when the retries are used up, and is known not to have happened", async () => {
  flaky("first", 1);
  let asked = 0;
  bench.target.on("POST /orders", async () => {
    asked++;
    // As if a hundred had gone before.
    await db().query("update run set retries = $1 where ended_at is null", [limits.retriesMax]);
    return { status: 429 };
  });
  const { body } = await caller.post("/blueprints/writes/trigger", {});
  assert.equal((await caller.waitForRun(body.id, 60_000)).body.status, "failed");
  assert.equal(asked, 1);
  const [row] = await db().query<{ detail: string; status: string }>(
    "select error_detail as detail, run_write.status from run join run_write on run_id = run.id where run.id = $1",
    [body.id],
  );
  assert.match(row?.detail ?? "", /returned 429.* \(the run's 100 retries are used up\)/);
  assert.equal(row?.status, "refused");
});

test(`a login that takes longer than LATCHKEY_LOGIN_SECONDS fails its run; the wait for other logins does not count`, async () => {
  const credential = await connect(caller, "strat_slow", { token: "t" });
  const trigger = async (): Promise<string> =>
    (await caller.post("/blueprints/logs-in/trigger", { credential_id: credential })).body.id;

  bench.target.on("POST /login", { delayMs: 10 * LOGIN_SECONDS * 1_000 });
  const hanging = await trigger();
  const { body: failed } = await caller.waitForRun(hanging, 60_000);
  assert.deepEqual([failed.status, failed.started_at], ["failed", null]);
  const [row] = await db().query<{ kind: string; detail: string }>(
    "select error_kind as kind, error_detail as detail from run where id = $1",
    [hanging],
  );
  assert.deepEqual(row, { kind: "login", detail: `The login took longer than ${LOGIN_SECONDS} s.` });

  bench.target.on("POST /login", {});
  // Another run logs in, for longer than a login of ours may take.
  await db().query(
    `update credential set login_run_id = 'run_another', login_until = app_now() + interval '${LOGIN_SECONDS + 1} seconds' where id = $1`,
    [credential],
  );
  const waited = await trigger();
  assert.equal((await caller.waitForRun(waited, 60_000)).body.status, "completed");
  const [times] = await db().query<{ ms: number }>(
    "select extract(epoch from started_at - created_at)::float8 * 1000 as ms from run where id = $1",
    [waited],
  );
  assert.ok((times?.ms ?? 0) > LOGIN_SECONDS * 1_000, `it waited ${times?.ms} ms`);
});

test("two workers keep one pace toward a target: `throttle` holds over processes", async () => {
  const second = await bench.installation.serveProcess();
  const both = Promise.withResolvers<void>();
  const pages = 8;
  let waiting = 0;
  bench.target.on("GET /paced", async ({ query }) => {
    const page = Number(query.get("cursor") ?? "0");
    // Each process executes one run at a time: both have one when both are here.
    if (page === 0 && ++waiting === 2) both.resolve();
    if (page === 0) await both.promise;
    return { json: { items: [], ...(page + 1 < pages ? { next: String(page + 1) } : {}) } };
  });
  const ids = await Promise.all(
    [1, 2].map(async () => (await caller.post("/blueprints/paced/trigger", {})).body.id as string),
  );
  await eventually("both runs are at the target", async () => (waiting === 2 ? true : undefined), 60_000);
  for (const id of ids) assert.equal((await caller.waitForRun(id, 60_000)).body.status, "completed");
  const times = bench.target.seen("GET /paced").map(({ atMs }) => atMs);
  assert.equal(times.length, 2 * pages);
  // 20 a second together: a gap of 50 ms before each but the first.
  const tookMs = Math.max(...times) - Math.min(...times);
  assert.ok(tookMs >= (2 * pages - 1) * 50 - 60, `${Math.round(tookMs)} ms`);
  const [rows] = await db().query<{ workers: number }>("select count(*)::int as workers from worker");
  assert.equal(rows?.workers, 2);
  await second.end();
});
