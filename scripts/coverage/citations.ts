import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { plainText, type Sentence } from "./interface-sentences.ts";

/** `Spec, <Section>[ <rule>]: "<words>"` in a test: the words stand in one sentence or row of that section. */
export interface Citation {
  /** `test/api/x.test.ts:12`. */
  readonly place: string;
  /** As written, folded. */
  readonly section: string;
  readonly words: string;
}

/** Where a citation counts: in what can fail. */
const CITING = ["test/**/*.test.ts", "test/**/*.e2e.ts", "conformance/sections/*.ts"];
const FORM = /Spec, ([^":\n]+): "([^"\n]+)"/g;

export function readCitations(root: string): readonly Citation[] {
  const files = globSync(CITING, { cwd: root }).toSorted();
  return files.flatMap((file) =>
    readFileSync(join(root, file), "utf8")
      .split("\n")
      .flatMap((line, index) => citationsIn(line, `${file}:${index + 1}`)),
  );
}

/** The citations of one line of source: an apostrophe or a quote may be escaped in it. */
export function citationsIn(line: string, place: string): readonly Citation[] {
  return [...line.replaceAll(/\\(['"])/g, "$1").matchAll(FORM)].map(([, section = "", words = ""]) => ({
    place,
    section: plainText(section),
    words: plainText(words),
  }));
}

/** What a citation names: one sentence, or why it names none. */
export type Resolution = { readonly sentence: Sentence } | { readonly problem: string };

export function resolveCitation({ section, words }: Citation, sentences: readonly Sentence[]): Resolution {
  // `Idempotency 4`: the number of a rule, unless a heading ends with it.
  const numbered = /^(.+) (\d+)$/.exec(section);
  const exact = sentences.filter((sentence) => sentence.section === section);
  const inSection =
    exact.length > 0 || !numbered
      ? exact
      : sentences.filter(({ section: name, rule }) => name === numbered[1] && rule === Number(numbered[2]));
  if (inSection.length === 0) return { problem: "the interface has no such section or rule" };
  const found = inSection.filter((sentence) => sentence.text.includes(words));
  const [sentence] = found;
  if (!sentence) return { problem: "no sentence of that section has these words" };
  if (found.length > 1)
    return { problem: `${found.length} sentences of that section have these words; quote more` };
  return { sentence };
}
