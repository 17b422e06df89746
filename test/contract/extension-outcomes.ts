import assert from "node:assert/strict";
import type { Database } from "#db/connection/pool.ts";
import { connect, type ApiAnswer, type Caller } from "../caller.ts";
import { BLUEPRINT, STRATEGY } from "./documents.ts";
import { TRIGGER } from "./every-operation.ts";
import { check, checkRefusal } from "./seen.ts";

/** What the outcomes of our own operations are seen with. */
export interface Scene {
  readonly db: Database;
  readonly url: string;
  readonly callerKey: string;
  readonly caller: Caller;
  readonly stranger: Caller;
  readonly limited: Caller;
  /** With a key of test mode. */
  readonly tester: Caller;
  /** A right trigger with other keys. */
  readonly trigger: (
    body: Readonly<Record<string, unknown>>,
    headers?: Record<string, string>,
  ) => Promise<ApiAnswer>;
}

/** A run is cancelled, once; its events; and their refusals. */
export async function seeCancelAndEvents(scene: Scene): Promise<void> {
  const { db, caller, stranger, limited, trigger } = scene;
  await db.transaction(async (tx) => {
    // While the account's row is locked nothing is admitted: the run waits.
    await tx.query("select 1 from account for no key update");
    const { body: run } = await trigger({});
    const path = `/blueprint-runs/${run.id}/cancel`;
    const key = { "idempotency-key": "cancel-1" };
    checkRefusal("cancelRun", 403, await limited.post(path));
    checkRefusal("cancelRun", 404, await stranger.post(path));
    checkRefusal("cancelRun", 422, await caller.post(path, undefined, { "idempotency-key": "" }), [
      "Idempotency-Key invalid_input_data",
    ]);
    const first = await caller.post(path, { anything: 1 }, key);
    const cancelled = check("cancelRun", 200, first);
    assert.deepEqual([cancelled.status, cancelled.progress_step], ["cancelled", "cancelled"]);
    const replay = await caller.post(path, undefined, key);
    check("cancelRun", 200, replay);
    assert.deepEqual([replay.text, replay.headers.get("idempotent-replay")], [first.text, "true"]);
    checkRefusal("cancelRun", 409, await caller.post(path));
    checkRefusal(
      "cancelRun",
      409,
      await caller.post(`/blueprint-runs/${run.run_key}/cancel`, undefined, key),
      ["Idempotency-Key idempotency_key_reuse"],
    );

    const events = `/blueprint-runs/${run.run_key}/events`;
    const stream = await getText(scene, events);
    check("watchRun", 200, stream);
    const id = /^id: (\d+)$/m.exec(stream.text)?.[1] ?? "";
    check("watchRun", 204, await getText(scene, events, { "last-event-id": id }));
    checkRefusal("watchRun", 403, await limited.get(events));
    checkRefusal("watchRun", 404, await stranger.get(events));
    check("watchEvents", 200, await caller.peek("/events"));
    checkRefusal("watchEvents", 403, await limited.peek("/events"));
  });
}

async function getText(scene: Scene, path: string, headers: Record<string, string> = {}): Promise<ApiAnswer> {
  const response = await fetch(`${scene.url}/api/v1${path}`, {
    headers: { authorization: `Bearer ${scene.callerKey}`, ...headers },
  });
  return { status: response.status, headers: response.headers, text: await response.text(), body: undefined };
}

