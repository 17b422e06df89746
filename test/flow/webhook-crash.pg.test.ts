// Killed workers lose no event, invent none, and what is sent twice has one id.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openCaller } from "../caller.ts";
import { runCommand } from "../cli/program.ts";
import { until } from "../eventually.ts";
import { assertInvariants } from "../invariants.ts";
import { install } from "../service.ts";
import { startReceiver, type Receiver } from "../webhooks/stage.ts";
import { ledger, ledgerDocuments, startTarget, type Target } from "./target.ts";

const RUNS = 12;

let target: Target;
let receiver: Receiver;
let installation: Awaited<ReturnType<typeof install>>;

before(async () => {
  target = await startTarget(ledger);
  receiver = await startReceiver();
  installation = await install();
  await installation.apply(...ledgerDocuments(target.url));
});
after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await target?.close();
  await receiver?.close();
});

test("killed before and after sending, each effect is delivered, and nothing else", async () => {
  const url = `${receiver.url}/hooks`;
  await runCommand(installation, 0, ["webhooks", "create", "--account", "acme", url, "--events", "run.*"]);
  const key = await installation.createKey("acme");
  const { db } = installation.database;
  const finished = async (): Promise<readonly { id: string }[]> =>
    await db.query<{ id: string }>(`select id from run where status = 'completed'`);
  const { url: api } = await installation.serveProcess({}, ["api"]);
  const caller = openCaller(api, key);
  for (const point of ["webhook.before_send=kill:3", "webhook.after_send=kill"]) {
    for (let triggered = 0; triggered < RUNS / 2; triggered++)
      await caller.post("/blueprints/open-list/trigger", {});
    // It may be killed before it is known to be there.
    const worker = await installation
      .serveProcess({ LATCHKEY_FAILPOINTS: point }, ["worker"])
      .catch(() => null);
    await until("it is killed", () => worker === null || worker.child.signalCode === "SIGKILL");
  }
  // What the killed workers had begun is not due again by the time alone.
  const claims = await db.query("update webhook_claim set ends_at = ends_at + interval '1 day' returning 1");
  assert.ok(claims.length > 0);
  await installation.serveProcess({}, ["worker"]);
  await until(
    "no run is under way",
    async () => (await db.query(`select 1 from run where ended_at is null`)).length === 0,
  );
  // Claims end when their workers are known to be dead.
  await until(
    "nothing is left to deliver",
    async () => (await db.query(`select 1 from webhook_delivery where delivered_at is null`)).length === 0,
  );
  const runs = (await finished()).map(({ id }) => id);
  assert.ok(runs.length > 0);
  const ofType = (type: string): ReadonlyMap<string, ReadonlySet<string>> => {
    const ids = new Map<string, Set<string>>();
    for (const { id, event } of receiver.received)
      if (event.type === type) ids.set(event.data.id, (ids.get(event.data.id) ?? new Set()).add(id));
    return ids;
  };
  for (const type of ["run.started", "run.completed"]) {
    assert.deepEqual([...ofType(type).keys()].toSorted(), runs.toSorted(), type);
    for (const [run, ids] of ofType(type)) assert.equal(ids.size, 1, `${type} of ${run} has one id`);
  }
  assert.ok(
    receiver.received.length > new Set(receiver.received.map(({ id }) => id)).size,
    "something came twice",
  );
  await assertInvariants(installation);
});
