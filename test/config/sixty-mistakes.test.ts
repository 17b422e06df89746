// docs/accounts.md#problems: one wrong document refuses the whole set, with every problem listed; the rules are those of docs/decisions/0030.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { test } from "node:test";
import { validateConfig } from "#actions/config/apply-config.ts";
import { readSources } from "#cli/read-sources.ts";
import { formatProblem } from "#domain/config-problem.ts";
import { problemsOf } from "./problems-of.ts";

const FOLDER = join(import.meta.dirname, "fixtures/sixty-mistakes");

test("`validate` lists the sixty mistakes of a folder in one go: none is missing, none is told twice or made up", () => {
  const sources = readSources([FOLDER]).map(({ file, text }) => ({ file: relative(FOLDER, file), text }));
  const { checked, problems } = validateConfig(sources);
  // Each line is the beginning of a message, with its place.
  const expected = readFileSync(join(FOLDER, "expected.txt"), "utf8").trimEnd().split("\n");
  assert.equal(expected.length, 60);
  const told = problems.map(formatProblem);
  assert.deepEqual(
    told.map((line, index) => line.slice(0, expected[index]?.length)),
    expected,
  );
  assert.ok(checked.every(({ file }) => !file.startsWith("blueprint")));
});

test("a misspelt key deep inside a login or a node hides no other mistake of it", () => {
  const strategy = (more: string): string => `account: acme
---
strategy: strat_it
account: acme
hosts: [https://it.example]
fields: [{ key: user, type: text }]
login:
  type: http
  steps:
    - request: { url: /login }
      extract: { csrf: { css: "input[" } }
    - request: { url: /in }
      ${more}
`;
  const selector = "11:31 login.steps[0].extract.csrf.css `input[` is not a CSS selector";
  assert.deepEqual(problemsOf(strategy("expect: { status: [302] }")), [selector]);
  assert.deepEqual(problemsOf(strategy("expct: { status: [302] }")), [
    selector,
    "13:7 login.steps[1].expct unknown key `expct`; did you mean `expect`?",
  ]);
});
