// docs/decisions/0030: a published JSON Schema gives editors completion.
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import { parseAllDocuments } from "yaml";
import { configSchema } from "#actions/config/config-schema.ts";
import { nodeTypes } from "#nodes/registry.ts";
import { loginTypes } from "#strategies/registry.ts";

const schema = configSchema();
// Strict: an unknown keyword, or one that stands where it means nothing, is a mistake of ours.
const validate = new Ajv2020({
  allErrors: true,
  strict: true,
  strictTypes: false,
  strictRequired: false,
}).compile(schema);
const problems = (document: unknown): readonly string[] =>
  validate(document) ? [] : (validate.errors ?? []).map((error) => `${error.instancePath} ${error.message}`);

const root = join(import.meta.dirname, "../..");
const texts = [
  ...globSync("examples/**/*.yaml", { cwd: root }).map((file) => readFileSync(join(root, file), "utf8")),
  ...["accounts", "strategies", "blueprints"].flatMap((page) =>
    [...readFileSync(join(root, `docs/${page}.md`), "utf8").matchAll(/```yaml\n(.*?)```/gs)].map(
      (match) => match[1] ?? "",
    ),
  ),
];
const documents: readonly any[] = texts.flatMap((text) =>
  parseAllDocuments(text, { schema: "core" }).flatMap((document) => document.toJS() ?? []),
);

test("every document of the examples and of the documentation satisfies it", () => {
  assert.ok(documents.length >= 12, `${documents.length} documents`);
  for (const document of documents) assert.deepEqual(problems(document), [], JSON.stringify(document));
});

test("a misspelled key is found in every kind of document, node and login", () => {
  const changed = (document: object, change: (copy: any) => void): unknown => {
    const copy = structuredClone(document);
    change(copy);
    return copy;
  };
  let found = 0;
  for (const document of documents) {
    assert.notDeepEqual(problems({ ...document, nmae: "x" }), []);
    for (const index of (document.nodes ?? []).keys()) {
      found += 1;
      assert.notDeepEqual(problems(changed(document, (copy) => (copy.nodes[index].fro = "x"))), []);
    }
    if (document.login)
      assert.notDeepEqual(problems(changed(document, (copy) => (copy.login.cahce = "1m"))), []);
  }
  assert.ok(found > 20);
  assert.notDeepEqual(problems({ blueprint: "x", account: "a", nodes: [{ id: "a", type: "mpa" }] }), []);
  assert.notDeepEqual(problems({}), []);
});

test("it has every built type with its description, and nothing of ours that editors can't read", () => {
  const definitions = schema["$defs"] as Record<string, { description?: string; properties?: object }>;
  for (const { type, description } of nodeTypes.values())
    assert.equal(definitions[`node_${type}`]?.description, description);
  for (const { type, description } of loginTypes.values())
    assert.equal(definitions[`login_${type}`]?.description, description);
  assert.doesNotMatch(JSON.stringify(schema), /"x-[a-z-]+":/);
});
