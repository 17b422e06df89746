// The habits of CONTRIBUTING.md that the linter watches over: each fails where it is broken.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openScratch, type Scratch } from "./lint-scratch.ts";

let scratch: Scratch;
before(async () => {
  scratch = await openScratch();
});
after(async () => await scratch?.[Symbol.asyncDispose]());

/** One breach of each habit that the linter watches over: file, code, rule. */
const HABITS: readonly [path: string, code: readonly string[], rule: string][] = [
  [
    "src/lib/circle-a.ts",
    [`import { b } from "#lib/circle-b.ts";`, `export const a = () => b();`],
    "no-cycle",
  ],
  ["src/lib/circle-b.ts", [`import { a } from "./circle-a.ts";`, `export const b = () => a();`], "no-cycle"],
  [
    "src/lib/type-a.ts",
    [`import type { B } from "#lib/type-b.ts";`, `export type A = { b: B };`],
    "no-cycle",
  ],
  ["src/lib/type-b.ts", [`import type { A } from "./type-a.ts";`, `export type B = { a?: A };`], "no-cycle"],
  ["src/lib/floating.ts", [`const wait = async (): Promise<void> => {};`, `wait();`], "no-floating-promises"],
  [
    "src/lib/switch.ts",
    [
      `export function f(a: "x" | "y"): void {`,
      `  switch (a) {`,
      `    case "x":`,
      `      return;`,
      `  }`,
      `}`,
    ],
    "switch-exhaustiveness-check",
  ],
  ["src/lib/default.ts", [`export default 1;`], "no-default-export"],
  ["src/lib/any.ts", [`export const a: any = 1;`], "no-explicit-any"],
  ["src/lib/non-null.ts", [`export const f = (a?: string): string => a!;`], "no-non-null-assertion"],
  ["src/lib/inline-type.ts", [`export type A = import("#lib/any.ts").A;`], "consistent-type-imports"],
  [
    "src/lib/long-file.ts",
    Array.from({ length: 401 }, (_, index) => `export const a${index} = 1;`),
    "max-lines",
  ],
  [
    "src/lib/long-function.ts",
    [`export function f(): void {`, ...Array.from({ length: 70 }, () => `  f();`), `}`],
    "max-lines-per-function",
  ],
  [
    "scripts/long-function.ts",
    [`export function f(): void {`, ...Array.from({ length: 70 }, () => `  f();`), `}`],
    "max-lines-per-function",
  ],
  ["src/lib/evaluated.ts", [`export const f = () => eval("1");`], "no-eval"],
  [
    "test/floating.test.ts",
    [`const wait = async (): Promise<void> => {};`, `wait();`],
    "no-floating-promises",
  ],
];

test("the linted habits fail where they are broken", async () => {
  const files = Object.fromEntries(HABITS.map(([path, code]) => [path, code]));
  const findings = await scratch.lint(files, ["--type-aware"]);
  for (const [path, , rule] of HABITS) {
    const rules = findings.filter(({ file }) => file === path).map((finding) => finding.rule);
    assert.ok(
      rules.some((found) => found.endsWith(`(${rule})`)),
      `${path}: wanted ${rule}, found ${rules.join(", ")}`,
    );
  }
});

test("what the habits allow passes: short files, cli output, tests of any length, node:test's promises", async () => {
  const findings = await scratch.lint(
    {
      "src/cli/print.ts": [`export const print = (): void => console.log("a");`],
      "src/lib/full-file.ts": Array.from({ length: 400 }, (_, index) => `export const a${index} = 1;`),
      "src/lib/full-function.ts": [
        `export function f(): void {`,
        ...Array.from({ length: 68 }, () => `  f();`),
        ``,
        `// why`,
        `}`,
      ],
      "test/long.test.ts": [
        `import { test } from "node:test";`,
        `test("a", () => {`,
        ...Array.from({ length: 90 }, () => `  process.exitCode = 0;`),
        `});`,
      ],
    },
    ["--type-aware"],
  );
  assert.deepEqual(findings, []);
});
