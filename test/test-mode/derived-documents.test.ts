// docs/test-mode.md: what is derived for a test account from documents of every kind is itself valid, and reaches the test target alone.
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { test } from "node:test";
import { validateConfig } from "#actions/config/apply-config.ts";
import { formatProblem } from "#domain/config-problem.ts";
import type { JsonObject } from "#domain/json.ts";
import { readBlueprint } from "#domain/blueprint.ts";
import { readStrategy } from "#domain/strategy.ts";
import { testAccountDocument, testBlueprintDocument, testStrategyDocument } from "#domain/test-documents.ts";
import { endpointUrlProblem } from "#domain/webhook.ts";
import { TEST_TARGET_ORIGIN, TEST_VALUES } from "#domain/test-mode.ts";

const root = resolve(import.meta.dirname, "../..");

test("docs/test-mode.md lists every test value", () => {
  const page = readFileSync(`${root}/docs/test-mode.md`, "utf8");
  const rows = Object.entries(TEST_VALUES).map(
    ([value, { at, effect }]) =>
      `| \`${value}\` | ${at === "login" ? "form" : "form or trigger"} | ${effect} |`,
  );
  const [, table = ""] = /<!-- test-values -->\n\n((?:\|.*\n)+)/.exec(page) ?? [];
  assert.deepEqual(table.trimEnd().split("\n").slice(2), rows);
});

/** The examples, and every document of the documentation's pages, in one set each: their names repeat. */
const sets = [
  globSync("examples/{account.yaml,strategies/*.yaml,blueprints/*.yaml}", { cwd: root }).map((file) => ({
    file,
    text: readFileSync(`${root}/${file}`, "utf8"),
  })),
  ["accounts", "strategies", "blueprints"].flatMap((page) =>
    [...readFileSync(`${root}/docs/${page}.md`, "utf8").matchAll(/```yaml\n(.*?)```/gs)].map(
      ([, text = ""], index) => ({ file: `${page} ${index + 1}`, text }),
    ),
  ),
];

/** The colon of a test account's name is what no document may have. */
const renamed = (document: JsonObject): JsonObject => ({
  ...document,
  account: String(document["account"]).replace(/:test$/, "-test"),
});

const DERIVE = {
  account: testAccountDocument,
  strategy: testStrategyDocument,
  blueprint: testBlueprintDocument,
};

test("what is derived from any document is valid and reaches nothing but the test target", () => {
  for (const sources of sets) {
    const { checked, problems } = validateConfig(sources, { anyAccount: true });
    assert.deepEqual(problems, []);
    assert.ok(checked.length > 10);
    const derived = checked.map(({ kind, document }) => DERIVE[kind](document));
    const outcome = validateConfig(
      derived.map((document, index) => ({
        file: `${checked[index]?.file} derived`,
        // No document of an operator may name the test target.
        text: JSON.stringify(renamed(document)).replaceAll(TEST_TARGET_ORIGIN, "https://target.example"),
      })),
      { anyAccount: true },
    );
    assert.deepEqual(outcome.problems.map(formatProblem), []);
    for (const [index, { kind }] of checked.entries()) {
      const document = derived[index] ?? {};
      if (kind === "account") continue;
      const { hosts } = kind === "strategy" ? readStrategy(document) : readBlueprint(document);
      assert.deepEqual(
        hosts.filter((host) => host !== TEST_TARGET_ORIGIN),
        [],
      );
      assert.doesNotMatch(JSON.stringify(document), /client_secret|"issuer"|"schedules"|"webhooks"/);
    }
  }
});

test("a document of an operator that names the test target as a host is refused, whatever its scheme and port", () => {
  const documents = (host: string): readonly string[] => [
    `strategy: strat_it\naccount: acme\nhosts: [${host}]\nfields: [{ key: token, type: password }]\nlogin: { type: bearer, token: token }`,
    `blueprint: it\naccount: acme\nhosts: [${host}]\nnodes:\n  - { id: read, type: http, request: { url: "${host}/me" }, records: $ }\n  - { id: out, type: output, refKey: out, from: read }`,
  ];
  const problemsOf = (text: string): readonly string[] =>
    validateConfig([{ file: "f", text }], { anyAccount: true }).problems.map(formatProblem);
  for (const host of [TEST_TARGET_ORIGIN, "https://target.latchkey.test:8443"])
    for (const text of documents(host)) {
      const [problem = "", ...others] = problemsOf(text);
      assert.match(problem, /hosts\[0\].*is the target of test mode, which only runs of test keys reach/);
      assert.deepEqual(others, []);
    }
  for (const text of documents("https://other.latchkey.test")) assert.deepEqual(problemsOf(text), []);
  const url = `${TEST_TARGET_ORIGIN}/hooks`;
  assert.match(endpointUrlProblem(url) ?? "", /can't be at the target of test mode/);
});

test("inputs, metadata, credentials and results are those of the Blueprint", () => {
  const { checked } = validateConfig(sets.flat(), { anyAccount: true });
  const blueprints = checked.filter(({ kind }) => kind === "blueprint");
  assert.ok(blueprints.length > 10);
  for (const { document } of blueprints) {
    const [live, derived] = [readBlueprint(document), readBlueprint(testBlueprintDocument(document))];
    assert.deepEqual(derived.credentials, live.credentials);
    assert.deepEqual(derived.metadata, live.metadata);
    const keysOf = (of: typeof live, type: string) =>
      of.nodes
        .filter((node) => node.type === type && !node.id.startsWith("test_"))
        .map(({ config }) => [config["refKey"], Object.keys(config["handles"] ?? {})]);
    for (const type of ["input", "output"]) assert.deepEqual(keysOf(derived, type), keysOf(live, type));
  }
});
