import { test } from "node:test";
import assert from "node:assert/strict";
import type { JsonObject } from "#domain/json.ts";
import type { Value } from "#domain/value.ts";
import { checkInput, readInput } from "#nodes/types/input.ts";
import { nodeTypes, loadNodeTypes } from "#nodes/registry.ts";
import { EXPRESSION, TEMPLATE } from "#domain/expression.ts";
import { check, fileValue, runNode } from "./node-context.ts";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const absent: Value = { form: "absent" };
const text = (value: string): Value => ({ form: "text", text: value });
const file = fileValue(Buffer.from("x"));
const codes = (config: JsonObject, value: Value) =>
  checkInput({ refKey: "in", ...config }, value).map(({ code }) => code);

test("an INPUT without required and schema is never refused at the trigger", () => {
  for (const accepts of ["text", "json", "file", "any"]) {
    for (const value of [absent, text("{"), file]) assert.deepEqual(codes({ accepts }, value), []);
  }
});

test("a required INPUT must be there, unless it has a default", () => {
  assert.deepEqual(checkInput({ refKey: "in", required: true }, absent), [
    { field: null, code: "required", message: "`in` is required." },
  ]);
  assert.deepEqual(codes({ required: true }, text("")), []);
  assert.deepEqual(codes({ required: true, default: "x" }, absent), []);
});

test("a file where text or JSON is wanted is refused; a text where a file is wanted is not", () => {
  assert.deepEqual(codes({ required: true, accepts: "text" }, file), ["accepts"]);
  assert.deepEqual(codes({ required: true, accepts: "json" }, file), ["accepts"]);
  assert.deepEqual(codes({ schema: {} }, file), ["accepts"]);
  assert.deepEqual(codes({ required: true, accepts: "file" }, text("inline")), []);
  assert.deepEqual(codes({ required: true, accepts: "file" }, file), []);
  assert.deepEqual(codes({ required: true, accepts: "json" }, text("not json")), ["json"]);
});

test("a schema is checked on the parsed value, and the message names the field", () => {
  const schema = { type: "object", required: ["from"], properties: { from: { format: "date" } } };
  assert.deepEqual(checkInput({ refKey: "period", schema }, text('{"to":1}')), [
    { field: "from", code: "required", message: "`period.from` must have required property 'from'." },
  ]);
  assert.deepEqual(codes({ schema }, text('{"from":"2025-13-01"}')), ["format"]);
  assert.deepEqual(codes({ schema }, text('{"from":"2025-12-01"}')), []);
  assert.deepEqual(codes({ schema }, absent), []);
  assert.deepEqual(codes({ schema, required: true }, absent), ["required"]);
});

test("a string schema takes a plain text, and keeps a code that looks like a number a text", () => {
  const schema = { type: "string", pattern: "^0\\d+$" };
  assert.deepEqual(codes({ schema }, text("0042")), []);
  assert.deepEqual(readInput({ refKey: "in", schema: { type: "string" } }, text("123")), {
    form: "json",
    json: "123",
  });
  assert.deepEqual(readInput({ refKey: "in", schema, accepts: "text" }, text("0042")), text("0042"));
  assert.deepEqual(codes({ schema: { type: "number" }, accepts: "text" }, text("1")), ["type"]);
});

test("with json or a schema the node gives JSON; else the text exactly as it was sent", async () => {
  const run = async (config: JsonObject, value: Value) =>
    (await runNode({ type: "input", refKey: "in", ...config }, { inputs: { in: value } })).flow;
  assert.deepEqual(await run({ accepts: "json" }, text('{"a":[1]}')), {
    kind: "value",
    value: { form: "json", json: { a: [1] } },
  });
  assert.deepEqual(await run({}, text('{"a": 1.0}')), { kind: "value", value: text('{"a": 1.0}') });
  assert.deepEqual(await run({ default: { a: 1 } }, absent), { kind: "value", value: text('{"a":1}') });
  assert.deepEqual(await run({ default: { a: 1 }, accepts: "json" }, absent), {
    kind: "value",
    value: { form: "json", json: { a: 1 } },
  });
  assert.deepEqual(await run({ default: "hello" }, absent), { kind: "value", value: text("hello") });
  assert.deepEqual(await run({}, absent), { kind: "value", value: absent });
  assert.deepEqual(await run({ accepts: "file" }, file), { kind: "value", value: file });
  await assert.rejects(run({ accepts: "json" }, text("{secret")), {
    name: "NodeFailure",
    message: "`in` is not JSON.",
  });
  await assert.rejects(
    run({ accepts: "json" }, text("[".repeat(100_000) + "]".repeat(100_000))),
    /nested deeper/,
  );
});

test("input: check refuses a schema on a file, one that doesn't compile, and a default that breaks its own schema", () => {
  const message = (config: JsonObject) => check({ type: "input", refKey: "in", ...config })[0]?.message ?? "";
  assert.match(message({ accepts: "file", schema: {} }), /file/);
  assert.match(message({ schema: { pattern: "(" } }), /JSON Schema/);
  assert.match(message({ schema: { type: "number" }, default: "x" }), /the default/);
  assert.match(message({ refKey: "" }), /schema/);
  assert.equal(message({ schema: { type: "number" }, default: 4 }), "");
});

test("the registry has every built type, and each annotated schema is closed", () => {
  assert.deepEqual(
    [...nodeTypes.keys()],
    [
      "browser",
      "dedupe",
      "filter",
      "group",
      "http",
      "input",
      "join",
      "loop",
      "map",
      "output",
      "parse",
      "review",
      "sort",
      "validate",
    ],
  );
  for (const type of nodeTypes.values())
    assert.equal((type.schema as { additionalProperties?: unknown }).additionalProperties, false);
  const annotations = (type: string) =>
    JSON.stringify(nodeTypes.get(type)?.schema).match(
      new RegExp(`"(${EXPRESSION}|${TEMPLATE})":"[a-z]+"`, "g"),
    )?.length;
  assert.deepEqual(
    ["filter", "map", "validate", "output", "parse", "http", "loop", "review"].map(annotations),
    [1, 2, 1, 1, 1, 29, 31, 2],
  );
});

test("a node type whose file has another name is refused at start", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "nodes-"));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "one.ts"), `export const node = { type: "two" };`);
  assert.throws(() => loadNodeTypes(folder), /must be in a file named two.ts, not in one.ts/);
});

test("every file of the folder is a node type, and is loaded", () => {
  const folder = new URL("../../src/nodes/types/", import.meta.url);
  assert.deepEqual(
    readdirSync(folder)
      .map((file) => file.replace(/\.ts$/u, ""))
      .sort(),
    [...nodeTypes.keys()].sort(),
  );
});