/** An embedded session: created, replayed, read, refused. */
export async function seeEmbeddedSession({ caller, stranger }: Scene): Promise<void> {
  const path = "/embedded-credential-sessions";
  const body = { origin: "https://app.example.com", blueprint_keys: [BLUEPRINT] };
  const key = { "idempotency-key": "embedded-1" };
  const first = await caller.post(path, body, key);
  const session = check("createEmbeddedCredentialSession", 201, first);
  const replay = await caller.post(path, body, key);
  check("createEmbeddedCredentialSession", 201, replay);
  assert.deepEqual([replay.text, replay.headers.get("idempotent-replay")], [first.text, "true"]);
  check("readEmbeddedCredentialSession", 200, await caller.get(`${path}/${session.id}`));
  checkRefusal("readEmbeddedCredentialSession", 404, await stranger.get(`${path}/${session.id}`));
  const refused = async (
    status: number,
    details: readonly string[],
    given: unknown,
    headers?: Record<string, string>,
  ): Promise<void> =>
    checkRefusal("createEmbeddedCredentialSession", status, await caller.post(path, given, headers), details);
  await refused(409, ["Idempotency-Key idempotency_key_reuse"], { ...body, name: "x" }, key);
  await refused(413, [], { ...body, name: "x".repeat(1_048_576) });
  await refused(415, [], "origin=x", { "content-type": "application/x-www-form-urlencoded" });
  await refused(422, ["origin invalid_input_data"], { ...body, origin: "https://evil.example" });
  await refused(422, ["origin invalid_input_data", "name invalid_input_data"], { name: 1 });
}

/** A schedule: created, replaced, read, refused, deleted. */
async function seeSchedules({ db, caller, stranger, limited }: Scene): Promise<void> {
  const path = "/schedules/nightly";
  const credential = await connect(caller, STRATEGY, { note: "n" });
  const right = { ...TRIGGER, credential_id: credential };
  const body = { blueprint_key: BLUEPRINT, cron: "0 3 * * *", time_zone: "Europe/Berlin", trigger: right };
  assert.equal(check("putSchedule", 201, await caller.put(path, body)).status, "active");
  check("putSchedule", 200, await caller.put(path, { ...body, missed: "all" }));
  assert.equal(check("readSchedule", 200, await caller.get(path)).missed, "all");
  checkRefusal("putSchedule", 403, await limited.put(path, body));
  checkRefusal("readSchedule", 403, await limited.get(path));
  checkRefusal("deleteSchedule", 403, await limited.delete(path));
  checkRefusal("putSchedule", 404, await caller.put("/schedules/%20", body));
  checkRefusal("readSchedule", 404, await stranger.get(path));
  checkRefusal("deleteSchedule", 404, await stranger.delete(path));
  const refused = async (
    status: number,
    details: readonly string[],
    given: unknown,
    headers = {},
  ): Promise<void> => checkRefusal("putSchedule", status, await caller.put(path, given, headers), details);
  await refused(413, [], { ...body, cron: "x".repeat(1_048_576) });
  await refused(415, [], "cron=x", { "content-type": "application/x-www-form-urlencoded" });
  await refused(422, ["cron invalid_input_data"], { ...body, cron: "daily" });
  await refused(422, ["trigger.purchase_order invalid_input_data"], {
    ...body,
    trigger: { credential_id: credential },
  });
  const give = async (isFromDocument: boolean): Promise<unknown> =>
    await db.query("update schedule set is_from_document = $1 where key = 'nightly'", [isFromDocument]);
  await give(true);
  checkRefusal("putSchedule", 409, await caller.put(path, body));
  checkRefusal("deleteSchedule", 409, await caller.delete(path));
  await give(false);
  check("deleteSchedule", 204, await caller.delete(path));
}

/** The test clock: read, moved, refused. */
async function seeTestClock({ caller, tester }: Scene): Promise<void> {
  const path = "/test-clock";
  const { now } = check("readTestClock", 200, await tester.get(path));
  const later = new Date(Date.parse(now) + 60_000).toISOString();
  check("putTestClock", 200, await tester.put(path, { now: later }));
  checkRefusal("readTestClock", 403, await caller.get(path));
  checkRefusal("putTestClock", 403, await caller.put(path, { now: later }));
  checkRefusal("putTestClock", 413, await tester.put(path, { now: "x".repeat(1_048_576) }));
  const form = { "content-type": "application/x-www-form-urlencoded" };
  checkRefusal("putTestClock", 415, await tester.put(path, "now=x", form));
  for (const wrong of ["tomorrow", "2126-01-01T00:00:00Z"])
    checkRefusal("putTestClock", 422, await tester.put(path, { now: wrong }), ["now invalid_input_data"]);
}

