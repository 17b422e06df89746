/**
 * No file imports itself by way of others. The linter's `import/no-cycle` follows static imports alone; this follows
 * `import()` too. A part of `npm run check`.
 */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { findCircles } from "./circles/find-circles.ts";
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
const circles = findCircles(texts, imports);
for (const circle of circles) console.log(circle.join(" -> "));
console.log(`${texts.size} files, ${circles.length} circles`);
process.exitCode = circles.length > 0 ? 1 : 0;
