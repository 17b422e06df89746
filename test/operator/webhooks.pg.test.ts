// docs/operator-api.md#webhooks: endpoints and their deliveries by the operator API.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { OPERATOR_OPERATIONS } from "../../scripts/generate/operator-operations.ts";
import { matchesSchema } from "#domain/matches-schema.ts";
import { until } from "../eventually.ts";
import { isSignedBy, startReceiver, type Receiver } from "../webhooks/stage.ts";
import type { Browser, OperatorAnswer } from "./browser.ts";
import { openOperatorStage, type OperatorStage } from "./stage.ts";

let stage: OperatorStage;
let receiver: Receiver;
let browser: Browser;
/** No GET may hold one. */
const secrets: string[] = [];

before(async () => {
  [stage, receiver] = await Promise.all([openOperatorStage(), startReceiver()]);
  await stage.installation.apply("account: acme", "account: globex");
  const admin = await stage.operator("admin");
  await stage.giveSecondFactor(admin);
  browser = await stage.holding(admin);
});
after(async () => {
  await stage?.[Symbol.asyncDispose]();
  await receiver?.close();
});

/** An answer of an operation, compared with its schema when it is good. */
async function ask(id: string, path: string, body?: object): Promise<OperatorAnswer> {
  const operation = OPERATOR_OPERATIONS.find((each) => each.id === id) ?? assert.fail(id);
  const answer = await browser.send(operation.method.toUpperCase(), `/webhooks${path}`, body);
  if (answer.status === operation.status && operation.answer)
    assert.ok(matchesSchema(operation.answer, answer.body), answer.text);
  if (operation.method === "get")
    for (const secret of secrets) assert.ok(!answer.text.includes(secret), answer.text);
  return answer;
}

async function create(path: string): Promise<{ readonly id: string; readonly secret: string }> {
  const { status, text, body } = await ask("createWebhook", "", {
    account: "acme",
    url: receiver.url + path,
  });
  assert.equal(status, 201, text);
  secrets.push(body.secret);
  return body;
}

const logOf = async (id: string, query = "") =>
  (await ask("listWebhookDeliveries", `/${id}/deliveries${query}`)).body;

test("an endpoint is created, listed without its secret, pinged, rotated, and its deliveries come in pages", async () => {
  const { id, secret } = await create("/pages");
  const { items } = (await ask("listWebhooks", "?account=acme")).body;
  assert.deepEqual(
    items.map((each: any) => [each.id, each.url, each.events, each.disabled_at]),
    [[id, `${receiver.url}/pages`, ["*"], null]],
  );
  assert.deepEqual((await ask("listWebhooks", "?account=globex")).body.items, []);

  const pings: string[] = [];
  for (let n = 0; n < 3; n++) pings.unshift((await ask("pingWebhook", `/${id}/ping`)).body.event_id);
  await until("all are delivered", async () => (await logOf(id, "?state=delivered")).items.length === 3);
  assert.ok(receiver.at("/pages").every((delivery) => isSignedBy(secret, delivery)));
  const first = await logOf(id, "?limit=2");
  const second = await logOf(id, `?limit=2&cursor=${first.next_cursor}`);
  assert.equal(second.next_cursor, null);
  const listed: readonly string[] = [...first.items, ...second.items].map((each: any) => each.event_id);
  assert.deepEqual(listed.toSorted(), pings.toSorted());
  assert.deepEqual(listed, listed.toSorted().toReversed(), "newest first");

  const [eventId] = listed;
  const { body: detail } = await ask("readWebhookDelivery", `/${id}/deliveries/${eventId}`);
  assert.equal(JSON.parse(detail.body).type, "ping");
  assert.deepEqual(
    detail.attempts.map(({ number, status }: any) => [number, status]),
    [[1, 204]],
  );
  const rotated = await ask("rotateWebhook", `/${id}/rotate`, { overlap_seconds: 60 });
  assert.equal(rotated.status, 201, rotated.text);
  secrets.push(rotated.body.secret);
  assert.equal((await ask("resendWebhook", `/${id}/deliveries/${eventId}/resend`)).status, 204);
  await until("it has come again", () => receiver.at("/pages").length === 4);
  const again = receiver.at("/pages").at(-1);
  assert.equal(again?.id, eventId);
  for (const each of [secret, rotated.body.secret]) assert.ok(again && isSignedBy(each, again));
});

