// docs/test-mode.md: what one mode made does not exist for the other, in every operation of the API and in both directions.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openApiDocument } from "../../scripts/generate/openapi-document.ts";
import { connect, openCaller, type ApiAnswer, type Caller } from "../caller.ts";
import { BLUEPRINT, DOCUMENTS, STRATEGY } from "../contract/documents.ts";
import { TRIGGER } from "../contract/every-operation.ts";
import { PATIENCE_MS, until } from "../eventually.ts";
import { openStream } from "../events.ts";
import { must } from "#lib/assert.ts";
import { install } from "../service.ts";

/** What one mode has made. */
interface Made {
  readonly key: string;
  readonly caller: Caller;
  readonly session: string;
  readonly embedded: string;
  readonly credential: string;
  readonly run: string;
  readonly runKey: string;
  readonly schedule: string;
}

let installation: Awaited<ReturnType<typeof install>>;
let url: string;
const modes: Record<"live" | "test", Made> = { live: null as never, test: null as never };

const schedule = (credential: string) => ({
  blueprint_key: BLUEPRINT,
  cron: "0 0 * * *",
  time_zone: "UTC",
  trigger: { ...TRIGGER, credential_id: credential },
});

async function make(apiKey: string, name: string): Promise<Made> {
  const caller = openCaller(url, apiKey);
  const done = async (status: number, answer: Promise<ApiAnswer>) => {
    const { status: given, text, body } = await answer;
    assert.equal(given, status, text);
    return body;
  };
  const key = { "idempotency-key": "of-both" };
  const session = await done(201, caller.post("/credential-sessions", { strategy_id: STRATEGY }, key));
  const credential = await connect(caller, STRATEGY, { note: name });
  const embedded = await done(
    201,
    caller.post("/embedded-credential-sessions", {
      origin: "https://app.example.com",
      blueprint_keys: [BLUEPRINT],
    }),
  );
  const run = await done(
    202,
    caller.post(`/blueprints/${BLUEPRINT}/trigger`, { ...TRIGGER, credential_id: credential }),
  );
  await caller.waitForRun(run.id);
  await done(201, caller.put(`/schedules/${name}`, schedule(credential)));
  return {
    key: apiKey,
    caller,
    session: session.id,
    embedded: embedded.id,
    credential,
    run: run.id,
    runKey: run.run_key,
    schedule: name,
  };
}

before(async () => {
  installation = await install();
  await installation.apply(...DOCUMENTS);
  const [live, tests] = [
    await installation.createKey("acme"),
    await installation.createKey("acme", { isTest: true }),
  ];
  assert.match(live, /^lk_[0-9A-Za-z]{38}$/);
  assert.match(tests, /^lk_test_[0-9A-Za-z]{38}$/);
  ({ url } = await installation.serve());
  modes.live = await make(live, "of-live");
  modes.test = await make(tests, "of-test");
});
after(async () => await installation?.[Symbol.asyncDispose]());

type Refusal = readonly [status: number, field?: string];
const UNKNOWN: Refusal = [404];
const UNKNOWN_CREDENTIAL: Refusal = [422, "credential_id"];

/** What an operation answers about what the other mode has made. */
const REFUSED: Readonly<
  Record<string, readonly [refusal: Refusal, call: (caller: Caller, other: Made) => Promise<ApiAnswer>]>
> = {
  readCredentialSession: [
    UNKNOWN,
    async (by, { session }) => await by.get(`/credential-sessions/${session}`),
  ],
  deleteCredential: [UNKNOWN, async (by, { credential }) => await by.delete(`/credentials/${credential}`)],
  triggerBlueprint: [
    UNKNOWN_CREDENTIAL,
    async (by, { credential }) =>
      await by.post(`/blueprints/${BLUEPRINT}/trigger`, { ...TRIGGER, credential_id: credential }),
  ],
  triggerBlueprintBatch: [
    UNKNOWN_CREDENTIAL,
    async (by, { credential }) => {
      const trigger = { ...TRIGGER, credential_id: credential };
      const sent = await by.post(`/blueprints/${BLUEPRINT}/trigger-batch`, { triggers: [{ trigger }] });
      const [answer] = sent.body.answers;
      return { ...sent, status: answer.status, body: answer.body };
    },
  ],
  readRunStatus: [UNKNOWN, async (by, { run }) => await by.get(`/blueprint-runs/${run}/status`)],
  readRunResults: [UNKNOWN, async (by, { runKey }) => await by.get(`/blueprint-runs/${runKey}/results`)],
  readEmbeddedCredentialSession: [
    UNKNOWN,
    async (by, { embedded }) => await by.get(`/embedded-credential-sessions/${embedded}`),
  ],
  cancelRun: [UNKNOWN, async (by, { runKey }) => await by.post(`/blueprint-runs/${runKey}/cancel`)],
  watchRun: [UNKNOWN, async (by, { run }) => await by.get(`/blueprint-runs/${run}/events`)],
  putSchedule: [
    [422, "trigger.credential_id"],
    async (by, { credential }) => await by.put("/schedules/another", schedule(credential)),
  ],
  readSchedule: [UNKNOWN, async (by, other) => await by.get(`/schedules/${other.schedule}`)],
  deleteSchedule: [UNKNOWN, async (by, other) => await by.delete(`/schedules/${other.schedule}`)],
};

