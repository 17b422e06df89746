/** The operator API as tools of the Model Context Protocol: what is offered, what it does, and what it never shows. */
import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { PassThrough } from "node:stream";
import { after, before, test } from "node:test";
import { createOperatorToken } from "#actions/operators/manage-tokens.ts";
import type { OperatorRole } from "#domain/operator.ts";
import { must } from "#lib/assert.ts";
import { OPERATOR_OPERATIONS } from "../../scripts/generate/operator-operations.ts";
import { serveMcp, type ServerOptions } from "../../sdk/mcp/src/mcp-server.ts";
import { TOOLS } from "../../sdk/mcp/src/tools.ts";
import { readState } from "../audit/installation-state.ts";
import { openCaller, type Caller } from "../caller.ts";
import { eventually } from "../eventually.ts";
import { openOperatorStage, type OperatorStage } from "../operator/stage.ts";

const BLUEPRINT = `blueprint: echo
account: acme
metadata: [{ name: customer }]
nodes:
  - { id: in, type: input, refKey: words }
  - { id: rows, type: parse, from: in, format: json }
  - { id: out, type: output, refKey: words, from: rows }`;
const ASKS = `blueprint: asks
account: acme
nodes:
  - { id: in, type: input, refKey: words }
  - { id: rows, type: parse, from: in, format: json }
  - { id: look, type: review, from: rows, title: Please look }
  - { id: out, type: output, refKey: words, from: look }`;
/** What end users and callers may have in it. */
const PRIVATE = ["Hofbauer", "Logistik", "DE02120300000000202051"];

let stage: OperatorStage;
let caller: Caller;
let failed: string;
let completed: string;
let review: string;
let tokens: Readonly<Record<string, string>>;

async function newToken(role: OperatorRole): Promise<string> {
  const context = { db: stage.db, signing: stage.signing, actor: { kind: "cli" } } as const;
  const request = { name: "assistant", role, lifetimeMs: 3_600_000, accounts: null };
  return (await createOperatorToken(context, request)).token;
}

before(async () => {
  stage = await openOperatorStage();
  await stage.installation.apply("account: acme", BLUEPRINT, ASKS);
  caller = openCaller(stage.service.url, await stage.installation.createKey("acme"));
  const trigger = async (blueprint: string, words: string): Promise<string> => {
    const named = { run_name: "Hofbauer, week 45", customer: "Logistik" };
    return (await caller.post(`/blueprints/${blueprint}/trigger`, { words, ...named })).body.id;
  };
  const record = '[{"iban":"DE02120300000000202051"}]';
  [failed, completed] = [await trigger("echo", "[{"), await trigger("echo", record)];
  await Promise.all([caller.waitForRun(failed), caller.waitForRun(completed)]);
  await trigger("asks", record);
  review = await eventually("a review is open", async () => {
    const rows = await stage.db.query<{ id: string }>("select id from review where status = 'open'");
    return rows[0]?.id;
  });
  tokens = { operator: await newToken("operator"), viewer: await newToken("viewer") };
});
after(async () => await stage?.[Symbol.asyncDispose]());

/** A client with the streams in hand. */
function open(options: Partial<ServerOptions> = {}) {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const token = must(tokens["operator"], "a token");
  const defaults = { url: stage.service.url, token, allowWrites: false, records: false, version: "0.1.0" };
  const ended = serveMcp(input, output, { ...defaults, ...options });
  const lines = createInterface({ input: output })[Symbol.asyncIterator]();
  const all: string[] = [];
  const next = async (): Promise<any> => {
    const line = must((await lines.next()).value, "a line");
    all.push(line);
    return JSON.parse(line);
  };
  let id = 0;
  return {
    input,
    next,
    /** Everything that the client was told. */
    said: () => all.join("\n"),
    ask: async (method: string, params?: object): Promise<any> => {
      input.write(`${JSON.stringify({ jsonrpc: "2.0", id: ++id, method, params })}\n`);
      const answer = await next();
      assert.equal(answer.id, id);
      return answer.error ? { error: answer.error } : answer.result;
    },
    close: async () => {
      input.end();
      await ended;
    },
  };
}

