// docs/webhooks.md#without-a-public-address: an account's events as a stream, and forwarded to a program on this machine.
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { openCaller, type Caller } from "../caller.ts";
import { expectHeldJson } from "../cli/held-surface.ts";
import { latchkey, runCommand, startLatchkey } from "../cli/program.ts";
import { PATIENCE_MS, until } from "../eventually.ts";
import { openStream, type EventStream } from "../events.ts";
import { install, type RunningService } from "../service.ts";
import { isSignedBy, startReceiver, type Receiver } from "./stage.ts";

const LIST = `blueprint: list
account: acme
nodes:
  - { id: data, type: input, refKey: data }
  - { id: rows, type: parse, from: data, format: json }
  - { id: out, type: output, refKey: rows, from: rows }`;

let installation: Awaited<ReturnType<typeof install>>;
let service: RunningService;
let receiver: Receiver;
let caller: Caller;
let key: string;
const opened: EventStream[] = [];

before(async () => {
  receiver = await startReceiver();
  installation = await install();
  await installation.apply("account: acme", "account: other", "account: quiet", LIST);
  service = await installation.serve();
  key = await installation.createKey("acme", { scopes: ["events"] });
  caller = openCaller(service.url, await installation.createKey("acme", { scopes: ["runs"] }));
});
afterEach(() => {
  for (const stream of opened.splice(0)) stream.close();
});
after(async () => {
  await installation?.[Symbol.asyncDispose]();
  await receiver?.close();
});

async function listen(apiKey = key, headers: Record<string, string> = {}): Promise<EventStream> {
  const stream = await openStream(service.url, apiKey, "/events", headers);
  assert.equal(stream.status, 200, stream.text());
  opened.push(stream);
  await until("it is connected", () => stream.text() !== "");
  return stream;
}

const next = async (stream: EventStream, type: string, about: string) =>
  await stream.next((event) => event.type === type && event.data.data.id === about, PATIENCE_MS);

/** The id of a run that has ended. */
async function runOnce(): Promise<string> {
  const { body } = await caller.post("/blueprints/list/trigger", { data: "[]" });
  await caller.waitForRun(body.id);
  return body.id;
}

const total = async (): Promise<number> =>
  (await installation.database.db.query("select 1 from webhook_event")).length;

test("without an endpoint a stream has the account's events as webhooks have them, and no other account's", async () => {
  const before = await runOnce();
  assert.equal(await total(), 0, "nobody listens yet");
  const [stream, others] = [
    await listen(),
    await listen(await installation.createKey("other", { scopes: ["events"] })),
  ];
  const run = await runOnce();
  const event = await next(stream, "run.completed", run);
  assert.match(event.id, /^msg_[0-9a-f]{32}$/);
  assert.deepEqual(Object.keys(event.data), ["type", "timestamp", "data"]);
  assert.deepEqual(event.data.data, (await caller.get(`/blueprint-runs/${run}/status`)).body);
  assert.equal(stream.text().includes(before), false);
  const types = stream.events.map(({ type }) => type);
  assert.deepEqual(types.toSorted(), ["run.completed", "run.started"]);
  assert.deepEqual(others.events, []);
});

test("a client that reconnects misses nothing, and each event comes once to a stream", async () => {
  const first = await listen();
  const seen = await next(first, "run.completed", await runOnce());
  first.close();
  const missed = await runOnce();
  const again = await listen(key, { "last-event-id": seen.id });
  await next(again, "run.completed", missed);
  const later = await runOnce();
  await next(again, "run.completed", later);
  const ids = again.events.map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length);
  assert.deepEqual(new Set(again.events.map(({ data }) => data.data.id)), new Set([missed, later]));
});

test("a transaction that ends after a later one loses no event", async () => {
  const stream = await listen();
  const { db } = installation.database;
  const note = `select note_event(id, 'run.completed', 'run_0', $1) as id from account where slug = 'acme'`;
  const data = { id: "", runKey: "", status: "completed", progressStep: "completed", createdAt: new Date(0) };
  const of = (id: string): string => JSON.stringify({ ...data, id, startedAt: null, endedAt: null });
  await db.transaction(async (tx) => {
    await tx.query(note, [of("early")]);
    await db.query(note, [of("late")]);
    await next(stream, "run.completed", "late");
  });
  const { id: early } = await next(stream, "run.completed", "early");
  const { id: late } = await next(stream, "run.completed", "late");
  assert.ok(early < late);
});

