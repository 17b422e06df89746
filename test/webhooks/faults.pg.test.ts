// What goes wrong with one delivery or one endpoint stays there: docs/webhooks.md#failures.
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { runCommand } from "../cli/program.ts";
import { until } from "../eventually.ts";
import { install } from "../service.ts";
import { startReceiver, type Answer, type Receiver } from "./stage.ts";

let receiver: Receiver;
let installation: Awaited<ReturnType<typeof install>>;
/** How the receiver answers, by the path. */
const answers = new Map<string, Answer>();

before(async () => {
  receiver = await startReceiver(({ path }) => answers.get(path) ?? { status: 204 });
  installation = await install();
  await installation.apply("account: acme\nallowed_origins: [http://localhost:3000]");
  await installation.serve();
});
afterEach(() => answers.clear());
after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await receiver?.close();
});

/** The id of an endpoint. */
async function create(path: string): Promise<string> {
  const command = ["webhooks", "create", "--account", "acme", `${receiver.url}${path}`, "--json"];
  return JSON.parse((await runCommand(installation, 0, command)).stdout).id;
}

const ping = async (id: string): Promise<unknown> =>
  await runCommand(installation, 0, ["webhooks", "ping", id]);

interface Attempt {
  readonly number: number;
  readonly status: number | null;
  readonly failure: string | null;
  readonly answer: string;
}

const attemptsOf = async (id: string): Promise<readonly Attempt[]> =>
  await installation.database.db.query<Attempt>(
    `select number, status, failure, answer from webhook_attempt where endpoint_id = $1 order by event_id, number`,
    [id],
  );

test("a redirect is a failed attempt: it is not followed", async (context) => {
  const trap = await startReceiver();
  context.after(async () => await trap.close());
  answers.set("/redirects", { status: 307, headers: { location: trap.url } });
  const id = await create("/redirects");
  await ping(id);
  await until("it was tried", async () => (await attemptsOf(id)).some(({ status }) => status === 307));
  assert.equal(trap.connections, 0);
  assert.equal(receiver.at("/redirects").length, 1);
});

test("an event that can't be rendered is a failed attempt, and keeps no other event back", async () => {
  const id = await create("/others");
  const { db } = installation.database;
  // Both are due in the same batch.
  await db.query(
    `with event as (
       insert into webhook_event (id, account_id, type, subject_id, occurred_at, data)
       select new_event_id(), endpoint.account_id, type, 'run_0', app_now(), '{}'
       from webhook_endpoint endpoint, unnest(array['run.completed', 'ping']) type where endpoint.id = $1
       returning id)
     insert into webhook_delivery (endpoint_id, event_id, due_at) select $1, id, app_now() from event`,
    [id],
  );
  const received = (): readonly string[] => receiver.at("/others").map(({ event }) => event.type);
  await until("the other has come", () => received().length === 1);
  assert.deepEqual(received(), ["ping"]);
  await until("both attempts are recorded", async () => (await attemptsOf(id)).length >= 2);
  const [failed] = (await attemptsOf(id)).filter(({ failure }) => failure !== null);
  assert.match(failed?.failure ?? "", /^an error of Latchkey kept the event from being sent \(\w*Error\)/);
  const [endpoint] = await db.query<{ failing: boolean }>(
    `select failing_since is not null as failing from webhook_endpoint where id = $1`,
    [id],
  );
  assert.equal(endpoint?.failing, false, "it is no fault of the endpoint");
});

test("an answer of more than 64 KB counts by its status", async () => {
  const long = "a".repeat(200_000);
  const ids: Record<string, string> = {};
  for (const [path, status] of Object.entries({ "/long": 200, "/long-failure": 500 })) {
    answers.set(path, { status, body: long });
    const id = await create(path);
    ids[path] = id;
    await ping(id);
  }
  for (const [path, status] of Object.entries({ "/long": 200, "/long-failure": 500 })) {
    const id = ids[path] ?? "";
    await until("it was tried", async () => (await attemptsOf(id)).length > 0);
    const wanted = { number: 1, status, failure: null, answer: "a".repeat(1_024) };
    assert.deepEqual((await attemptsOf(id))[0], wanted);
  }
  const delivered = await installation.database.db.query(
    `select 1 from webhook_delivery where endpoint_id = $1 and delivered_at is not null`,
    [ids["/long"]],
  );
  assert.equal(delivered.length, 1);
});

