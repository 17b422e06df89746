// docs/webhooks.md#how-it-works, in numbers: no event is lost or invented whatever dies, and a bad endpoint takes nothing from a good one.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { openCaller, type Caller } from "../caller.ts";
import { runCommand } from "../cli/program.ts";
import { moveClock, REAL_TIME, setClock } from "../clock.ts";
import { openDatabaseProxy } from "../contract/database-proxy.ts";
import { eventually, until } from "../eventually.ts";
import { assertInvariants } from "../invariants.ts";
import { install } from "../service.ts";
import { startReceiver, type Answer, type Received, type Receiver } from "../webhooks/stage.ts";

/** Each run has two: it started, and it was completed. */
const EFFECTS = Number(process.env["LATCHKEY_WEBHOOK_EFFECTS"] ?? 10_000);
const LONG = { timeout: 1_200_000 };
const PATIENCE_MS = 900_000;
const TOGETHER = 20;

let receiver: Receiver;
let installation: Awaited<ReturnType<typeof install>>;
let answer: (delivery: Received) => Answer | null = () => ({ status: 204 });

before(async () => {
  receiver = await startReceiver((delivery) => answer(delivery));
  installation = await install({ LATCHKEY_LOG_LEVEL: "warn" });
  await installation.apply(
    "account: acme\nrate_limit: off\nconcurrency: 100",
    `blueprint: list
account: acme
nodes:
  - { id: data, type: input, refKey: data }
  - { id: rows, type: parse, from: data, format: json }
  - { id: out, type: output, refKey: rows, from: rows }`,
  );
});
after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await receiver?.close();
});

async function create(path: string, url = receiver.url): Promise<string> {
  const words = ["webhooks", "create", url + path, "--account", "acme", "--events", "run.*", "--json"];
  return JSON.parse((await runCommand(installation, 0, words)).stdout).id;
}

async function countOf(where: string): Promise<number> {
  const [row] = await installation.database.db.query<{ total: number }>(
    `select count(*)::int as total from ${where}`,
  );
  return row?.total ?? 0;
}

/** One of each way. */
const DEATHS = 4;

/** A worker that dies in one of these ways, again and again until it is over. */
async function dieAgainAndAgain(isOver: () => boolean, died: () => void): Promise<void> {
  for (let round = 0; !isOver(); round++) {
    const way = round % 4;
    const points = ["webhook.before_send=kill:200", "webhook.after_send=kill:20"][way];
    const proxy = way === 3 ? await openDatabaseProxy(installation.database.connectionString) : null;
    const worker = await installation
      .serveProcess(
        {
          ...(points === undefined ? {} : { LATCHKEY_FAILPOINTS: points }),
          ...(proxy === null ? {} : { DATABASE_URL: proxy.connectionString }),
        },
        ["worker"],
      )
      .catch(() => null);
    if (worker === null) continue;
    const seen = receiver.received.length;
    const isDead = (): boolean => worker.child.signalCode !== null || worker.child.exitCode !== null;
    await eventually(
      "it dies, or it is its time",
      () =>
        isDead() || isOver() || (points === undefined && receiver.received.length > seen + 300) || undefined,
      PATIENCE_MS,
    );
    if (way === 2 && !isOver()) {
      // In the middle of a request: it has come, and will not be answered.
      answer = () => {
        worker.child.kill("SIGKILL");
        return null;
      };
      await eventually("it is killed", () => isDead() || isOver() || undefined, PATIENCE_MS);
      answer = () => ({ status: 204 });
    }
    await proxy?.close();
    if (proxy !== null) await sleep(3_000);
    if (!isDead()) await worker.end("SIGKILL");
    died();
  }
}

/** The ids that came for each effect, by its type and run. */
function idsByEffect(): ReadonlyMap<string, ReadonlySet<string>> {
  const ids = new Map<string, Set<string>>();
  for (const { id, event } of receiver.received) {
    const effect = `${event.type} ${event.data.id}`;
    ids.set(effect, (ids.get(effect) ?? new Set()).add(id));
  }
  return ids;
}