/** Operations that name nothing that either mode has made. */
const OTHERS: Readonly<Record<string, string>> = {
  createCredentialSession: "the test of idempotency keys below",
  createEmbeddedCredentialSession: "names Blueprints alone, which both modes have",
  readTriggerSchema: "the test of Blueprints below",
  watchEvents: "the test of events below",
  readTestClock: "test-mode/clock",
  putTestClock: "test-mode/clock",
  readLiveness: "is of no account",
  readReadiness: "is of no account",
};

test("every operation of the API is in one of the tables", () => {
  const operations = Object.values(openApiDocument().paths ?? {}).flatMap((path) =>
    Object.values(path as Record<string, { operationId?: string }>).flatMap(
      ({ operationId }) => operationId ?? [],
    ),
  );
  assert.deepEqual(
    [...Object.keys(REFUSED), ...Object.keys(OTHERS)].toSorted(),
    [...new Set(operations)].toSorted(),
  );
});

for (const [mine, other] of [
  ["live", "test"],
  ["test", "live"],
] as const)
  for (const [operation, [[status, field], call]] of Object.entries(REFUSED))
    test(`a ${mine} key: ${operation} of what a ${other} key has made is ${status}`, async () => {
      const answer = await call(modes[mine].caller, modes[other]);
      assert.equal(answer.status, status, answer.text);
      if (field !== undefined) {
        assert.equal(answer.body.error.type, "validation_error");
        assert.deepEqual(
          answer.body.error.details.map((each: { code: string; field: string }) => [each.code, each.field]),
          [["invalid_input_data", field]],
        );
      }
    });

test('Spec, Idempotency 5: "Keys are scoped to the account", and a test key\'s to its test account', () => {
  assert.notEqual(modes.live.session, modes.test.session);
});

test("a Blueprint has the same key in both modes, and the schema of test mode has its two inputs besides", async () => {
  const keysOf = async ({ caller }: Made) =>
    Object.keys((await caller.get(`/blueprints/${BLUEPRINT}/schema`)).body.properties);
  const [live, tests] = [await keysOf(modes.live), await keysOf(modes.test)];
  assert.deepEqual(tests.filter((key) => !live.includes(key)).toSorted(), ["test_outcome", "test_records"]);
});

test("a Blueprint and a strategy that are applied, changed and retired later are so in test mode, too", async () => {
  const document = (more: string) =>
    `blueprint: later\naccount: acme\n${more}nodes:\n  - { id: given, type: input, refKey: rows, accepts: json }\n  - { id: rows, type: parse, from: given, format: json }\n  - { id: out, type: output, refKey: out, from: rows }`;
  await installation.apply(document(""));
  const { caller } = modes.test;
  const { body } = await caller.post("/blueprints/later/trigger", { rows: [] });
  assert.equal((await caller.waitForRun(body.id)).body.status, "completed");
  await installation.apply(document("metadata: [{ name: order, required: true }]\n"));
  assert.equal((await caller.post("/blueprints/later/trigger", {})).status, 400);
  await installation.apply(document("retired: true\n"));
  assert.equal((await caller.post("/blueprints/later/trigger", {})).status, 404);
});

test("events of one mode do not reach a key of the other", async () => {
  const { live, test: tests } = modes;
  const streams = await Promise.all(
    [live, tests].map(async ({ key }) => await openStream(url, key, "/events")),
  );
  await until("both are connected", () => streams.every((stream) => stream.text() !== ""));
  const runs: string[] = [];
  for (const { caller, credential } of [tests, live]) {
    const body = { ...TRIGGER, credential_id: credential };
    runs.push((await caller.post(`/blueprints/${BLUEPRINT}/trigger`, body)).body.id);
  }
  const [ofTest = "", ofLive = ""] = runs;
  for (const [stream, own, other] of [
    [must(streams[0], "a stream"), ofLive, ofTest],
    [must(streams[1], "a stream"), ofTest, ofLive],
  ] as const) {
    await stream.next(({ type, data }) => type === "run.completed" && data.data.id === own, PATIENCE_MS);
    assert.ok(!stream.text().includes(other));
    stream.close();
  }
});

test("another test key changes nothing of the documents, and renews those that are not what this version derives", async () => {
  const { db } = installation.database;
  const versions = async () =>
    await db.query(
      `select strategy_id as id, version from strategy_version union all select blueprint_id, version from blueprint_version order by 1, 2`,
    );
  const before = await versions();
  await installation.createKey("acme", { isTest: true });
  assert.deepEqual(await versions(), before);
  const testOf = "(select id from account where slug = 'acme:test')";
  const old = await db.query<{ document: string }>(`select document from account where id = ${testOf}`);
  await db.query(
    `update account set document = '{"account":"acme:test"}', concurrency = 1 where id = ${testOf}`,
  );
  await installation.createKey("acme", { isTest: true });
  assert.deepEqual(await db.query(`select document from account where id = ${testOf}`), old);
});
