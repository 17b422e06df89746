// docs/webhooks.md#how-soon, by looks instead of seconds: a worker's chores look when the test says so.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { readDeliveryLag } from "#db/webhooks/webhook-deliveries.ts";
import type { EngineServices } from "#engine/services.ts";
import { systemClock } from "#lib/clock.ts";
import { openGate, type Gate } from "#outbound/gate.ts";
import { Chores } from "#worker/chores.ts";
import { RunPace } from "#worker/run-pace.ts";
import { setClock } from "../clock.ts";
import { until } from "../eventually.ts";
import { install } from "../service.ts";
import { addDue, createEndpoint, openDeliveryServices, startReceiver, type Receiver } from "./stage.ts";

/** Runs that a worker must begin within a second to be busy. */
const MANY_RUNS = 201;

let receiver: Receiver;
let installation: Awaited<ReturnType<typeof install>>;
let gate: Gate;
let chores: Chores;
let pace: RunPace;
/** What is done once a second. */
const work: (() => void)[] = [];
let nowMs = 0;
let held = Promise.withResolvers<void>();

before(async () => {
  receiver = await startReceiver(({ path }) => ({
    status: 204,
    after: path === "/held" ? held.promise : null,
  }));
  installation = await install();
  await installation.apply("account: acme");
  // Nothing becomes older by itself.
  await setClock(installation.database.db, "timestamptz '2026-11-28 12:00:00Z'");
  gate = openGate({ allow: ["127.0.0.1/32"] });
  const clock = {
    ...systemClock,
    now: () => nowMs,
    every: (_ms: number, task: () => void) => {
      work.push(task);
      return () => {};
    },
  };
  // The rest is for chores that nobody calls here.
  const services = { ...(await openDeliveryServices(installation, gate)), clock, mailer: null };
  chores = new Chores(services as unknown as EngineServices, installation.database.db, {
    finishSignIn: async () => {},
    settleLeftTries: async () => {},
  });
  pace = new RunPace(1);
  await chores.start(() => null, pace);
});
beforeEach(() => {
  // Not busy any more.
  nowMs += 60_000;
});
after(async () => {
  await chores?.stop();
  chores?.close();
  await gate?.close();
  await installation?.[Symbol.asyncDispose]();
  await receiver?.close();
});

const look = (): void => {
  for (const each of work) each();
};

const create = async (path: string): Promise<string> =>
  await createEndpoint(installation, receiver.url + path);

const cameTo = (path: string): number => receiver.at(path).length;

/** An endpoint's job is over: its next event needs a look. */
async function isQuiet(endpointId: string): Promise<void> {
  await until(
    "its job is over",
    async () =>
      (
        await installation.database.db.query("select from graphile_worker.jobs where key = $1", [
          `webhooks:${endpointId}`,
        ])
      ).length === 0,
  );
}

test("an event of an endpoint that was quiet is sent by the next look", async () => {
  const id = await create("/quiet");
  for (const sent of [1, 2, 3]) {
    await addDue(installation, id);
    look();
    await until("it has come", () => cameTo("/quiet") === sent);
    await isQuiet(id);
  }
});

test("an event that comes while others are answered is sent by the first look after them", async () => {
  const id = await create("/held");
  await addDue(installation, id);
  look();
  await until("one has come", () => cameTo("/held") === 1);
  await addDue(installation, id);
  look();
  held.resolve();
  await isQuiet(id);
  look();
  await until("the other has come", () => cameTo("/held") === 2);
});

test("a worker whose runs have no processor to spare leaves an event for two seconds", async () => {
  const [both, fresh] = [await create("/both"), await create("/fresh")];
  await addDue(installation, both, 1, "2 s");
  await addDue(installation, both, 1, "1900 ms");
  await addDue(installation, fresh);
  for (let run = 0; run < MANY_RUNS; run++) pace.note(nowMs);
  look();
  await until("what has waited has come", () => cameTo("/both") >= 1);
  await isQuiet(both);
  // After another look, too.
  const later = await create("/later");
  await addDue(installation, later, 1, "2 s");
  look();
  await until("it has come", () => cameTo("/later") === 1);
  await Promise.all([both, fresh, later].map(isQuiet));
  assert.deepEqual([cameTo("/both"), cameTo("/fresh")], [1, 0]);
  nowMs += 2_000;
  look();
  await until("all have come", () => cameTo("/both") === 2 && cameTo("/fresh") === 1);
});

test("runs are told how far behind the events are that are being delivered", async (context) => {
  held = Promise.withResolvers<void>();
  const share = context.mock.method(pace, "share").mock;
  const toldMs = (): number | undefined => share.calls.at(-1)?.arguments[0];
  const id = await create("/held");
  const before = cameTo("/held");
  await addDue(installation, id, 1, "1 minute");
  look();
  await until("it is under way", () => cameTo("/held") === before + 1);
  look();
  assert.equal(toldMs(), 60_000);
  const loopShare = share.calls.at(-1)?.arguments[1] ?? Number.NaN;
  assert.ok(loopShare >= 0 && loopShare <= 1, String(loopShare));
  held.resolve();
  await isQuiet(id);
  look();
  assert.equal(toldMs(), 0);
});

test("the lag is the age of the oldest event that an endpoint which works should have got", async () => {
  const { db } = installation.database;
  assert.equal(await readDeliveryLag(db), 0);
  const [late, failing] = [await create("/late"), await create("/failing")];
  await addDue(installation, late, 1, "3 minutes");
  await addDue(installation, late, 1, "1 minute");
  await addDue(installation, failing, 1, "5 minutes");
  await db.query("update webhook_endpoint set failing_since = app_now() where id = $1", [failing]);
  assert.equal(await readDeliveryLag(db), 180_000);
  look();
  await until("all have come", () => cameTo("/late") === 2 && cameTo("/failing") === 1);
  await Promise.all([late, failing].map(isQuiet));
  assert.equal(await readDeliveryLag(db), 0);
});
