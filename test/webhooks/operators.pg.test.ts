// docs/webhooks.md#operators: what waits for a person reaches the operators' endpoints, signed; without anything of a person.
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { Webhook } from "standardwebhooks";
import { countWaitingForPeople } from "#db/operators/operator-overview.ts";
import { connect, openCaller, type Caller } from "../caller.ts";
import { runCommand } from "../cli/program.ts";
import { eventually, PATIENCE_MS, until } from "../eventually.ts";
import { openOperatorStage, type OperatorStage } from "../operator/stage.ts";
import { startReceiver, type Receiver, type Received } from "./stage.ts";

let stage: OperatorStage;
let receiver: Receiver;
let caller: Caller;
let status = 204;

before(async () => {
  receiver = await startReceiver(() => ({ status }));
  stage = await openOperatorStage();
  await stage.installation.apply(
    "account: acme",
    "strategy: strat_bank\naccount: acme\nfields: [{ key: token, type: password }]\nlogin: { type: none }",
    `blueprint: asks
account: acme
nodes:
  - { id: data, type: input, refKey: data }
  - { id: list, type: parse, from: data, format: json }
  - { id: look, type: review, from: list, title: "Of Mrs. Canary" }
  - { id: out, type: output, refKey: out, from: look }`,
  );
  caller = openCaller(stage.service.url, await stage.installation.createKey("acme"));
});

afterEach(async () => {
  status = 204;
  await stage.db.query(
    "delete from webhook_attempt; delete from webhook_delivery; delete from webhook_secret; delete from webhook_endpoint; delete from webhook_event",
  );
});

after(async () => {
  await stage?.[Symbol.asyncDispose]();
  await receiver?.close();
});

async function create(path: string, ...words: readonly string[]): Promise<{ id: string; secret: string }> {
  const url = `${receiver.url}${path}`;
  const { stdout } = await runCommand(stage.installation, 0, ["webhooks", "create", url, ...words, "--json"]);
  return JSON.parse(stdout);
}

const arrived = async (path: string, type: string): Promise<Received> =>
  await eventually(type, () => receiver.at(path).find(({ event }) => event.type === type), PATIENCE_MS);

/** A run that waits for a person; gives the ids of run and review. */
async function runInReview(): Promise<{ readonly runId: string; readonly reviewId: string }> {
  const { body } = await caller.post("/blueprints/asks/trigger", {
    data: JSON.stringify([{ name: "Canary", iban: "DE02canary" }]),
    run_name: "canary name",
  });
  const reviewId = await eventually(
    "it waits",
    async () =>
      (await stage.db.query<{ id: string }>("select id from review where run_id = $1", [body.id]))[0]?.id,
    PATIENCE_MS,
  );
  return { runId: body.id, reviewId };
}

test("reviews, uncertain writes, locked credentials and dead endpoints reach the operators' endpoint, signed, with names and links only", async () => {
  const { secret } = await create("/told", "--operators");
  const gone = await create("/gone", "--account", "acme");
  const { runId, reviewId } = await runInReview();
  const review = await arrived("/told", "operator.review_waiting");
  assert.deepEqual(review.event.data, {
    account: "acme",
    blueprint: "asks",
    review_id: reviewId,
    run_id: runId,
    url: `${stage.service.url}/dashboard/reviews/${reviewId}`,
  });
  // The reference library of Standard Webhooks accepts it, and nothing that was changed.
  const headers = Object.fromEntries(
    Object.entries(review.headers).map(([name, value]) => [name, String(value)]),
  );
  const library = new Webhook(secret);
  assert.deepEqual(library.verify(review.body, headers), review.event);
  assert.throws(() => library.verify(review.body.replace("acme", "acmf"), headers), /No matching signature/);
  assert.throws(() => new Webhook(gone.secret).verify(review.body, headers), /No matching signature/);
  const old = String(Number(headers["webhook-timestamp"]) - 301);
  assert.throws(
    () => library.verify(review.body, { ...headers, "webhook-timestamp": old }),
    /timestamp too old/,
  );

  // Several writes of a node that become uncertain together are told once.
  await stage.db.query(
    `insert into run_write (account_id, run_id, node_id, ordinal, epoch, status)
     select account_id, id, 'list', n, 1, 'started' from run, generate_series(0, 2) n where id = $1`,
    [runId],
  );
  await stage.db.query(
    `update run_write set status = 'in_doubt', ended_at = greatest(app_now(), started_at) where run_id = $1`,
    [runId],
  );
  const write = await arrived("/told", "operator.write_uncertain");
  assert.deepEqual(write.event.data, {
    account: "acme",
    blueprint: "asks",
    node: "list",
    run_id: runId,
    url: `${stage.service.url}/dashboard/runs/${runId}`,
  });
  status = 410;
  await runCommand(stage.installation, 0, ["webhooks", "ping", gone.id]);
  await until("the dead endpoint is noticed", async () => {
    const rows = await stage.db.query(
      "select 1 from webhook_endpoint where disabled_reason = 'gone' and id = $1",
      [gone.id],
    );
    status = rows.length > 0 ? 204 : 410;
    return rows.length > 0;
  });
  const counts = async (accounts: readonly string[] | null) => {
    const { reviews, writes, deadWebhooks } = await countWaitingForPeople(stage.db, accounts, false);
    return [reviews, writes, deadWebhooks];
  };
  assert.deepEqual(
    [await counts(null), await counts([])],
    [
      [1, 3, 1],
      [0, 0, 0],
    ],
    "of all accounts, of none",
  );
  const types = await stage.db.query(
    "select type, data from webhook_event where account_id is null order by id",
  );
  assert.deepEqual(
    types.map(({ type }: any) => type),
    ["operator.review_waiting", "operator.write_uncertain", "operator.webhook_disabled"],
  );
  assert.doesNotMatch(JSON.stringify([receiver.at("/told"), types]), /canary/i);
});

