// A run that waits for others (a login, a throttle) holds nothing, loses no time of its own, and comes in its order.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { releaseLogin, takeLogin, reserveLogin } from "#db/credentials/credentials.ts";
import { Paces, SlotTooFar } from "#engine/waiting/paces.ts";
import { systemClock } from "#lib/clock.ts";
import { moveClock } from "../clock.ts";
import { eventually } from "../eventually.ts";
import { blueprint, openBench, type Bench } from "../documents/bench.ts";
import { assertInvariants } from "../invariants.ts";
import { testInAll } from "../tiers.ts";

const PLACES = 4;
const PATIENCE_MS = 60_000;

let bench: Bench;

const waiting = (id: string): string => `strategy: ${id}
account: acme
hosts: ["{TARGET}"]
fields: [{ key: token, type: password }]
login: { type: http, steps: [{ request: { method: POST, url: "/login/{{ $credential.token }}" } }] }`;

before(async () => {
  bench = await openBench(
    [
      waiting("strat_slow"),
      blueprint(
        "logs-in",
        `- { id: it, type: http, credential: it, request: { url: "/it", query: { name: "{{ $run.name }}" } }, records: $ }
- { id: out, type: output, refKey: out, from: it }`,
        "credentials: { it: { strategy: strat_slow } }\ntimeout: 15s",
      ),
      blueprint(
        "paced",
        `- { id: items, type: http, request: { url: "{TARGET}/paced", query: { name: "{{ $run.name }}" } }, throttle: { requests: 1, per: 400ms }, records: $ }
- { id: out, type: output, refKey: out, from: items }`,
        "hosts: ['{TARGET}']\ntimeout: 1s",
      ),
      blueprint(
        "burst",
        `- { id: items, type: http, request: { url: "{TARGET}/burst" }, throttle: { requests: 1, per: 1s }, records: $ }
- { id: out, type: output, refKey: out, from: items }`,
        "hosts: ['{TARGET}']\ntimeout: 5s",
      ),
      blueprint(
        "free",
        `- { id: items, type: http, request: { url: "{TARGET}/free" }, records: $ }
- { id: out, type: output, refKey: out, from: items }`,
        "hosts: ['{TARGET}']",
      ),
    ],
    `account: acme\nname: Acme\nconcurrency: ${PLACES}`,
  );
  for (const route of ["it", "paced", "burst", "free"]) bench.target.on(`GET /${route}`, { json: [] });
  bench.target.on("POST /login/quick", {});
});
after(async () => await bench?.[Symbol.asyncDispose]());

const db = () => bench.installation.database.db;

async function trigger(blueprintKey: string, body: object): Promise<string> {
  const { status, text, body: accepted } = await bench.trigger(blueprintKey, body);
  assert.equal(status, 202, text);
  return accepted.id;
}

/** Runs of one credential, in order. The first is logging in, so that none of the others can be first. */
async function triggerInTurn(count: number, credential: string, name: string): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n++) {
    ids.push(await trigger("logs-in", { credential_id: credential, run_name: `${name}-${n}` }));
    if (n > 0) continue;
    const seen = () => bench.target.seen(`POST /login/${name}`).length === 1 || undefined;
    await eventually("the first logs in", async () => seen(), PATIENCE_MS);
  }
  return ids;
}

const completed = async (ids: readonly string[]): Promise<void> => {
  for (const id of ids) {
    const { detail, kind, status } = await bench.ended(id);
    assert.equal(status.status, "completed", `${kind}: ${detail}`);
  }
};

test("behind a login that takes long, runs hold no place and lose no time, and log in one after the other in their order", async () => {
  const gate = Promise.withResolvers<void>();
  bench.target.on("POST /login/held", async () => {
    await gate.promise;
    return {};
  });
  const [held, quick] = [
    await bench.connect("strat_slow", { token: "held" }),
    await bench.connect("strat_slow", { token: "quick" }),
  ];
  const behind = await triggerInTurn(3 * PLACES, held, "held");
  // More than the account has places: another credential's runs go on all the same.
  await completed([await trigger("logs-in", { credential_id: quick, run_name: "other" })]);
  await eventually(
    "all but one hold nothing",
    async () => {
      const rows = await db().query(
        "select 1 from run where id = any($1) and line = $2 and parked_at is not null and admitted_at is null and lease_owner is null",
        [behind, held],
      );
      return rows.length === behind.length - 1 || undefined;
    },
    PATIENCE_MS,
  );
  assert.equal(bench.target.seen("POST /login/held").length, 1);
  await assertInvariants(bench.installation);
  // Longer than their timeout.
  await moveClock(db(), "20 seconds");
  gate.resolve();
  await completed(behind);
  assert.equal(bench.target.seen("POST /login/held").length, behind.length);
  // A run that has logged in goes on beside the next one's login: the order is that of the logins, not of what comes after them.
  const loggedIn = await db().query<{ run: string }>(
    `select run_id as run from audit_entry where action = 'credential.open' and subject_id = $1 order by occurred_at, id`,
    [held],
  );
  assert.deepEqual(
    loggedIn.map(({ run }) => run),
    behind,
  );
  await moveClock(db(), "0 seconds");
});