const namesOf = ({ tools }: any): string[] => tools.map(({ name }: any) => name);
const kinds = (...wanted: string[]) =>
  TOOLS.filter(({ kind }) => wanted.includes(kind)).map(({ name }) => name);

/** Arguments with which a tool succeeds. */
const argumentsOf = (name: string): object => {
  const documents = [{ file: "echo.yaml", text: BLUEPRINT }];
  const ARGUMENTS: Readonly<Record<string, object>> = {
    list_runs: { status: "failed", limit: 5 },
    read_run: { runId: failed },
    search: { q: "echo" },
    read_blueprint: { account: "acme", blueprintKey: "echo" },
    read_blueprint_health: { account: "acme", blueprintKey: "echo", days: 7 },
    validate_documents: { documents },
    plan_documents: { documents },
    read_review: { reviewId: review },
    list_review_records: { reviewId: review },
    list_result_records: { runId: completed, resultKey: "words" },
  };
  return ARGUMENTS[name] ?? {};
};

test("the newest revision of the protocol is spoken unless the client asks for an older one", async () => {
  const client = open();
  const begin = async (protocolVersion: string) =>
    (await client.ask("initialize", { protocolVersion, capabilities: {} })).protocolVersion;
  assert.deepEqual(
    [await begin("2025-06-18"), await begin("2024-11-05"), await begin("1999-01-01")],
    ["2025-06-18", "2024-11-05", "2025-11-25"],
  );
  client.input.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  assert.deepEqual(await client.ask("ping"), {});
  await client.close();
});

test("tools that change something and tools that show records are offered only when they are asked for", async () => {
  for (const [options, expected] of [
    [{}, kinds("reads")],
    [{ records: true }, kinds("reads", "records")],
    [{ allowWrites: true }, kinds("reads", "writes")],
  ] as const) {
    const client = open(options);
    assert.deepEqual(namesOf(await client.ask("tools/list")), expected);
    await client.close();
  }
  const client = open();
  for (const [name, flag] of [
    ["cancel_run", "--allow-writes"],
    ["list_result_records", "--records"],
  ] as const) {
    const { error } = await client.ask("tools/call", { name, arguments: { runId: completed } });
    assert.match(error.message, new RegExp(flag));
  }
  await client.close();
});

test("a tool's kind is that of its operation's permission", () => {
  for (const { name, operation, kind } of TOOLS) {
    const { method, permission } = must(
      OPERATOR_OPERATIONS.find(({ id }) => id === operation),
      name,
    );
    const isRecords = ["run.results", "review.records"].includes(permission);
    const isRead = method === "get" || ["checkConfig", "planConfig"].includes(operation);
    assert.equal(kind, isRecords ? "records" : isRead ? "reads" : "writes", name);
  }
});

