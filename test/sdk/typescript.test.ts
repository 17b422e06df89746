/** The TypeScript SDK without a service: that it reaches every operation, what it repeats, and how it reads. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import fc from "fast-check";
import {
  ApiError,
  ConnectionError,
  Latchkey,
  RateLimitError,
  type OutputRecord,
} from "../../sdk/typescript/src/latchkey.ts";
import { readRecords } from "../../sdk/typescript/src/read-records.ts";
import { readEvents } from "../../sdk/typescript/src/server-events.ts";

interface Sent {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** A client whose requests are answered by `answer`, in the test's own process. */
function openClient(answer: (sent: Sent, count: number) => Response | Promise<Response>, maxRetries = 3) {
  const sent: Sent[] = [];
  const latchkey = new Latchkey({
    apiKey: "lk_a_secret",
    baseUrl: "https://connect.example.com/",
    maxRetries,
    fetch: async (url, init = {}) => {
      const { method = "GET", headers, signal } = init;
      assert.ok(signal);
      sent.push({ method, url: String(url), headers: headers as Record<string, string>, signal });
      return await answer(sent.at(-1) as Sent, sent.length);
    },
  });
  return { latchkey, sent };
}

const refusal = (status: number, headers: Record<string, string> = {}): Response =>
  Response.json({ error: { type: "internal_error", message: "no" } }, { status, headers });

test("every operation of the contract is reached, with its method and path", async () => {
  const { latchkey, sent } = openClient(({ method, url }) => {
    if (method === "DELETE" || url.endsWith("/events")) return new Response(null, { status: 204 });
    return Response.json({ id: "x", status: "completed" });
  });
  await latchkey.credentialSessions.create({ strategy_id: "strat_x" });
  await latchkey.credentialSessions.read("{id}");
  await latchkey.credentials.delete("{credentialId}");
  await latchkey.blueprints.trigger("{blueprintKey}");
  await latchkey.blueprints.triggerBatch("{blueprintKey}", { triggers: [{}] });
  await latchkey.blueprints.readSchema("{blueprintKey}");
  await latchkey.runs.readStatus("{runId}");
  await latchkey.runs.readResults("{runId}");
  await latchkey.runs.cancel("{runId}");
  for await (const _ of latchkey.runs.watch("{runId}"));
  await latchkey.schedules.put("{scheduleKey}", { blueprint_key: "b", cron: "0 3 * * *", time_zone: "UTC" });
  await latchkey.schedules.read("{scheduleKey}");
  await latchkey.schedules.delete("{scheduleKey}");
  await latchkey.testClock.read();
  await latchkey.testClock.put({ now: "2027-01-31T08:00:00.000Z" });
  await latchkey.embeddedCredentialSessions.create({ origin: "https://app.example.com" });
  await latchkey.embeddedCredentialSessions.read("{id}");
  for await (const _ of latchkey.events.watch());
  await latchkey.readLiveness();
  await latchkey.readReadiness();
  const contract = JSON.parse(readFileSync(new URL("../../openapi/openapi.json", import.meta.url), "utf8"));
  const expected = Object.entries<any>(contract.paths).flatMap(([path, item]) =>
    Object.keys(item)
      .filter((method) => item[method].operationId !== undefined)
      .map((method) => `${method.toUpperCase()} ${item.servers ? "" : "/api/v1"}${path}`),
  );
  const reached = sent.map(({ method, url }) => `${method} ${decodeURIComponent(new URL(url).pathname)}`);
  assert.deepEqual(reached.toSorted(), expected.toSorted());
});

