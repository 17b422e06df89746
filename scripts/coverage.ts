/**
 * `npm run coverage`: every sentence and table row of spec/interface.md, with the tests that cite it. Fails when a testable
 * one has no citation, when a citation names no sentence, or when one that is listed as not testable is cited all the same.
 * `npm run coverage -- --all` prints the whole list. CONTRIBUTING.md, habit 15, has the form of a citation.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { NOT_PROVEN } from "../conformance/not-proven.ts";
import { citationsIn, readCitations, resolveCitation, type Citation } from "./coverage/citations.ts";
import { readSentences, type Sentence } from "./coverage/interface-sentences.ts";
import { NOT_TESTABLE } from "./coverage/not-testable.ts";

const ROOT = join(import.meta.dirname, "..");
const TEXT_WIDTH = 100;

const { values } = parseArgs({ options: { all: { type: "boolean", default: false } } });
const sentences = readSentences(readFileSync(join(ROOT, "spec/interface.md"), "utf8"));
const problems: string[] = [];

function sentenceOf(citation: Citation): Sentence | undefined {
  const resolved = resolveCitation(citation, sentences);
  if ("sentence" in resolved) return resolved.sentence;
  problems.push(`${citation.place}: Spec, ${citation.section}: "${citation.words}": ${resolved.problem}`);
  return undefined;
}

const citing = new Map<Sentence, string[]>();
for (const citation of readCitations(ROOT)) {
  const sentence = sentenceOf(citation);
  if (sentence) citing.set(sentence, [...(citing.get(sentence) ?? []), citation.place]);
}

const reasons = new Map<Sentence, string>();
for (const { citation, reason } of NOT_TESTABLE) {
  for (const parsed of citationsIn(citation, "scripts/coverage/not-testable.ts")) {
    const sentence = sentenceOf(parsed);
    if (!sentence) continue;
    reasons.set(sentence, reason);
    const [place] = citing.get(sentence) ?? [];
    if (place !== undefined)
      problems.push(`${place} cites ${sentence.id}, which not-testable.ts lists: "${reason}"`);
  }
}

// What the black-box suite leaves to the service's own tests must be in them.
for (const { sentence: text } of NOT_PROVEN) {
  for (const parsed of citationsIn(`Spec, ${text}`, "conformance/not-proven.ts")) {
    const sentence = sentenceOf(parsed);
    const isProven = sentence && citing.get(sentence)?.some((place) => place.startsWith("test/"));
    if (sentence && !isProven && !reasons.has(sentence))
      problems.push(`${sentence.id}: no file of test/ cites it`);
  }
}

const uncovered = sentences.filter((sentence) => !citing.has(sentence) && !reasons.has(sentence));
const short = ({ id, text }: Sentence): string =>
  `${id}: ${text.length > TEXT_WIDTH ? `${text.slice(0, TEXT_WIDTH - 1)}…` : text}`;

if (values.all) {
  for (const sentence of sentences) {
    console.log(short(sentence));
    const reason = reasons.get(sentence);
    for (const place of citing.get(sentence) ?? []) console.log(`    ${place}`);
    if (reason !== undefined) console.log(`    not testable: ${reason}`);
  }
  console.log("");
}
for (const problem of problems) console.log(`wrong citation: ${problem}`);
for (const sentence of uncovered) console.log(`uncovered: ${short(sentence)}`);
console.log(
  `${sentences.length} sentences and table rows of the interface: ${citing.size} cited by tests, ` +
    `${reasons.size} not testable, ${uncovered.length} uncovered; ${problems.length} wrong citations.`,
);
process.exitCode = uncovered.length + problems.length > 0 ? 1 : 0;