test(
  `of ${EFFECTS} effects, or more, none is lost and none invented, with two workers that are killed and a database that goes away`,
  LONG,
  async () => {
    const endpoint = await create("/hooks");
    const { db } = installation.database;
    const api = await installation.serveProcess({}, ["api"]);
    await installation.serveProcess({}, ["worker"]);
    const caller = openCaller(api.url, await installation.createKey("acme"));
    let isOver = false;
    let deaths = 0;
    const dying = dieAgainAndAgain(
      () => isOver,
      () => void deaths++,
    );
    const orders = EFFECTS / 2 / TOGETHER;
    let placed = 0;
    const order = async (): Promise<void> => {
      assert.equal((await caller.post("/blueprints/list/trigger", { data: "[]" })).status, 202);
      placed++;
    };
    const share = async (): Promise<void> => {
      for (let n = 0; n < orders; n++) {
        // Each way to die has its part of the effects, and needs some, however slow the machine is to start the next worker.
        for (const due = Math.floor((n / orders) * (DEATHS + 1)); deaths < due; await sleep(200))
          await order();
        await order();
      }
    };
    await Promise.all(Array.from({ length: TOGETHER }, share));
    await eventually(
      "all runs have ended",
      async () => (await countOf("run where ended_at is null")) === 0 || undefined,
      PATIENCE_MS,
    );
    isOver = true;
    await dying;
    answer = () => ({ status: 204 });
    // What was under way is due again after its lease, what failed after its delay.
    for (const later of ["2 minutes", "20 minutes", "3 hours", "12 hours"]) {
      await moveClock(db, later);
      await eventually(
        "nothing is due",
        async () => (await countOf("webhook_delivery where due_at <= app_now()")) === 0 || undefined,
        PATIENCE_MS,
      );
    }
    assert.equal(await countOf("webhook_delivery where delivered_at is null"), 0);
    const runs = await db.query<{ id: string }>(`select id from run where status = 'completed'`);
    assert.equal(runs.length, placed);
    const wanted = runs.flatMap(({ id }) => [`run.completed ${id}`, `run.started ${id}`]);
    const ids = idsByEffect();
    assert.deepEqual([...ids.keys()].toSorted(), wanted.toSorted());
    for (const [effect, { size }] of ids) assert.equal(size, 1, `${effect} has one id`);
    const twice = receiver.received.length - wanted.length;
    assert.ok(deaths >= DEATHS, `${deaths} deaths`);
    assert.ok(twice > 0, "something came twice");
    console.log(`${placed * 2} effects, ${deaths} deaths of workers, ${twice} deliveries came again`);
    await setClock(db, REAL_TIME);
    await runCommand(installation, 0, ["webhooks", "delete", endpoint]);
    await assertInvariants(installation);
  },
);

/** Runs at an even pace; the 95th percentile from the event to the end of its delivery, in milliseconds. */
async function p95(endpoint: string, caller: Caller): Promise<number> {
  const { db } = installation.database;
  const [mark] = await db.query<{ id: string }>(`select coalesce(max(id), '') as id from webhook_event`);
  for (let n = 0; n < 100; n++) {
    await caller.post("/blueprints/list/trigger", { data: "[]" });
    await sleep(150);
  }
  await until("the good one has all", async () => {
    const undelivered = `webhook_delivery where endpoint_id = '${endpoint}' and delivered_at is null`;
    return (await countOf("run where ended_at is null")) === 0 && (await countOf(undelivered)) === 0;
  });
  const [row] = await db.query<{ ms: number }>(
    `select percentile_cont(0.95) within group (order by extract(epoch from delivered_at - occurred_at) * 1000)::float8 as ms
     from webhook_delivery join webhook_event on id = event_id where endpoint_id = $1 and event_id > $2`,
    [endpoint, mark?.id],
  );
  return row?.ms ?? assert.fail("nothing was delivered");
}

test(
  "beside a hanging, a dead and a slow endpoint, the good one's 95th percentile is as alone",
  LONG,
  async () => {
    const service = await installation.serveProcess();
    const caller = openCaller(service.url, await installation.createKey("acme"));
    const good = await create("/good");
    const alone = await p95(good, caller);
    answer = ({ path }) =>
      path === "/hangs" ? null : { status: 204, afterMs: path === "/slow" ? 3_000 : 0 };
    for (const path of ["/hangs", "/slow"]) await create(path);
    await create("/", "http://127.0.0.1:9");
    const beside = await p95(good, caller);
    assert.ok(receiver.at("/hangs").length > 0 && receiver.at("/slow").length > 0);
    console.log(
      `p95 of the good endpoint: ${Math.round(alone)} ms alone, ${Math.round(beside)} ms beside the others`,
    );
    // The worker looks once a second.
    assert.ok(beside < alone + 1_000, `${beside} ms instead of ${alone} ms`);
  },
);
