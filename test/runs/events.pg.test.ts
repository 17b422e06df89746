import assert from "node:assert/strict";
import { connect as connectSocket } from "node:net";
import { after, afterEach, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "../eventually.ts";
import { connect, openCaller, type Caller } from "../caller.ts";
import { openEvents } from "../events.ts";
import { recordHistory, historyOf } from "../flow/run-history.ts";
import { ledger, LEDGER_LOGIN, ledgerDocuments, startTarget, type Target } from "../flow/target.ts";
import { install, type RunningService } from "../service.ts";

/** docs/api.md#events: `GET /blueprint-runs/{runId}/events`. */

let target: Target;
let installation: Awaited<ReturnType<typeof install>>;
let api: RunningService;
let key: string;
let caller: Caller;
let credential: string;

before(async () => {
  target = await startTarget(ledger);
  installation = await install();
  await installation.apply(...ledgerDocuments(target.url), "account: other");
  await recordHistory(installation.database.db);
  key = await installation.createKey("acme");
  // Two processes: what the worker does reaches a stream of the other one.
  [api] = await Promise.all([
    installation.serveProcess({}, ["api"]),
    installation.serveProcess({}, ["worker"]),
  ]);
  caller = openCaller(api.url, key);
  credential = await connect(caller, "strat_ledger", LEDGER_LOGIN);
});

afterEach(() => target.reset());

after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await target?.close();
});

const triggerLedger = async (): Promise<string> =>
  (await caller.post("/blueprints/ledger/trigger", { credential_id: credential })).body.id;

const state = (data: any): string => `${data.status}/${data.progress_step}`;

/** A run that stands still at its second node. `end` lets it go and waits: its requests must not take another's hold. */
async function heldRun(): Promise<{ id: string; release: () => void; end: () => Promise<unknown> }> {
  const hold = target.hold((request) => request.path === "/second");
  const id = await triggerLedger();
  await hold.reached;
  const end = async (): Promise<unknown> => {
    hold.release();
    return await caller.waitForRun(id);
  };
  return { id, release: () => hold.release(), end };
}

/** Streams are counted by the process alone; what is left of one shows in its sockets and in the news session. */
async function listening(): Promise<number> {
  const rows = await installation.database.db.query(
    "select 1 from pg_stat_activity where application_name = 'latchkey news' and datname = current_database()",
  );
  return rows.length;
}

test("the present state comes at once, each new one live from another process, and the stream ends after the last", async () => {
  const holds = [
    target.hold((request) => request.path === "/login"),
    target.hold((request) => request.path === "/first"),
    target.hold((request) => request.path === "/second"),
  ];
  const id = await triggerLedger();
  await holds[0]?.reached;
  const stream = await openEvents(api.url, key, id);
  assert.equal(stream.status, 200);
  assert.equal(stream.headers.get("content-type"), "text/event-stream; charset=utf-8");
  assert.equal(stream.headers.get("cache-control"), "no-store");
  assert.equal(stream.headers.get("x-accel-buffering"), "no");
  assert.match(stream.headers.get("ratelimit") ?? "", /^"polls"/);
  await stream.next(({ data }) => state(data) === "queued/authenticating");
  for (const [index, step] of [
    "running/reading_first",
    "running/reading_second",
    "completed/completed",
  ].entries()) {
    holds[index]?.release();
    if (index < 2) await holds[index + 1]?.reached;
    await stream.next(({ data }) => state(data) === step);
  }
  await stream.ended;
  const ids = stream.events.map((event) => Number(event.id));
  assert.deepEqual(
    ids,
    [...new Set(ids)].toSorted((a, b) => a - b),
    "ids rise",
  );
  assert.ok(stream.events.every(({ type }) => type === "status"));
  // Every state that was shown is one that the run had, in its order, and none stands twice.
  const history = await historyOf(installation.database.db, id);
  assert.deepEqual(
    stream.events.map(({ id: sequence }) => history[Number(sequence) - 1]),
    stream.events.map(({ data }) => state(data)),
  );
  const { text } = await caller.get(`/blueprint-runs/${id}/status`);
  assert.equal(JSON.stringify(stream.events.at(-1)?.data), text, "data is the projection, byte for byte");
});

test("without a single notification the changes come all the same, a second later", async () => {
  const { db } = installation.database;
  const cut = setInterval(
    () =>
      void db.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'latchkey news' and datname = current_database()",
      ),
    20,
  );
  try {
    const run = await heldRun();
    const stream = await openEvents(api.url, key, run.id);
    await stream.next(() => true);
    run.release();
    await stream.next(({ data }) => data.status === "completed", 10_000);
    await stream.ended;
  } finally {
    clearInterval(cut);
  }
});