test("a disabled endpoint is sent nothing until it is enabled, and a deleted one is gone with its log", async () => {
  const { id } = await create("/switched");
  assert.equal((await ask("disableWebhook", `/${id}/disable`)).status, 204);
  for (const refused of [
    await ask("disableWebhook", `/${id}/disable`),
    await ask("pingWebhook", `/${id}/ping`),
    await ask("resendFailedWebhooks", `/${id}/resend-failed`, { since: "2026-01-01" }),
  ])
    assert.equal(refused.status, 409, refused.text);
  assert.equal((await ask("enableWebhook", `/${id}/enable`)).status, 204);
  const { body } = await ask("resendFailedWebhooks", `/${id}/resend-failed`, { since: "2026-01-01" });
  assert.deepEqual(body, { events: 0 });
  assert.equal((await ask("deleteWebhook", `/${id}`)).status, 204);
  assert.equal((await ask("listWebhookDeliveries", `/${id}/deliveries`)).status, 404);
});

test("an endpoint that has moved gets its new URL, and there what has waited for it", async () => {
  const { id, secret } = await create("/moved");
  const endpoint = async (): Promise<any> =>
    (await ask("listWebhooks", "?account=acme")).body.items.find((each: any) => each.id === id);
  const first = (await ask("pingWebhook", `/${id}/ping`)).body.event_id;
  await until("it is delivered", async () => (await endpoint()).recent.delivered === 1);
  assert.notEqual((await endpoint()).last_delivered_at, null);
  assert.equal((await ask("disableWebhook", `/${id}/disable`)).status, 204);
  // One waits.
  await stage.db.query(
    "update webhook_delivery set due_at = app_now(), delivered_at = null where event_id = $1",
    [first],
  );
  assert.deepEqual(
    [(await endpoint()).waiting, (await endpoint()).recent],
    [1, { delivered: 0, given_up: 0 }],
  );
  assert.equal((await ask("updateWebhook", `/${id}`, { url: "http://example.com/" })).status, 422);
  assert.equal((await ask("updateWebhook", `/${id}`, { url: `${receiver.url}/there` })).status, 204);
  const moved = await endpoint();
  assert.deepEqual([moved.url, moved.disabled_reason], [`${receiver.url}/there`, "operator"]);
  assert.equal((await ask("enableWebhook", `/${id}/enable`)).status, 204);
  await until("it has come there", () => receiver.at("/there").length === 1);
  const [delivery] = receiver.at("/there");
  assert.ok(delivery && delivery.id === first && isSignedBy(secret, delivery));
});

test("what is wrong is named, and nothing is created", async () => {
  const { id } = await create("/wrong");
  const total = (await ask("listWebhooks", "")).body.items.length;
  const refusal = async (change: object): Promise<readonly unknown[]> => {
    const { status, body } = await ask("createWebhook", "", {
      account: "acme",
      url: "https://example.com/",
      ...change,
    });
    return [status, body.error.details?.[0]?.field ?? null];
  };
  assert.deepEqual(await refusal({ url: "http://example.com/" }), [422, "url"]);
  assert.deepEqual(await refusal({ account: "nobody" }), [404, null]);
  assert.equal((await refusal({ events: ["run.done"] }))[0], 422);
  assert.equal((await refusal({ events: [] }))[0], 422);
  assert.equal((await ask("listWebhookDeliveries", `/${id}/deliveries?cursor=nothing`)).status, 422);
  assert.equal((await ask("readWebhookDelivery", `/${id}/deliveries/msg_x`)).status, 404);
  assert.equal((await ask("listWebhooks", "")).body.items.length, total);
});