test("a locked credential is told once, by what an endpoint subscribes to; an account's events never", async () => {
  await create("/locks", "--operators", "--events", "operator.credential_locked");
  await create("/all", "--operators");
  const credentialId = await connect(caller, "strat_bank", { token: "t" });
  const lock =
    "update credential set login_rejections = 3, login_locked_until = app_now() + interval '1 minute'";
  // An effect that is rolled back has no event.
  await stage.db
    .transaction(async (tx) => {
      await tx.query(lock);
      throw new Error("rolled back");
    })
    .catch(() => undefined);
  await stage.db.query(lock);
  const counts = [null, []].map(async (accounts) => await countWaitingForPeople(stage.db, accounts, true));
  assert.deepEqual(
    (await Promise.all(counts)).map(({ lockedCredentials }) => lockedCredentials),
    [1, 0],
    "of all accounts, and of none",
  );
  for (const path of ["/locks", "/all"]) {
    const { event } = await arrived(path, "operator.credential_locked");
    assert.deepEqual(event.data, {
      account: "acme",
      credential_id: credentialId,
      strategy_id: "strat_bank",
      url: `${stage.service.url}/dashboard/credentials/${credentialId}`,
    });
  }
  await runInReview();
  await arrived("/all", "operator.review_waiting");
  assert.deepEqual(
    new Set(receiver.at("/locks").map(({ event }) => event.type)),
    new Set(["operator.credential_locked"]),
  );
  assert.equal(receiver.at("/locks").length, 1);
});

test("an operators' endpoint is managed like another one, changed, and of no account's operators", async () => {
  const { id } = await create("/managed", "--operators", "--events", "operator.review_waiting");
  const shown = async () =>
    JSON.parse((await runCommand(stage.installation, 0, ["webhooks", "show", id, "--json"])).stdout);
  assert.deepEqual([(await shown()).account, (await shown()).events], [null, ["operator.review_waiting"]]);
  await runCommand(stage.installation, 0, [
    "webhooks",
    "update",
    id,
    "--events",
    "operator.*",
    "--description",
    "Chat",
  ]);
  assert.deepEqual([(await shown()).events, (await shown()).description], [["operator.*"], "Chat"]);
  const wrong = await runCommand(stage.installation, 1, ["webhooks", "update", id, "--events", "run.*"]);
  assert.match(wrong.stderr, /There is no event "run.\*"/);
  await runCommand(stage.installation, 0, ["webhooks", "rotate", id]);
  await runCommand(stage.installation, 0, ["webhooks", "ping", id]);
  await arrived("/managed", "ping");
  assert.ok((await stage.actions(id)).includes("webhook.update"));

  const everyone = await stage.operator("operator");
  const limited = await stage.operator("operator", ["acme"]);
  for (const [someone, sees] of [
    [everyone, true],
    [limited, false],
  ] as const) {
    await stage.giveSecondFactor(someone);
    const browser = await stage.holding(someone);
    const { items } = (await browser.send("GET", "/webhooks")).body;
    assert.equal(
      items.some((each: any) => each.id === id),
      sees,
    );
    const change = await browser.send("POST", `/webhooks/${id}`, { events: ["operator.review_waiting"] });
    assert.equal(change.status, sees ? 204 : 404, change.text);
    const made = await browser.send("POST", "/webhooks", { url: "https://x.example/" });
    assert.equal(made.status, sees ? 201 : 404, made.text);
  }
});

test("an event that can't be rendered leaves its delivery to be seen, with what is known of it", async () => {
  const { id } = await create("/broken", "--account", "acme");
  await stage.db.query("update webhook_endpoint set disabled_at = app_now(), disabled_reason = 'operator'");
  await stage.db.query(
    `with event as (insert into webhook_event (id, account_id, type, subject_id, occurred_at, data)
       select new_event_id(), account_id, 'run.completed', 'run_x', app_now(), '{}' from webhook_endpoint returning id)
     insert into webhook_delivery (endpoint_id, event_id, due_at) select $1, id, app_now() from event`,
    [id],
  );
  const [event] = await stage.db.query<{ id: string }>("select event_id as id from webhook_delivery");
  const eventId = event?.id ?? assert.fail();
  const { stdout, stderr } = await runCommand(stage.installation, 0, ["webhooks", "delivery", id, eventId]);
  assert.match(`${stdout}${stderr}`, /can't be rendered/);
  const browser = await stage.holding(await stage.operator("viewer"));
  const answer = await browser.send("GET", `/webhooks/${id}/deliveries/${eventId}`);
  assert.deepEqual([answer.status, answer.body.body, answer.body.attempts], [200, null, []], answer.text);
});