test("every tool that reads succeeds, changes nothing, as its annotations say, and shows nothing of end users or callers", async () => {
  const client = open();
  const { tools } = await client.ask("tools/list");
  for (const { annotations, inputSchema } of tools) {
    assert.deepEqual([annotations.readOnlyHint, annotations.destructiveHint], [true, false]);
    assert.equal(inputSchema.type, "object");
  }
  const state = await readState(stage.db);
  for (const name of namesOf({ tools })) {
    const result = await client.ask("tools/call", { name, arguments: argumentsOf(name) });
    assert.notEqual(result.isError, true, `${name}: ${JSON.stringify(result)}`);
    assert.ok(result.content[0].text.length > 2, name);
  }
  assert.equal(await readState(stage.db), state);
  for (const text of [...PRIVATE, must(tokens["operator"], "a token").slice(4, 20)])
    assert.equal(client.said().includes(text), false, text);
  assert.match(client.said(), /"failed_node\\":\\"rows/);
  await client.close();
});

test("with --records they show what they have", async () => {
  const client = open({ records: true });
  for (const name of ["list_result_records", "list_review_records"])
    assert.match(
      JSON.stringify(await client.ask("tools/call", { name, arguments: argumentsOf(name) })),
      /DE021203/,
    );
  assert.match(JSON.stringify(await client.ask("tools/call", { name: "list_runs" })), /Hofbauer/);
  await client.close();
});

test("with --allow-writes they change something, and say that they do; the token's role still counts", async () => {
  const client = open({ allowWrites: true });
  const { tools } = await client.ask("tools/list");
  for (const { name, annotations } of tools)
    if (kinds("writes").includes(name))
      assert.deepEqual([annotations.readOnlyHint, annotations.destructiveHint], [false, true], name);
  const call = async (name: string, given: object) =>
    await client.ask("tools/call", { name, arguments: given });
  const documents = [{ file: "echo.yaml", text: `${BLUEPRINT}\nname: By an assistant` }];
  assert.match((await call("apply_documents", { documents })).content[0].text, /"change":"update"/);
  const viewer = open({ allowWrites: true, token: must(tokens["viewer"], "a token") });
  const refused = await viewer.ask("tools/call", { name: "apply_documents", arguments: { documents } });
  assert.equal(refused.isError, true);
  assert.match(refused.content[0].text, /403: The role viewer does not have this permission/);
  assert.match(
    (await call("reject_review", { reviewId: review, reason: "no" })).content[0].text,
    /"rejected"/,
  );
  assert.match((await call("cancel_run", { runId: completed })).content[0].text, /409: /);
  await Promise.all([client.close(), viewer.close()]);
});

test("arguments that are unknown, missing or invalid, and a service that is away, are told to the assistant", async () => {
  const client = open();
  const says = async (name: string, given: object): Promise<string> => {
    const result = await client.ask("tools/call", { name, arguments: given });
    assert.equal(result.isError, true);
    return result.content[0].text;
  };
  assert.match(await says("read_run", {}), /argument runId is missing/);
  assert.match(await says("list_runs", { state: "failed" }), /no argument state. There are: cursor, limit/);
  assert.match(await says("list_runs", { limit: 100_000 }), /^422: /);
  assert.match(await says("read_run", { runId: "../operators" }), /^404: /);
  await client.close();
  const away = open({ url: "http://127.0.0.1:9" });
  const { content } = await away.ask("tools/call", { name: "read_overview" });
  assert.match(content[0].text, /can't be reached/);
  await away.close();
});

test("what is no message of the protocol is refused by its code, and the next one is answered", async () => {
  const client = open();
  const refusal = async (line: string): Promise<unknown> => {
    client.input.write(`${line}\n`);
    return (await client.next()).error.code;
  };
  assert.deepEqual(
    [
      await refusal("{"),
      await refusal("[]"),
      await refusal('{"id":1,"method":"ping"}'),
      await refusal('{"jsonrpc":"2.0","id":1,"method":"resources/list"}'),
      await refusal(`"${"x".repeat(4_200_000)}"`),
    ],
    [-32_700, -32_600, -32_600, -32_601, -32_600],
  );
  assert.equal((await client.ask("tools/call", { name: "nothing" })).error.code, -32_602);
  assert.deepEqual(await client.ask("ping"), {});
  await client.close();
});

test("a cancelled call has no answer, and its request ends", async () => {
  const aborted = Promise.withResolvers<void>();
  const client = open({
    fetch: async (_url, { signal } = {}) =>
      await new Promise<Response>((_, reject) =>
        signal?.addEventListener("abort", () => {
          aborted.resolve();
          reject(new Error("aborted"));
        }),
      ),
  });
  client.input.write(
    '{"jsonrpc":"2.0","id":"slow","method":"tools/call","params":{"name":"read_overview"}}\n',
  );
  client.input.write('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"slow"}}\n');
  await aborted.promise;
  assert.deepEqual(await client.ask("ping"), {}, "the next line is the answer to the next request");
  await client.close();
});
