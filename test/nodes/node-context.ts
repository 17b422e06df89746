import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import type { TestContext } from "node:test";
import { readBlueprint, type BlueprintNode } from "#domain/blueprint.ts";
import type { Json, JsonObject } from "#domain/json.ts";
import { validRecord, type DataRecord, type RecordBatches } from "#domain/record.ts";
import type { Value } from "#domain/value.ts";
import { makeRedactor } from "#engine/redaction/redact.ts";
import { decodeRecords } from "#domain/record-lines.ts";
import { encodeRecords, Scratch } from "#engine/outputs/spool.ts";
import { openTarget } from "#engine/login/target-session.ts";
import { openGate } from "#outbound/gate.ts";
import { openEvaluator } from "#expressions/evaluator.ts";
import { must } from "#lib/assert.ts";
import { Value as Schema } from "typebox/value";
import type { ConfigFinding, Flow, NodeContext } from "#nodes/define-node.ts";
import { nodeTypes } from "#nodes/registry.ts";

/** The service's own expressions, in their threads; one set for a process. */
const evaluator = openEvaluator();

/** The run's own scratch files; one folder for a process. */
const scratch = new Scratch(tmpdir(), `run_nodes${process.pid}`, 1);
process.once("beforeExit", () => void scratch[Symbol.asyncDispose]());

/** As the engine spills, for a run without secrets. */
export function spillTo(files: Scratch): NodeContext["spill"] {
  return async (records) => {
    const reopen = await files.keep(encodeRecords(records, makeRedactor([]), { total: 0, valid: 0 }));
    return () => decodeRecords(reopen());
  };
}

/** A node as `readBlueprint` reads it. */
export function blueprintNode({ edition = 2, ...document }: JsonObject): BlueprintNode {
  const [node] = readBlueprint({
    blueprint: "b",
    account: "a",
    edition,
    nodes: [{ id: "n", ...document }],
  }).nodes;
  return must(node, "node");
}

export interface Seen {
  readonly results: Map<string | null, DataRecord[]>;
  readonly batchSizes: number[];
  readonly slept: number[];
  readonly logged: { readonly message: string; readonly fields: Record<string, unknown> }[];
}

interface Setup {
  readonly from?: readonly Flow[];
  readonly variables?: JsonObject;
  readonly inputs?: { readonly [refKey: string]: Value };
  readonly send?: NodeContext["send"];
  readonly signal?: AbortSignal;
  readonly context?: Partial<NodeContext>;
}

/** Checks a node's config as `apply` does (schema, then `check`), and runs it. */
export async function runNode(
  document: JsonObject,
  setup: Setup = {},
): Promise<{ flow: Flow | null; seen: Seen }> {
  const node = blueprintNode(document);
  const type = must(nodeTypes.get(node.type), node.type);
  const findings = check(document);
  if (findings.length > 0)
    throw new Error(
      `check: ${findings.map(({ path, message }) => `${path.join(".")}: ${message}`).join(" | ")}`,
    );
  const seen: Seen = { results: new Map(), batchSizes: [], slept: [], logged: [] };
  const context: NodeContext = {
    node,
    signal: setup.signal ?? new AbortController().signal,
    from: setup.from ?? [],
    expressions: evaluator.bind(setup.variables ?? {}),
    input: (refKey) => setup.inputs?.[refKey] ?? { form: "absent" },
    send: setup.send ?? (() => Promise.reject(new Error("nothing to send to"))),
    browse: () => Promise.reject(new Error("no browser")),
    keepEvidence: () => Promise.resolve(),
    keepFile: () => Promise.reject(new Error("no disk")),
    turns: null,
    writes: noWrites,
    review: () => Promise.reject(new Error("nobody to ask")),
    takeSlot: () => Promise.resolve(),
    askAgain: () => Promise.resolve(true),
    takeRetry: () => Promise.resolve(true),
    sleep: (ms) => {
      seen.slept.push(ms);
      return Promise.resolve();
    },
    random: () => 0.5,
    writeResult: async (handle, batches) => {
      const records: DataRecord[] = [];
      seen.results.set(handle, records);
      for await (const batch of batches) {
        seen.batchSizes.push(batch.length);
        records.push(...batch);
      }
    },
    spill: spillTo(scratch),
    log: (message, fields = {}) => void seen.logged.push({ message, fields }),
    warn: (why) => void seen.logged.push({ message: `warning: ${why}`, fields: {} }),
    ...setup.context,
  };
  return { flow: await type.run(context, node.config), seen };
}

/** What `apply` would find: the schema's word first, then the type's own check. */
export function check(document: JsonObject): readonly ConfigFinding[] {
  const node = blueprintNode(document);
  const type = must(nodeTypes.get(node.type), node.type);
  const errors = Schema.Errors(type.schema, node.config);
  if (errors.length > 0)
    return errors.map((error) => ({
      path: error.instancePath.split("/").slice(1),
      message: `schema: ${error.message}`,
    }));
  return type.check?.(node.config, node) ?? [];
}

export async function* batches(records: readonly DataRecord[], size = 500): RecordBatches {
  for (let start = 0; start < records.length; start += size) yield records.slice(start, start + size);
}

export function recordFlow(data: readonly JsonObject[], size?: number): Flow {
  return { kind: "records", batches: batches(data.map(validRecord), size) };
}

export const textFlow = (text: string): Flow => ({ kind: "value", value: { form: "text", text } });

/** A stored file, opened in chunks of this many bytes. */
export function fileValue(
  bytes: Uint8Array,
  contentType: string | null = null,
  chunk = 7,
): Extract<Value, { form: "file" }> {
  const open = async function* () {
    for (let start = 0; start < bytes.length; start += chunk) yield bytes.subarray(start, start + chunk);
  };
  return { form: "file", filename: "f", contentType, sizeBytes: bytes.length, open };
}

/** A flow's records; fails for a value. */
export async function recordsOf(flow: Flow | null): Promise<DataRecord[]> {
  if (flow?.kind !== "records") throw new Error("not records");
  return (await Array.fromAsync(flow.batches)).flat();
}

export async function dataOf(flow: Flow | null): Promise<Json[]> {
  return (await recordsOf(flow)).map((record) => record.data);
}

/** A real server on loopback, and a `send` through the real gate that reaches it and nothing else. */
export async function target(
  t: TestContext,
  answer: (request: IncomingMessage & { body: string }, response: ServerResponse, url: URL) => void,
): Promise<{ origin: string; send: NodeContext["send"]; urls: string[] }> {
  const urls: string[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("latin1").on("data", (chunk: string) => (body += chunk));
    request.on("end", () => {
      urls.push(request.url ?? "");
      answer(
        Object.assign(request, { body: Buffer.from(body, "latin1").toString() }),
        response,
        new URL(request.url ?? "/", "http://target"),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => new Promise((resolve) => server.close(resolve).closeAllConnections()));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const gate = openGate({ allow: [new URL(origin).host] });
  t.after(() => gate.close());
  const session = openTarget(gate, [origin], null);
  return { origin, urls, send: (request) => session.send(request, new AbortController().signal) };
}

/** A node that only reads has nothing to write with. */
const unwritten = (): never => {
  throw new Error("this node only reads");
};
const noWrites: NodeContext["writes"] = {
  token: unwritten,
  known: unwritten,
  begin: unwritten,
  commit: unwritten,
  goOn: unwritten,
  send: unwritten,
  finish: unwritten,
  refuse: unwritten,
  ruleOut: unwritten,
  doubt: unwritten,
  askOperator: unwritten,
};
