// docs/metrics.md#traces: one trace from the trigger over the worker to each request to a target, by OpenTelemetry's own SDK.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, beforeEach, test } from "node:test";
import { context, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
} from "@opentelemetry/sdk-trace-base";
import { readTraceparent } from "#lib/tracing.ts";
import { connect, openCaller, type Caller } from "../caller.ts";
import { until } from "../eventually.ts";
import { install, type Installation, type RunningService } from "../service.ts";

const CANARY = "canary-of-a-secret";
const OF_CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const exporter = new InMemorySpanExporter();

let installation: Installation & AsyncDisposable;
let target: Server;
let caller: Caller;
let worker: RunningService;
let credential: string;
/** The `traceparent` of each request that the target got. */
const told: (string | undefined)[] = [];

before(async () => {
  target = createServer((request, response) => {
    told.push(request.headers["traceparent"] as string | undefined);
    response.writeHead(200, { "content-type": "application/json" }).end('{"items":[{"a":1}]}');
  });
  await new Promise<void>((resolve) => target.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(target.address() as AddressInfo).port}`;
  installation = await install();
  await installation.apply(
    "account: acme",
    `strategy: strat_it
account: acme
hosts: ["${origin}"]
fields: [{ key: token, type: password }]
login: { type: http, steps: [{ request: { method: POST, url: /login, form: { token: "{{ $credential.token }}" } } }] }`,
    `blueprint: reads
account: acme
credentials: { it: { strategy: strat_it } }
metadata: [{ name: secret_note }]
nodes:
  - { id: rows, type: http, credential: it, request: { url: "/rows?q=${CANARY}" }, records: items }
  - { id: out, type: output, refKey: out, from: rows }`,
  );
  const api = await installation.serve({}, ["api"]);
  worker = await installation.serve({}, ["worker"]);
  caller = openCaller(api.url, await installation.createKey("acme"));
  credential = await connect(caller, "strat_it", { token: CANARY });
});
after(async () => {
  await installation?.[Symbol.asyncDispose]();
  target?.close();
});
beforeEach(() => {
  told.length = 0;
  exporter.reset();
});

async function run(headers: Readonly<Record<string, string>> = {}): Promise<string> {
  const { body } = await caller.post(
    "/blueprints/reads/trigger",
    { credential_id: credential, secret_note: CANARY },
    headers,
  );
  const { body: ended } = await caller.waitForRun(body.id);
  assert.equal(ended.status, "completed");
  return body.id;
}

const kept = async (id: string): Promise<string | undefined> =>
  (
    await installation.database.db.query<{ traceparent: string }>(
      "select traceparent from run_trace where run_id = $1",
      [id],
    )
  )[0]?.traceparent;

test("a `traceparent` is one of version 00 with ids, and nothing else", () => {
  assert.equal(readTraceparent(OF_CALLER), OF_CALLER);
  for (const wrong of [
    undefined,
    "",
    OF_CALLER.toUpperCase(),
    OF_CALLER.replace("00-", "ff-"),
    `${OF_CALLER}-x`,
    `00-${"0".repeat(32)}-00f067aa0ba902b7-01`,
    `00-4bf92f3577b34da6a3ce929d0e0e4736-${"0".repeat(16)}-01`,
    [OF_CALLER, OF_CALLER],
  ])
    assert.equal(readTraceparent(wrong), null, JSON.stringify(wrong));
});

test("without an SDK nothing is told, and a caller's `traceparent` is kept with the run", async () => {
  assert.equal(await kept(await run({ traceparent: OF_CALLER })), OF_CALLER);
  assert.equal(await kept(await run({ traceparent: "nonsense" })), undefined);
  assert.equal(await kept(await run()), undefined);
  assert.ok(told.length >= 6 && told.every((each) => each === undefined), JSON.stringify(told));
});

test("with an SDK the trigger, the run, its login, its nodes and its requests are one trace, the caller's", async () => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  trace.setGlobalTracerProvider(provider);
  const id = await run({ traceparent: OF_CALLER });
  let spans: readonly ReadableSpan[] = [];
  await until("the run's span has ended", () => {
    spans = exporter.getFinishedSpans();
    return spans.some(({ name }) => name === "run");
  });
  assert.deepEqual([...new Set(spans.map((span) => span.spanContext().traceId))], [OF_CALLER.split("-")[1]]);
  const byId = new Map(spans.map((span) => [span.spanContext().spanId, span]));
  const parentOf = (span: ReadableSpan): string =>
    byId.get(span.parentSpanContext?.spanId ?? "")?.name ?? span.parentSpanContext?.spanId ?? "none";
  assert.deepEqual(spans.map((span) => `${span.name} < ${parentOf(span)}`).toSorted(), [
    "GET < node http",
    "POST /api/v1/blueprints/:blueprintKey/trigger < 00f067aa0ba902b7",
    "POST < login",
    "login < run",
    "node http < run",
    "node output < run",
    "run < POST /api/v1/blueprints/:blueprintKey/trigger",
  ]);
  const request = spans.find(({ name }) => name === "GET");
  assert.deepEqual(
    [request?.attributes["http.response.status_code"], request?.attributes["server.address"]],
    [200, "127.0.0.1"],
  );
  assert.equal(spans.find(({ name }) => name === "run")?.attributes["latchkey.run.id"], id);
  const all = JSON.stringify(
    spans.map(({ name, attributes, events, status }) => ({ name, attributes, events, status })),
  );
  assert.ok(!all.includes(CANARY) && !all.includes("/rows"), all);
  assert.ok(
    told.every((each) => each === undefined),
    "targets are told nothing",
  );
});

test("targets get the `traceparent` of their request's span with LATCHKEY_TRACE_TARGETS", async () => {
  await worker.end();
  worker = await installation.serve({ LATCHKEY_TRACE_TARGETS: "true" }, ["worker"]);
  await run();
  const spans = exporter.getFinishedSpans();
  assert.equal(told.length, 2);
  for (const each of told) {
    const [, traceId, spanId] = (each ?? "").split("-");
    const span = spans.find((one) => one.spanContext().spanId === spanId);
    assert.ok(span !== undefined && span.spanContext().traceId === traceId, each);
    assert.ok(["GET", "POST"].includes(span.name));
  }
});

test("an SDK that `--import` loads before the program is found", () => {
  const setUp = `
    import { trace } from ${JSON.stringify(import.meta.resolve("@opentelemetry/api"))};
    import { BasicTracerProvider, SimpleSpanProcessor, ConsoleSpanExporter } from ${JSON.stringify(import.meta.resolve("@opentelemetry/sdk-trace-base"))};
    trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(new ConsoleSpanExporter())] }));`;
  const program = `
    import { inSpan } from ${JSON.stringify(import.meta.resolve("#lib/tracing.ts"))};
    await inSpan("seen", {}, async () => {});`;
  const output = (...options: readonly string[]): string =>
    execFileSync(process.execPath, [...options, "--input-type=module", "--eval", program], {
      encoding: "utf8",
    });
  assert.equal(output(), "");
  assert.match(output("--import", `data:text/javascript,${encodeURIComponent(setUp)}`), /name: 'seen'/);
});