test("when a credential that runs stand in line for is deleted, or a run in line is cancelled, none of them is left behind", async () => {
  const gate = Promise.withResolvers<void>();
  bench.target.on("POST /login/gone", async () => {
    await gate.promise;
    return {};
  });
  const gone = await bench.connect("strat_slow", { token: "gone" });
  const behind = await triggerInTurn(3, gone, "gone");
  const inLine = async (): Promise<number> =>
    (await db().query("select 1 from run where line = $1 and ended_at is null", [gone])).length;
  await eventually("two stand in line", async () => (await inLine()) === 2 || undefined, PATIENCE_MS);
  await bench.caller.post(`/blueprint-runs/${behind[1]}/cancel`, {});
  assert.equal(await inLine(), 1);
  assert.equal((await bench.caller.delete(`/credentials/${gone}`)).status, 204);
  gate.resolve();
  for (const [n, id] of behind.entries()) {
    const { status, kind } = await bench.ended(id);
    // The first may have logged in just before.
    if (n > 0)
      assert.deepEqual(
        [status.status, kind],
        n === 1 ? ["cancelled", null] : ["failed", "credential_deleted"],
      );
  }
  await assertInvariants(bench.installation);
});

test("a command that needs the right to log in has it before all runs in line", async () => {
  const gate = Promise.withResolvers<void>();
  bench.target.on("POST /login/bound", async () => {
    await gate.promise;
    return {};
  });
  const bound = await bench.connect("strat_slow", { token: "bound" });
  const behind = await triggerInTurn(4, bound, "bound");
  const holder = { runId: "rebind_test", epoch: null };
  await eventually(
    "three stand in line",
    async () => (await db().query("select 1 from run where line = $1", [bound])).length === 3 || undefined,
    PATIENCE_MS,
  );
  await reserveLogin(db(), bound, holder.runId);
  gate.resolve();
  await completed(behind.slice(0, 1));
  const taken = async () => (await takeLogin(db(), bound, holder, 60_000)) === "taken" || undefined;
  await eventually("the command has it", taken, PATIENCE_MS);
  assert.equal((await db().query("select 1 from run where line = $1", [bound])).length, 3);
  assert.equal((await releaseLogin(db(), bound, holder)).length, 1);
  await completed(behind);
});

test("behind a throttle, runs hold no place and lose no time: all of a burst end well, however long it takes beside their timeout", async () => {
  const behind: string[] = [];
  for (let n = 0; n < 3 * PLACES; n++) behind.push(await trigger("paced", { run_name: `paced-${n}` }));
  await completed([await trigger("free", {})]);
  assert.ok(bench.target.seen("GET /paced").length < behind.length - PLACES, "it waited for places");
  await completed(behind);
  assert.equal(bench.target.seen("GET /paced").length, behind.length);
  await assertInvariants(bench.installation);
});

