/**
 * What the imports of all files say together. No file imports itself by way of others: the linter's `import/no-cycle` follows
 * static imports alone, this follows `import()` too. And no file of `src/` is there for scripts or tests alone. A part of
 * `npm run check`.
 */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { findCircles } from "./imports/find-circles.ts";
import { findUnreached } from "./imports/find-unreached.ts";
import { importGraph } from "./imports/graph.ts";
import { readSources } from "./prose/sources.ts";

const root = dirname(import.meta.dirname);
const { imports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  imports: Record<string, string>;
};
const texts = new Map(
  readSources(root)
    .filter(({ file }) => /\.(?:tsx?|mjs)$/.test(file))
    .map(({ file, text }) => [file, text]),
);
const circles = findCircles(importGraph(texts, imports));
const unreached = findUnreached(importGraph(texts, imports, { withPrograms: true }));
for (const circle of circles) console.log(`circle: ${circle.join(" -> ")}`);
for (const file of unreached)
  console.log(`${file} is nothing that the program needs: move it to scripts/ or test/`);
console.log(`${texts.size} files, ${circles.length} circles, ${unreached.length} files that nothing needs`);
process.exitCode = circles.length + unreached.length > 0 ? 1 : 0;