test("what may pass is repeated with one key; what may not is not; a long Retry-After is the caller's", async () => {
  const busy = openClient((_, count) =>
    count < 3 ? refusal(503, { "retry-after": "0" }) : Response.json({ id: "x" }),
  );
  await busy.latchkey.runs.cancel("run_x");
  assert.equal(busy.sent.length, 3);
  assert.equal(new Set(busy.sent.map(({ headers }) => headers["Idempotency-Key"])).size, 1);

  const gone = openClient(() => Promise.reject(new TypeError("fetch failed")), 1);
  await assert.rejects(gone.latchkey.runs.readStatus("run_x"), ConnectionError);
  assert.equal(gone.sent.length, 2);

  const invalid = openClient(() => refusal(422));
  await assert.rejects(invalid.latchkey.blueprints.trigger("b"), ApiError);
  assert.equal(invalid.sent.length, 1);

  const limited = openClient(() => refusal(429, { "retry-after": "3600" }));
  await assert.rejects(limited.latchkey.runs.readStatus("run_x"), RateLimitError);
  assert.equal(limited.sent.length, 1);

  const hanging = openClient(
    async ({ signal }) =>
      await new Promise((_, reject) =>
        signal.addEventListener("abort", () => reject(signal.reason as Error)),
      ),
  );
  const ended = new AbortController();
  const pending = hanging.latchkey.runs.readStatus("run_x", { signal: ended.signal });
  ended.abort(new Error("the user left"));
  await assert.rejects(pending, /the user left/);
  await assert.rejects(
    hanging.latchkey.runs.readStatus("run_x", { timeoutMs: 5, maxRetries: 0 }),
    (error) => error instanceof ConnectionError && String(error.cause).includes("No response after 5 ms"),
  );

  const moved = openClient(
    () => new Response(null, { status: 301, headers: { location: "https://b.example/x" } }),
  );
  await assert.rejects(
    moved.latchkey.runs.readStatus("run_x"),
    /redirects to https:\/\/b\.example: use that URL/,
  );
  assert.equal(moved.sent.length, 1);
});

test("records are found whatever they hold, however they are cut, and wherever the array stands", async () => {
  const data = fc.dictionary(fc.string(), fc.jsonValue());
  const record = fc.record({ data, errors: fc.constant([]), isValid: fc.boolean() });
  const property = fc.asyncProperty(
    fc.array(record, { maxLength: 4 }),
    fc.dictionary(
      fc.string().filter((name) => name !== "records" && name !== "__proto__"),
      fc.jsonValue(),
    ),
    fc.integer({ min: 1, max: 7 }),
    async (records, others, size) => {
      const bytes = Buffer.from(JSON.stringify({ ...others, records, totalRecords: records.length }));
      const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) =>
        bytes.subarray(n * size, (n + 1) * size),
      );
      const found: OutputRecord<unknown>[] = [];
      for await (const each of readRecords(inTurn(chunks))) found.push(each);
      assert.deepEqual(found, JSON.parse(JSON.stringify(records)));
      await assert.rejects(async () => {
        for await (const _ of readRecords(inTurn(chunks.slice(0, -1))));
      }, /ended before its last record/);
    },
  );
  await fc.assert(property, { numRuns: 200 });
});

async function* inTurn(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

test("events are read as the HTML Standard says, and a stream that is cut goes on after its last event", async () => {
  const run = (status: string): string => `data: {"id":"run_x",\ndata: "status":"${status}"}\n\n`;
  const encoded = new TextEncoder().encode(
    `: hello\r\n\r\nevent: status\nid: 4\n${run("queued")}retry: 5\nid\n${run("é")}`,
  );
  const bytes = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const byte of encoded) controller.enqueue(Uint8Array.of(byte));
      controller.close();
    },
  });
  const events = [];
  for await (const { id, data } of readEvents<{ status: string }>(bytes)) events.push([id, data.status]);
  assert.deepEqual(events, [
    ["4", "queued"],
    ["", "é"],
  ]);

  const watched = openClient(({ headers }) =>
    headers["Last-Event-ID"] === "1"
      ? new Response(`id: 2\n${run("completed")}`)
      : new Response(`id: 1\n${run("running")}`),
  );
  const states = [];
  for await (const state of watched.latchkey.runs.watch("run_x")) states.push(state.status);
  assert.deepEqual(states, ["running", "completed"]);

  // Where streams are refused, the status is polled.
  const polled = openClient(({ url }) =>
    url.endsWith("/events")
      ? refusal(429, { "retry-after": "3600" })
      : Response.json({ id: "run_x", status: "failed" }),
  );
  assert.equal((await polled.latchkey.runs.waitFor("run_x")).status, "failed");
});