test("a slot of a run that ends is the next one's, or nobody's; none is taken that comes too late", async () => {
  const paces = new Paces(db(), systemClock);
  const [node] = await db().query<{ accountId: string; blueprintId: string; nodeId: string }>(
    `select account_id as "accountId", id as "blueprintId", 'a' as "nodeId" from blueprint where key = 'free'`,
  );
  assert.ok(node);
  const open = new AbortController().signal;
  const take = async (withinMs: number, signal = open, rank = 1): Promise<void> =>
    await paces.take(node, 500, { rank, withinMs, signal });
  const nextAt = async (): Promise<number> => {
    const [row] = await db().query<{ ms: number }>(
      "select extract(epoch from next_at)::float8 * 1000 as ms from throttle_slot where node_id = 'a'",
    );
    return row?.ms ?? 0;
  };
  await take(1_000);
  const first = await nextAt();
  await assert.rejects(take(50), SlotTooFar);
  assert.equal(await nextAt(), first, "nothing was taken");

  const stopped = new AbortController();
  const leaves = take(5_000, stopped.signal);
  await eventually("a slot is taken", async () => (await nextAt()) > first || undefined, PATIENCE_MS);
  stopped.abort(new Error("cancelled"));
  await assert.rejects(leaves, /cancelled/);
  await eventually("it is given back", async () => (await nextAt()) === first || undefined, PATIENCE_MS);

  const stoppedToo = new AbortController();
  const order: string[] = [];
  const before = take(5_000, stoppedToo.signal);
  const late = take(5_000, open, 2).then(() => order.push("late"));
  const soon = take(5_000, open, 1).then(() => order.push("soon"));
  await eventually("a slot is taken", async () => (await nextAt()) > first || undefined, PATIENCE_MS);
  stoppedToo.abort(new Error("cancelled"));
  await assert.rejects(before, /cancelled/);
  await Promise.all([late, soon]);
  assert.deepEqual(order, ["soon", "late"]);
  // Two slots for two requests, the third one's among them.
  assert.ok(Math.abs((await nextAt()) - first - 1_000) < 1, `${(await nextAt()) - first} ms`);
});

testInAll(
  "that they hold no place and all log in, by counts",
  "of 40 runs behind a login of 2 s none fails by its timeout of 15 s, and another credential's run is delayed by at most 0.5 s",
  { timeout: 200_000 },
  async (context) => {
    bench.target.on("POST /login/slow", { delayMs: 2_000 });
    const [slow, quick] = [
      await bench.connect("strat_slow", { token: "slow" }),
      await bench.connect("strat_slow", { token: "quick" }),
    ];
    const alone = await trigger("logs-in", { credential_id: quick, run_name: "alone" });
    await completed([alone]);
    const behind = await Promise.all(
      Array.from(
        { length: 40 },
        async () => await trigger("logs-in", { credential_id: slow, run_name: "slow" }),
      ),
    );
    const other = await trigger("logs-in", { credential_id: quick, run_name: "other" });
    await completed([other]);
    const tookMs = async (id: string): Promise<number> =>
      (
        await db().query<{ ms: number }>(
          "select extract(epoch from ended_at - created_at)::float8 * 1000 as ms from run where id = $1",
          [id],
        )
      )[0]?.ms ?? Infinity;
    const [aloneMs, otherMs] = [await tookMs(alone), await tookMs(other)];
    context.diagnostic(JSON.stringify({ aloneMs, otherMs }));
    assert.ok(otherMs - aloneMs < 500, `${otherMs} ms, alone ${aloneMs} ms`);
    await waitForAll(behind, 150_000);
    await completed(behind);
  },
);

testInAll(
  "that all of a burst end well",
  "at exactly the allowed rate after a burst of 60, at least 39 of 40 runs complete",
  { timeout: 200_000 },
  async (context) => {
    await bench.apply("account: acme\nname: Acme\nconcurrency: 50");
    const burst = await Promise.all(Array.from({ length: 60 }, async () => await trigger("burst", {})));
    const paced: string[] = [];
    for (let n = 0; n < 40; n++) {
      await sleep(1_000);
      paced.push(await trigger("burst", {}));
    }
    const statuses = await waitForAll([...burst, ...paced], 150_000);
    const wellEnded = (ids: readonly string[]): number =>
      ids.filter((id) => statuses.get(id) === "completed").length;
    context.diagnostic(JSON.stringify({ burst: wellEnded(burst), paced: wellEnded(paced) }));
    assert.ok(wellEnded(paced) >= 39, `${wellEnded(paced)} of 40`);
    assert.equal(wellEnded(burst), 60);
    const times = bench.target.seen("GET /burst").map(({ atMs }) => atMs);
    assert.ok(Math.max(...times) - Math.min(...times) > 98_000, "the pace holds");
  },
);

/** Without a stream for each. */
async function waitForAll(ids: readonly string[], timeoutMs: number): Promise<ReadonlyMap<string, string>> {
  return await eventually(
    "all have ended",
    async () => {
      const rows = await db().query<{ id: string; status: string }>(
        "select id, status from run where id = any($1) and ended_at is not null",
        [ids],
      );
      return rows.length === ids.length ? new Map(rows.map(({ id, status }) => [id, status])) : undefined;
    },
    timeoutMs,
  );
}