test("the session that listens is lost and comes back: the next change is live again", async () => {
  const { db } = installation.database;
  const run = await heldRun();
  const stream = await openEvents(api.url, key, run.id);
  await eventually("two processes listen", async () => ((await listening()) === 2 ? true : undefined));
  await db.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'latchkey news' and datname = current_database()",
  );
  await eventually("both listen again", async () => ((await listening()) === 2 ? true : undefined));
  run.release();
  await stream.next(({ data }) => data.status === "completed");
  await stream.ended;
});

test("Last-Event-ID: nothing is sent again; after the last one 204; what is no id of this run counts as none", async () => {
  const run = await heldRun();
  const first = await openEvents(api.url, key, run.id);
  const { id: seen, data } = await first.next(() => true);
  first.close();
  const second = await openEvents(api.url, key, run.id, { "last-event-id": seen });
  await sleep(1_500);
  assert.equal(second.events.length, 0, "the present state has been seen");
  for (const strange of ["x", "0", "-1", "1e3", "99999999999999999999", String(Number(seen) + 1), " "]) {
    const other = await openEvents(api.url, key, run.id, { "last-event-id": strange });
    const event = await other.next(() => true);
    assert.deepEqual([event.id, event.data], [seen, data], `Last-Event-ID ${JSON.stringify(strange)}`);
    other.close();
  }
  run.release();
  const last = await second.next(({ data: now }) => now.status === "completed");
  await second.ended;
  assert.ok(second.events.every((event) => Number(event.id) > Number(seen)));
  const none = await openEvents(api.url, key, run.id, { "last-event-id": last.id });
  assert.deepEqual([none.status, none.headers.get("content-type")], [204, null]);
  const again = await openEvents(api.url, key, run.id, { "last-event-id": seen });
  await again.ended;
  assert.deepEqual(
    again.events.map((event) => event.id),
    [last.id],
  );
});

test("one session listens for all streams of a process, and none when nobody does", async () => {
  const run = await heldRun();
  await eventually("only the worker listens", async () => ((await listening()) === 1 ? true : undefined));
  const streams = await Promise.all(
    Array.from({ length: 20 }, async () => await openEvents(api.url, key, run.id)),
  );
  await Promise.all(streams.map(async (stream) => await stream.next(() => true)));
  // The present state is sent while the session is still being opened.
  await eventually("the process listens", async () => ((await listening()) > 1 ? true : undefined));
  assert.equal(await listening(), 2);
  for (const stream of streams) stream.close();
  // Clients that went away free everything: nobody listens in that process any more.
  await eventually("only the worker listens again", async () =>
    (await listening()) === 1 ? true : undefined,
  );
  await run.end();
});

test("more streams than a key may have are 429, and a place is free again when one is left", async () => {
  const run = await heldRun();
  const streams = await Promise.all(
    Array.from({ length: 100 }, async () => await openEvents(api.url, key, run.id)),
  );
  assert.deepEqual([...new Set(streams.map(({ status }) => status))], [200]);
  const refused = await caller.get(`/blueprint-runs/${run.id}/events`);
  assert.equal(refused.status, 429, refused.text);
  assert.equal(refused.body.error.type, "rate_limit_exceeded");
  assert.equal(refused.headers.get("retry-after"), "5");
  // A request that waits takes a place like a stream; without waiting it needs none.
  const path = `/blueprint-runs/${run.id}/status`;
  assert.equal((await caller.get(path, { prefer: "wait=1" })).status, 429);
  assert.equal((await caller.get(path)).status, 200);
  // Another key of the account has places of its own.
  const own = await openEvents(api.url, await installation.createKey("acme"), run.id);
  assert.equal(own.status, 200);
  own.close();
  streams[0]?.close();
  await eventually("a place", async () => {
    const stream = await openEvents(api.url, key, run.id);
    stream.close();
    return stream.status === 200 ? true : undefined;
  });
  for (const stream of streams) stream.close();
  await run.end();
});