test("a key needs the scope, must not be limited to Blueprints, and its stream ends when it is revoked", async () => {
  const refusal = async (apiKey: string): Promise<readonly [number, string]> => {
    const { status, body } = await openCaller(service.url, apiKey).get("/events");
    return [status, body.error.message];
  };
  const limited = await installation.createKey("acme", { blueprints: ["list"], scopes: ["events"] });
  const [status, message] = await refusal(limited);
  assert.equal(status, 403);
  assert.match(message, /limited to some Blueprints/);
  const revoked = await installation.createKey("acme", { scopes: ["events"] });
  const stream = await listen(revoked);
  const { items } = JSON.parse((await runCommand(installation, 0, ["keys", "list", "--json"])).stdout);
  const newest = items.toSorted((a: any, b: any) => (a.created_at < b.created_at ? 1 : -1))[0];
  await runCommand(installation, 0, ["keys", "revoke", newest.id]);
  await stream.ended;
});

test("`webhooks listen` forwards events, signed, and `webhooks trigger` makes one up, also from another machine", async () => {
  const token = (
    await runCommand(installation, 0, [
      ...["tokens", "create", "--role", "operator", "--name", "there", "--expires", "1h"],
    ])
  ).stdout.trim();
  const forward = `${receiver.url}/forwarded`;
  const words = [
    "webhooks",
    "listen",
    "--forward",
    forward,
    "--events",
    "run.*",
    "--once",
    "run.failed",
    "--json",
  ];
  const listening = startLatchkey(words, { LATCHKEY_URL: service.url, LATCHKEY_API_KEY: key });
  const { db } = installation.database;
  await until("it listens", async () => (await listeners(db)) > 0);
  const remote = { LATCHKEY_URL: service.url, LATCHKEY_TOKEN: token };
  for (const [type, isThere] of [
    ["credential.locked", false],
    ["run.completed", false],
    ["run.failed", true],
  ] as const) {
    const trigger = ["webhooks", "trigger", type, "--account", "acme"];
    const { code, stdout, stderr } = isThere
      ? await latchkey(trigger, remote)
      : await runCommand(installation, 0, trigger);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^Triggered msg_/);
  }
  const { code, stdout, stderr } = await listening.ended;
  assert.equal(code, 0, stderr);
  const secret = /whsec_\S+/.exec(stderr)?.[0] ?? assert.fail(stderr);
  assert.equal((stdout + stderr).includes(key), false);
  const lines = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.deepEqual(
    lines.map(({ type, status, failure }) => [type, status, failure]),
    [
      ["run.completed", 204, null],
      ["run.failed", 204, null],
    ],
  );
  for (const line of lines) expectHeldJson("webhooks listen", line);
  const forwarded = receiver.at("/forwarded");
  assert.deepEqual(
    forwarded.map(({ id }) => id),
    lines.map(({ event_id: id }) => id),
  );
  for (const delivery of forwarded) assert.ok(isSignedBy(secret, delivery));
});

const listeners = async (db: typeof installation.database.db): Promise<number> =>
  (await db.query("select 1 from event_listener where ends_at > app_now() + interval '299 seconds'")).length;

test("what can't be triggered or listened to is refused with the remedy", async () => {
  const refused = async (...words: string[]): Promise<string> =>
    (await runCommand(installation, 1, ["webhooks", ...words])).stderr;
  assert.match(
    await refused("trigger", "run.done", "--account", "acme"),
    /no event "run.done" that could be made up: credential_session/,
  );
  assert.match(
    await refused("trigger", "run.failed", "--account", "quiet"),
    /No enabled endpoint of account "quiet"/,
  );
  const to = ["webhooks", "listen", "--forward", `${receiver.url}/never`];
  const without = await latchkey(to, { LATCHKEY_URL: service.url });
  assert.equal(without.code, 1);
  assert.match(without.stderr, /set LATCHKEY_API_KEY. `latchkey keys create --account NAME --scope events`/);
  const wrong = await latchkey(to, { LATCHKEY_URL: service.url, LATCHKEY_API_KEY: "lk_wrong" });
  assert.match(wrong.stderr, /Missing or invalid API key/);
});
