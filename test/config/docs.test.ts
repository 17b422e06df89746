import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { TSchema } from "typebox";
import {
  accountSchema,
  blueprintSchema,
  commonLoginKeys,
  commonNodeKeys,
  fieldSchema,
  strategySchema,
} from "#domain/config-schema.ts";
import { formatProblem } from "#domain/config-problem.ts";
import { nodeTypes } from "#nodes/registry.ts";
import { loginTypes } from "#strategies/registry.ts";
import { check } from "./problems-of.ts";

const pages = Object.fromEntries(
  ["accounts", "strategies", "blueprints"].map((name) => [
    name,
    readFileSync(new URL(`../../docs/${name}.md`, import.meta.url), "utf8"),
  ]),
);

test("every YAML example of the documentation is accepted as it stands", () => {
  const examples = Object.entries(pages).flatMap(([name, page]) =>
    [...page.matchAll(/```yaml\n(.*?)```/gs)].map((match, index) => ({
      file: `${name} ${index + 1}`,
      text: match[1] ?? "",
    })),
  );
  const { checked, problems } = check(examples);
  assert.deepEqual(problems, []);
  assert.deepEqual(checked.flatMap(({ warnings }) => warnings).map(formatProblem), []);
  assert.ok(checked.length >= examples.length && examples.length >= 9);
});

/** Every key of a schema, at any depth. */
function* keysOf(schema: unknown): Generator<string> {
  if (Array.isArray(schema)) for (const each of schema) yield* keysOf(each);
  if (typeof schema !== "object" || schema === null) return;
  for (const [key, part] of Object.entries(schema)) {
    if (key === "properties") yield* Object.keys(part as object);
    yield* keysOf(part);
  }
}

const DOCUMENTED: readonly (readonly [page: string, what: string, schemas: readonly TSchema[]])[] = [
  ["accounts", "an account", [accountSchema]],
  ["strategies", "a strategy", [strategySchema, fieldSchema, ...Object.values(commonLoginKeys)]],
  ["strategies", "every login type", [...loginTypes.values()].map(({ schema }) => schema)],
  ["blueprints", "a Blueprint", [blueprintSchema, ...Object.values(commonNodeKeys)]],
  ["blueprints", "every node type", [...nodeTypes.values()].map(({ schema }) => schema)],
];

for (const [page, what, schemas] of DOCUMENTED) {
  test(`docs/${page}.md explains every key of ${what}`, () => {
    const missing = [...new Set(keysOf(schemas))].filter(
      (key) => !new RegExp(`\`[^\`\n]*\\b${key}\\b[^\`\n]*\``).test(pages[page] ?? ""),
    );
    assert.deepEqual(missing, []);
  });
}

test("docs/blueprints.md and docs/strategies.md have a section for every type", () => {
  for (const type of nodeTypes.keys()) assert.ok(pages["blueprints"]?.includes(`### \`${type}\``), type);
  for (const type of loginTypes.keys()) assert.ok(pages["strategies"]?.includes(`### \`${type}\``), type);
});