test("a client that hangs up while the run is looked up, and one that never reads, leave nothing behind", async () => {
  const run = await heldRun();
  const { hostname, port } = new URL(api.url);
  const request = `GET /api/v1/blueprint-runs/${run.id}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`;
  for (let round = 0; round < 150; round++) {
    const socket = connectSocket(Number(port), hostname);
    socket.on("error", () => undefined);
    socket.write(request);
    // Some before the request is read, some in the middle, some with the stream open and unread.
    await sleep(round % 4);
    socket.destroy();
  }
  // More than a key's hundred places were asked for: all of them are free again.
  await eventually("only the worker listens", async () => ((await listening()) === 1 ? true : undefined));
  // The service may still be at the last of the sockets that are gone.
  await eventually("a hundred streams can be open at once", async () => {
    const streams = await Promise.all(
      Array.from({ length: 100 }, async () => await openEvents(api.url, key, run.id)),
    );
    const statuses = new Set(streams.map(({ status }) => status));
    for (const stream of streams) stream.close();
    return statuses.size === 1 && statuses.has(200) ? true : undefined;
  });
  await run.end();
});

test("Prefer: wait answers once the run has changed, at once if it has ended, and unchanged after its time", async () => {
  const run = await heldRun();
  const path = `/blueprint-runs/${run.id}/status`;
  const answers = async (prefer: string) => {
    const { status, text, body, headers } = await caller.get(path, { prefer });
    assert.equal(status, 200, text);
    return [body.status, headers.get("preference-applied")];
  };
  await eventually("the step in which it stands still", async () => {
    const { body } = await caller.get(path, { prefer: "wait=1" });
    return body.progress_step === "reading_second" || undefined;
  });
  let isAnswered = false;
  const waiting = answers("respond-async, Wait=5000").finally(() => (isAnswered = true));
  assert.deepEqual(await answers("wait=1"), ["running", "wait=1"]);
  assert.equal(isAnswered, false);
  // What is no number of seconds is ignored, as every unknown preference is.
  for (const ignored of ['wait="9"', "wait=-1", "wait=1.5", "wait", "waits=9", "foo=wait=9"])
    assert.deepEqual(await answers(ignored), ["running", null]);
  run.release();
  // There may be a step between the one in which it stood still and its end.
  let [status, applied] = await waiting;
  for (let steps = 0; status === "running" && steps < 3; steps++)
    [status, applied] = await answers("wait=60");
  assert.deepEqual([status, applied], ["completed", "wait=60"]);
  assert.deepEqual(await answers("wait=60"), ["completed", "wait=60"]);
  await run.end();
});

test("a stream ends when its key is revoked", async () => {
  const run = await heldRun();
  const { stdout } = await installation.command("keys", "create", "--account", "acme", "--json");
  const made = JSON.parse(stdout) as { id: string; key: string };
  const stream = await openEvents(api.url, made.key, run.id);
  await stream.next(() => true);
  await installation.command("keys", "revoke", made.id);
  // The run stands still: nothing else would end it.
  await stream.ended;
  assert.equal(stream.events.length, 1);
  await run.end();
});

test("a heartbeat shows that the connection lives while nothing changes", { timeout: 60_000 }, async () => {
  const run = await heldRun();
  const stream = await openEvents(api.url, key, run.id);
  await eventually("a comment", async () => (/^: /m.test(stream.text()) ? true : undefined), 20_000);
  assert.equal(stream.events.length, 1);
  stream.close();
  await run.end();
});

test("another account's run is 404, an unknown one too; HEAD is 404 as for the status", async () => {
  const run = await heldRun();
  const stranger = openCaller(api.url, await installation.createKey("other"));
  assert.equal((await stranger.get(`/blueprint-runs/${run.id}/events`)).status, 404);
  assert.equal((await caller.get("/blueprint-runs/nothing/events")).status, 404);
  for (const name of ["events", "status"]) {
    const head = await fetch(`${api.url}/api/v1/blueprint-runs/${run.id}/${name}`, {
      method: "HEAD",
      headers: { authorization: `Bearer ${key}` },
    });
    assert.equal(head.status, 404, name);
  }
  await run.end();
});

test("a drain ends every stream cleanly and at once; its client goes on at another process without a gap", async () => {
  const run = await heldRun();
  // The run stands still: a stream that held the drain up would do so for ten minutes.
  const leaving = await installation.serveProcess({ LATCHKEY_DRAIN_SECONDS: "600" }, ["api"]);
  const stream = await openEvents(leaving.url, key, run.id);
  const { id: seen } = await stream.next(() => true);
  const [code] = await Promise.all([leaving.end("SIGTERM"), stream.ended]);
  assert.equal(code, 0);
  const next = await openEvents(api.url, key, run.id, { "last-event-id": seen });
  run.release();
  await next.next(({ data }) => data.status === "completed");
  await next.ended;
  assert.ok(next.events.every((event) => Number(event.id) > Number(seen)));
});
