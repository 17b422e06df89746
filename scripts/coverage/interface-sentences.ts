/** One promise of the interface: a sentence of its prose, or of a table row. */
export interface Sentence {
  /** `Idempotency.4`: the section and a running number in it; a repeated heading carries its parent. */
  readonly id: string;
  /** The heading, without backticks: what a citation names. */
  readonly section: string;
  /** Of a numbered rule; else null. */
  readonly rule: number | null;
  /** White space folded, backticks gone; a row's cells are divided by ` | `. */
  readonly text: string;
}

/** What a citation's words and the interface's are compared as. */
export function plainText(text: string): string {
  return text.replaceAll("`", "").replaceAll(/\s+/g, " ").trim();
}

/** The text before the first heading. */
const PREAMBLE = "Conventions";
const NEXT_SENTENCE = /(?<=[.!?])\s+(?=[A-Z`(0-9])/;

/** The interface's sentences and table rows, in order. A row's cells are one text; long cells give several sentences. */
export function readSentences(markdown: string): readonly Sentence[] {
  const sentences: Sentence[] = [];
  const numbers = new Map<string, number>();
  const headings = new Set<string>();
  let parent = PREAMBLE;
  let section = PREAMBLE;
  let idPrefix = PREAMBLE;
  const lines = markdown.split("\n");
  for (const [index, line] of lines.entries()) {
    const heading = /^(#{2,3}) (.+)$/.exec(line);
    if (heading) {
      section = plainText(heading[2] ?? "");
      if (heading[1] === "##") parent = section;
      idPrefix = headings.has(section) ? `${parent}/${section}` : section;
      headings.add(section);
      continue;
    }
    const isTableHead = line.startsWith("|") && (lines[index + 1] ?? "").startsWith("|---");
    if (line.trim() === "" || line.startsWith("#") || line.startsWith("|---") || isTableHead) continue;
    const rule = /^(\d+)\. /.exec(line)?.[1];
    for (const text of splitSentences(line)) {
      const number = (numbers.get(idPrefix) ?? 0) + 1;
      numbers.set(idPrefix, number);
      sentences.push({
        id: `${idPrefix}.${number}`,
        section,
        rule: rule === undefined ? null : Number(rule),
        text,
      });
    }
  }
  return sentences;
}

function splitSentences(line: string): readonly string[] {
  const isRow = line.startsWith("|");
  const text = isRow
    ? line
        .split("|")
        .map((cell) => cell.trim())
        .filter((cell) => cell !== "")
        .join(" | ")
    : line.replace(/^(\d+\.|-) /, "");
  return text.split(NEXT_SENTENCE).map(plainText);
}
