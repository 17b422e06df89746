// docs/webhooks.md#how-it-works: who makes a delivery, and when. Nothing else delivers here.
import assert from "node:assert/strict";
import { after, afterEach, before, test, type TestContext } from "node:test";
import { deliverWebhooks } from "#actions/webhooks/deliver-webhooks.ts";
import {
  claimDeliveries,
  deleteOrphanedDeliveries,
  recordAttempts,
  type AttemptRecord,
  type ClaimedDelivery,
} from "#db/webhooks/webhook-deliveries.ts";
import { insertWorker, listWorkers, takeOverDeadWorkers } from "#db/runs/workers.ts";
import { must } from "#lib/assert.ts";
import { openGate } from "#outbound/gate.ts";
import { moveClock, REAL_TIME, setClock } from "../clock.ts";
import { install } from "../service.ts";
import {
  addDue,
  createEndpoint,
  deliveryJob,
  openDeliveryServices,
  startReceiver,
  type Receiver,
} from "./stage.ts";

const LEASE_MS = 60_000;

let receiver: Receiver;
let installation: Awaited<ReturnType<typeof install>>;

before(async () => {
  receiver = await startReceiver(({ path }) => ({
    // The third batch fails while the fourth is claimed.
    status: path === "/breaks" && receiver.at("/breaks").length > 30 ? 500 : 204,
    afterMs: 10,
  }));
  installation = await install();
  await installation.apply("account: acme");
});
afterEach(async () => await setClock(installation.database.db, REAL_TIME));
after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await receiver?.close();
});

/** An endpoint to which so many events are due. */
async function create(path: string, events: number): Promise<string> {
  const id = await createEndpoint(installation, receiver.url + path);
  await addDue(installation, id, events);
  return id;
}

const claim = async (
  endpointId: string,
  deliveriesMax: number,
  { waitedMs = 0, workerId = null }: { waitedMs?: number; workerId?: string | null } = {},
) =>
  await claimDeliveries(installation.database.db, endpointId, {
    deliveriesMax,
    waitedMs,
    leaseMs: LEASE_MS,
    workerId,
  });

const idsOf = (claimed: Awaited<ReturnType<typeof claim>>): readonly string[] =>
  (claimed?.deliveries ?? []).map(({ id }) => id).toSorted();

const attemptOf = (delivery: ClaimedDelivery, isDelivered: boolean): AttemptRecord => ({
  eventId: delivery.id,
  attempt: delivery.attempt,
  beganAt: delivery.beganAt,
  durationMs: 1,
  status: isDelivered ? 204 : 500,
  failure: null,
  answer: "",
  isDelivered,
  nextInMs: isDelivered ? null : 5_000,
});

interface State {
  readonly attempts: number;
  readonly isDelivered: boolean;
}

const statesOf = async (endpointId: string): Promise<readonly State[]> =>
  await installation.database.db.query<State>(
    `select attempts, delivered_at is not null as "isDelivered" from webhook_delivery where endpoint_id = $1 order by event_id`,
    [endpointId],
  );

test("a delivery has one claim at a time, until it is recorded or the lease ends, and is not written to before", async () => {
  const id = await create("/claims", 5);
  const first = await claim(id, 2);
  const second = await claim(id, 5);
  assert.equal(first?.deliveries.length, 2);
  assert.equal(second?.deliveries.length, 3);
  assert.equal(new Set([...idsOf(first), ...idsOf(second)]).size, 5);
  assert.equal(await claim(id, 5), null);
  const untouched = { attempts: 0, isDelivered: false };
  assert.deepEqual(await statesOf(id), Array<State>(5).fill(untouched));
  const { db } = installation.database;
  await recordAttempts(db, id, second.id, [attemptOf(must(second.deliveries[0], "one was claimed"), true)]);
  // Of the second claim, what was not attempted is due at once; of the first, nothing is.
  assert.deepEqual(idsOf(await claim(id, 5)), idsOf({ ...second, deliveries: second.deliveries.slice(1) }));
  await moveClock(db, "2 minutes");
  const third = await claim(id, 5);
  assert.equal(third?.deliveries.length, 4);
  assert.deepEqual(
    new Set(third.deliveries.map(({ attempt, tries }) => `${attempt} ${tries}`)),
    new Set(["1 1"]),
  );
});