async function seeTriggerBatch({ caller, stranger, limited }: Scene): Promise<void> {
  const path = `/blueprints/${BLUEPRINT}/trigger-batch`;
  const credential_id = await connect(caller, STRATEGY, { note: "n" });
  const batch = { triggers: [{ trigger: { ...TRIGGER, credential_id }, priority: 1 }, { trigger: {} }] };
  const { answers } = check("triggerBlueprintBatch", 200, await caller.post(path, batch));
  assert.deepEqual(
    (answers as readonly { status: number }[]).map(({ status }) => status),
    [202, 400],
  );
  checkRefusal("triggerBlueprintBatch", 403, await limited.post(path, batch));
  checkRefusal("triggerBlueprintBatch", 404, await stranger.post(path, batch));
  checkRefusal("triggerBlueprintBatch", 413, await caller.post(path, { triggers: ["x".repeat(5_242_880)] }));
  const form = { "content-type": "application/x-www-form-urlencoded" };
  checkRefusal("triggerBlueprintBatch", 415, await caller.post(path, "triggers=x", form));
  checkRefusal("triggerBlueprintBatch", 422, await caller.post(path, {}), ["triggers invalid_input_data"]);
}

/** The operations on schedules, on the test clock, and on the schema of a trigger. */
export async function seeTriggerSchema(scene: Scene): Promise<void> {
  await seeTestClock(scene);
  await seeSchedules(scene);
  await seeTriggerBatch(scene);
  const { caller, stranger, limited } = scene;
  const schema = check("readTriggerSchema", 200, await caller.get(`/blueprints/${BLUEPRINT}/schema`));
  assert.deepEqual(schema.required, ["purchase_order"]);
  checkRefusal("readTriggerSchema", 403, await limited.get(`/blueprints/${BLUEPRINT}/schema`));
  checkRefusal("readTriggerSchema", 404, await stranger.get(`/blueprints/${BLUEPRINT}/schema`));
}

export async function seeIgnoredKeys({ caller, trigger }: Scene): Promise<void> {
  const ask = { prefer: "report-ignored-keys", "idempotency-key": "ignored-1" };
  const accepted = await trigger({ odd: 1 }, ask);
  check("triggerBlueprint", 202, accepted);
  assert.equal(accepted.headers.get("ignored-keys"), "odd");
  const refused = await trigger({ purchase_order: null, purchase_ordr: 1 }, { prefer: ask.prefer });
  checkRefusal("triggerBlueprint", 400, refused, ["purchase_order invalid_input_data"]);
  assert.equal(refused.headers.get("ignored-keys"), "purchase_ordr");
  const another = await trigger({}, ask);
  checkRefusal("triggerBlueprint", 409, another, ["Idempotency-Key idempotency_key_reuse"]);
  assert.equal(another.headers.get("preference-applied"), "report-ignored-keys");
  const session = await caller.post(
    "/credential-sessions",
    { strategy_id: STRATEGY, returnUrl: "x" },
    { prefer: ask.prefer },
  );
  check("createCredentialSession", 201, session);
  assert.equal(session.headers.get("ignored-keys"), "returnUrl");
}

/** Of a key for runs alone; whether a resource exists is not told. */
export async function seeScopes({ caller, limited }: Scene): Promise<void> {
  const made = await caller.post("/credential-sessions", { strategy_id: STRATEGY });
  checkRefusal("createCredentialSession", 403, await limited.post("/credential-sessions", {}));
  checkRefusal("readCredentialSession", 403, await limited.get(`/credential-sessions/${made.body.id}`));
  checkRefusal(
    "deleteCredential",
    403,
    await limited.delete("/credentials/cred_0000000000000000000000000000"),
  );
  checkRefusal(
    "createEmbeddedCredentialSession",
    403,
    await limited.post("/embedded-credential-sessions", {}),
  );
  const embedded = "/embedded-credential-sessions/ecs_0000000000000000000000000000";
  checkRefusal("readEmbeddedCredentialSession", 403, await limited.get(embedded));
}