test("an event of an effect that ends while its endpoint is being deleted leaves nothing behind", async () => {
  const [deleted, kept] = [await create("/deleted"), await create("/kept")];
  const { db } = installation.database;
  await db.transaction(async (tx) => {
    const noted = `select note_event(account_id, 'run.completed', 'run_0', '{}') from webhook_endpoint where id = $1`;
    await tx.query(noted, [deleted]);
    await tx.query(
      `insert into webhook_attempt (endpoint_id, event_id, number, began_at, duration_ms, status)
       select id, 'msg_0', 1, app_now(), 1, 200 from webhook_endpoint where id = any($1)`,
      [[deleted, kept]],
    );
    await runCommand(installation, 0, ["webhooks", "delete", deleted]);
  });
  const left = async (table: string): Promise<readonly string[]> =>
    (
      await db.query<{ id: string }>(
        `select distinct endpoint_id as id from ${table} where endpoint_id = any($1)`,
        [[deleted, kept]],
      )
    ).map(({ id }) => id);
  assert.deepEqual((await left("webhook_delivery")).toSorted(), [deleted, kept].toSorted());
  await db.query(`select graphile_worker.add_job('housekeeping')`);
  await until("the deliveries are gone", async () => !(await left("webhook_delivery")).includes(deleted));
  await until("the attempts are gone", async () => !(await left("webhook_attempt")).includes(deleted));
  assert.deepEqual([await left("webhook_delivery"), await left("webhook_attempt")], [[kept], [kept]]);
});

/** Makes pings due, all at once. */
async function pingOften(id: string, times: number): Promise<void> {
  await installation.database.db.query(
    `with event as (
       insert into webhook_event (id, account_id, type, subject_id, occurred_at, data)
       select new_event_id(), account_id, 'ping', id, app_now(), jsonb_build_object('id', id)
       from webhook_endpoint, generate_series(1, $2) where id = $1
       returning id)
     insert into webhook_delivery (endpoint_id, event_id, due_at) select $1, id, app_now() from event`,
    [id, times],
  );
}

test("deliveries of one endpoint are recorded together", async () => {
  const id = await create("/many");
  await pingOften(id, 200);
  await until("all are recorded", async () => (await attemptsOf(id)).length === 200);
  assert.equal(receiver.at("/many").length, 200);
  const [row] = await installation.database.db.query<{ statements: number }>(
    `select count(distinct xmin::text)::int as statements from webhook_attempt where endpoint_id = $1`,
    [id],
  );
  // Ten at a time they would be 20.
  assert.ok((row?.statements ?? 0) < 20, `${row?.statements} statements`);
});

test("what was claimed with a delivery that failed, and not sent, is due again at once, and counts as not attempted", async () => {
  const id = await create("/breaks");
  const good = 10;
  const { db } = installation.database;
  let begun = 0;
  answers.set("/breaks", {
    get status() {
      return ++begun <= good ? 204 : 500;
    },
  });
  // The second batch is of twenty, and ten of them are sent at a time.
  await pingOften(id, 30);
  await until("it fails", async () => (await attemptsOf(id)).some(({ status }) => status === 500));
  await until("each attempt that is counted is recorded", async () => {
    const counted = await db.query(
      `select 1 from webhook_delivery delivery where endpoint_id = $1 and attempts <> (select count(*) from webhook_attempt attempt
         where attempt.endpoint_id = $1 and attempt.event_id = delivery.event_id)`,
      [id],
    );
    return counted.length === 0;
  });
  await runCommand(installation, 0, ["webhooks", "disable", id]);
});