test("what a worker records that has lost its claim does not undo what another one recorded", async () => {
  const id = await create("/late", 1);
  const { db } = installation.database;
  const lost = await claim(id, 1);
  await moveClock(db, "2 minutes");
  const next = await claim(id, 1);
  assert.ok(lost && next);
  await recordAttempts(db, id, next.id, [attemptOf(must(next.deliveries[0], "one was claimed"), true)]);
  await recordAttempts(db, id, lost.id, [attemptOf(must(lost.deliveries[0], "one was claimed"), false)]);
  assert.deepEqual(await statesOf(id), [{ attempts: 1, isDelivered: true }]);
  const attempts = await db.query(`select status from webhook_attempt where endpoint_id = $1`, [id]);
  assert.deepEqual(attempts, [{ status: 204 }]);
});

test("a busy worker leaves an event until it has been due for a while", async () => {
  const id = await create("/yields", 3);
  assert.equal(await claim(id, 3, { waitedMs: 5_000 }), null);
  await moveClock(installation.database.db, "6 seconds");
  assert.equal((await claim(id, 3, { waitedMs: 5_000 }))?.deliveries.length, 3);
});

test("claims end with their worker: what a lost one had claimed is due at once, what a living one has is not", async () => {
  const id = await create("/lost", 6);
  const { db } = installation.database;
  for (const [at, worker] of ["worker_lost", "worker_alive"].entries())
    await insertWorker(db, { id: worker, lockKey: at + 1, hostname: "here", pid: 1 });
  const lost = await claim(id, 2, { workerId: "worker_lost" });
  const alive = await claim(id, 2, { workerId: "worker_alive" });
  const ofNobody = await claim(id, 2);
  assert.deepEqual(
    [lost, alive, ofNobody].map((each) => each?.deliveries.length),
    [2, 2, 2],
  );
  assert.equal(await claim(id, 6), null);
  const seen = (await listWorkers(db)).filter((worker) => worker.id === "worker_lost");
  await takeOverDeadWorkers(db, seen);
  assert.deepEqual(idsOf(await claim(id, 6, { workerId: "worker_alive" })), idsOf(lost));
  // Frozen, it claimed after it was taken over.
  await addDue(installation, id);
  assert.equal((await claim(id, 6, { workerId: "worker_lost" }))?.deliveries.length, 1);
  assert.equal((await claim(id, 6, { workerId: "worker_alive" }))?.deliveries.length, 1);
});

test("housekeeping deletes claims that have ended, and no other", async () => {
  const id = await create("/ended", 2);
  const { db } = installation.database;
  await claim(id, 1);
  await moveClock(db, "2 minutes");
  const open = await claim(id, 2);
  await deleteOrphanedDeliveries(db);
  const left = await db.query(`select id::text from webhook_claim where endpoint_id = $1`, [id]);
  assert.deepEqual(left, [{ id: open?.id }]);
});

async function deliver(context: TestContext, endpointId: string, waitedMs = 0): Promise<void> {
  const gate = openGate({ allow: ["127.0.0.1/32"] });
  context.after(async () => await gate.close());
  const services = await openDeliveryServices(installation, gate);
  await deliverWebhooks(services, deliveryJob(endpointId, { waitedMs: () => waitedMs }));
}

test("a busy worker leaves events until they have been due for the time that it says", async (context) => {
  const id = await create("/waits", 3);
  await deliver(context, id, 60_000);
  assert.equal(receiver.at("/waits").length, 0);
  await moveClock(installation.database.db, "1 minute");
  await deliver(context, id, 60_000);
  assert.equal(receiver.at("/waits").length, 3);
});

test("when an endpoint fails, no delivery that was not attempted stays claimed", async (context) => {
  const id = await create("/breaks", 200);
  await deliver(context, id);
  const { db } = installation.database;
  assert.deepEqual(await db.query(`select 1 from webhook_claim where endpoint_id = $1`, [id]), []);
  const states = await statesOf(id);
  const attempted = states.filter(({ attempts }) => attempts > 0).length;
  assert.equal(attempted, receiver.at("/breaks").length);
  assert.ok(attempted > 30 && attempted < 200, `${attempted} attempts`);
  assert.equal(states.filter(({ isDelivered }) => isDelivered).length, 30);
});

test("an endpoint that answers quickly gets more requests at a time, up to sixty", async (context) => {
  const id = await create("/quick", 600);
  await deliver(context, id);
  const states = await statesOf(id);
  assert.equal(states.filter(({ isDelivered }) => isDelivered).length, 600);
  assert.equal(receiver.at("/quick").length, 600);
  assert.ok(receiver.mostAtOnce > 10 && receiver.mostAtOnce <= 60, `${receiver.mostAtOnce} requests at once`);
});
