// What `npm run check` says of imports: circles, those that the linter does not see among them, and files that nothing needs.
import assert from "node:assert/strict";
import { test } from "node:test";
import { findCircles } from "../scripts/imports/find-circles.ts";
import { findUnreached } from "../scripts/imports/find-unreached.ts";
import { importGraph } from "../scripts/imports/graph.ts";

test("a circle of imports is found whatever its imports are, and with it the way around", () => {
  const aliases = { "#lib/*": "./src/lib/*", "#cli/*": "./src/cli/*" };
  const circlesOf = (files: Readonly<Record<string, string>>): readonly string[] =>
    findCircles(importGraph(new Map(Object.entries(files)), aliases)).map((circle) => circle.join(" "));
  const back = `import { b } from "./b.ts";\nexport const a = b;`;
  const ways = [
    `import { a } from "#lib/a.ts";`,
    `import "#lib/a.ts";`,
    `import type { A } from "./a.ts";`,
    `import {\n  one,\n  type Two,\n} from "./a.ts";`,
    `export * from "../lib/a.ts";`,
    `export const later = async () => await import("./a.ts");`,
    `export const all = () => Promise.all([\n  import(\n    "#lib/a.ts"\n  ),\n]);`,
  ];
  for (const way of ways)
    assert.deepEqual(circlesOf({ "src/lib/a.ts": back, "src/lib/b.ts": way }), [
      "src/lib/a.ts src/lib/b.ts src/lib/a.ts",
    ]);
  assert.deepEqual(circlesOf({ "src/lib/a.ts": back, "src/lib/b.ts": `import { c } from "./c.ts";` }), []);
  assert.deepEqual(circlesOf({ "src/lib/a.ts": `export const self = () => import("./a.ts");` }), [
    "src/lib/a.ts src/lib/a.ts",
  ]);
  // A short circle beside a long one is one finding, and two that do not touch are two.
  const far = { "src/cli/x.ts": `import "./y.ts";`, "src/cli/y.ts": `import "#cli/x.ts";` };
  const long = {
    "src/lib/a.ts": `import "./b.ts";`,
    "src/lib/b.ts": `import "./c.ts";\nimport "./a.ts";`,
    "src/lib/c.ts": `import "./a.ts";`,
  };
  assert.deepEqual(circlesOf({ ...long, ...far }), [
    "src/lib/a.ts src/lib/b.ts src/lib/a.ts",
    "src/cli/x.ts src/cli/y.ts src/cli/x.ts",
  ]);
});

test("a file of src/ that no program, thread or page needs is found, though a test imports it", () => {
  const files = {
    "src/main.mjs": `const { run } = await import("./lib/run.ts");`,
    "src/lib/run.ts": `import type { A } from "#lib/type.ts";\nconst at = new URL("./thread.ts", import.meta.url);`,
    "src/lib/type.ts": `export type A = 1;`,
    "src/lib/thread.ts": `import { part } from "./part.ts";`,
    "src/lib/part.ts": "",
    "src/lib/only-tested.ts": `import "./part.ts";`,
    "test/lib/only-tested.test.ts": `import "#lib/only-tested.ts";`,
  };
  const graph = importGraph(
    new Map(Object.entries(files)),
    { "#lib/*": "./src/lib/*" },
    { withPrograms: true },
  );
  assert.deepEqual(findUnreached(graph), ["src/lib/only-tested.ts"]);
});

test("a registry needs every file of the folder that it loads", () => {
  const graph = importGraph(
    new Map(
      Object.entries({
        "src/nodes/registry.ts": `const folder = new URL("types/", import.meta.url);`,
        "src/nodes/types/map.ts": "",
        "src/nodes/types/parts/row.ts": "",
        "src/nodes/map.ts": "",
      }),
    ),
    {},
    { withPrograms: true },
  );
  assert.deepEqual(graph.get("src/nodes/registry.ts"), ["src/nodes/types/map.ts"]);
});
