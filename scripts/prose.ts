/**
 * What people read, as far as a program can judge it: citations and links name what exists (`scripts/prose/citations.ts`), and
 * the words are the field's (`scripts/prose/words.ts`). A part of `npm run check`.
 */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { anchorsIn, checkCitations, checkLinks, interfaceParts, type Citable } from "./prose/citations.ts";
import { readSources } from "./prose/sources.ts";
import { checkWords } from "./prose/words.ts";

const root = dirname(import.meta.dirname);
const sources = readSources(root);
const anchors = new Map(
  sources.filter(({ file }) => file.endsWith(".md")).map(({ file, text }) => [file, anchorsIn(text)]),
);
const citable: Citable = {
  exists: (path) => existsSync(join(root, path)),
  anchorsOf: (page) => anchors.get(page),
  decisions: new Set(
    [...anchors.keys()].flatMap((file) => /^docs\/decisions\/(\d{4})-/.exec(file)?.[1] ?? []),
  ),
  interfaceParts: interfaceParts(readFileSync(join(root, "spec/interface.md"), "utf8")),
};
const findings = sources.flatMap((source) => [
  ...checkCitations(source, citable),
  ...(source.file.endsWith(".md") ? checkLinks(source, citable) : []),
  ...checkWords(source),
]);
for (const { file, line, problem } of findings) console.log(`${file}:${line} ${problem}`);
console.log(`${sources.length} files, ${findings.length} problems`);
process.exitCode = findings.length > 0 ? 1 : 0;
