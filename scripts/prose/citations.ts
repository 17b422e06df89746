/**
 * Citations and links name what exists. A comment or a page cites the interface (`Spec, Idempotency 4`), a page of docs/ with or
 * without a heading (`docs/api.md#idempotency`), or a decision (`docs/decisions/0007`).
 */
import { posix } from "node:path";
import { plainText } from "../coverage/interface-sentences.ts";
import { lineAt, type Finding, type Source } from "./sources.ts";

export interface Citable {
  /** Whether there is such a file or folder. */
  readonly exists: (path: string) => boolean;
  /** Ids of a page's headings, or undefined when there is no such page. */
  readonly anchorsOf: (page: string) => ReadonlySet<string> | undefined;
  /** Numbers of the decisions. */
  readonly decisions: ReadonlySet<string>;
  /** What the interface has, by name, each with the numbers of its rules. */
  readonly interfaceParts: ReadonlyMap<string, ReadonlySet<number>>;
}

/** Applied migrations may not change: the database keeps their hashes. */
const MAY_CITE_PAGES_OF_OLD = new Set([
  "src/db/migrations/0007_audit.sql",
  "src/db/migrations/0024_operator_sign_in.sql",
  "src/db/migrations/0036_operator_oidc.sql",
]);

/** A space, or the line break of a comment. */
const SPACE = String.raw`(?:[ \t]|\r?\n[ \t]*(?:\*|\/\/|--)?[ \t]*)+`;
const PAGE_OF_OLD = new RegExp(String.raw`\bdesign,?${SPACE}page\b`, "gi");
const DECISION = /\bdocs\/decisions\/(\d{4})\b(?!\d|-)/g;
const PAGE = /(?<![\w./-])docs\/([\w/-]+\.md)(?:#([\w-]+))?/g;
const SPEC = new RegExp(String.raw`\bSpec,${SPACE}(?![$<("'/])`, "g");

/** What is wrong with the citations of one file. */
export function checkCitations({ file, text }: Source, citable: Citable): readonly Finding[] {
  const found: Finding[] = [];
  const report = (index: number, problem: string): void =>
    void found.push({ file, line: lineAt(text, index), problem });
  if (!MAY_CITE_PAGES_OF_OLD.has(file))
    for (const { index } of text.matchAll(PAGE_OF_OLD))
      report(
        index,
        "cites a page that is not in the repository; cite docs/decisions/, docs/ or the rule itself",
      );
  for (const { index, 1: number = "" } of text.matchAll(DECISION))
    if (!citable.decisions.has(number)) report(index, `there is no decision ${number} in docs/decisions/`);
  for (const { index, 1: page = "", 2: anchor } of text.matchAll(PAGE)) {
    const problem = checkPage(`docs/${page}`, anchor, citable);
    if (problem !== null) report(index, problem);
  }
  for (const match of text.matchAll(SPEC)) {
    const problem = checkSpec(text.slice(match.index + match[0].length), citable.interfaceParts);
    if (problem !== null) report(match.index, problem);
  }
  return found;
}

function checkPage(page: string, anchor: string | undefined, citable: Citable): string | null {
  const anchors = citable.anchorsOf(page);
  if (anchors === undefined) return `there is no ${page}`;
  return anchor === undefined || anchors.has(anchor) ? null : `${page} has no heading #${anchor}`;
}

const NAME_CHARACTERS_MAX = 120;

/** What follows the word `Spec`: the name of a section or a label, and perhaps the number of one of its rules. */
function checkSpec(rest: string, parts: Citable["interfaceParts"]): string | null {
  const words = plainText(rest.slice(0, NAME_CHARACTERS_MAX).replaceAll(/\r?\n[ \t]*(?:\*|\/\/|--)?/g, " "));
  const name = [...parts.keys()]
    .filter((each) => words.startsWith(each) && !/^\w/.test(words.slice(each.length)))
    .toSorted((a, b) => b.length - a.length)[0];
  if (name === undefined) return `the interface has no section "${words.split(/[.:;,"]/)[0]}"`;
  const rule = /^ (\d+)\b/.exec(words.slice(name.length))?.[1];
  return rule === undefined || parts.get(name)?.has(Number(rule)) === true
    ? null
    : `"${name}" of the interface has no rule ${rule}`;
}

const LINK =
  /(?<!!)\[(?:[^\][]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+"[^"]*")?\s*\)|!\[[^\]]*\]\(([^)\s]+)\)/g;
const ELSEWHERE = /^(?:[a-z][a-z0-9+.-]*:|\/\/)/i;

/** What is wrong with the links of a page: each leads to a file of the repository and a heading that it has. */
export function checkLinks({ file, text }: Source, citable: Citable): readonly Finding[] {
  const prose = withoutCode(text);
  return [...prose.matchAll(LINK)].flatMap((match) => {
    const target = match[1] ?? match[2] ?? "";
    if (ELSEWHERE.test(target)) return [];
    const [path = "", anchor] = target.split("#");
    const page = path === "" ? file : posix.normalize(posix.join(posix.dirname(file), path));
    const problem = page.endsWith(".md")
      ? checkPage(page, anchor, citable)
      : citable.exists(page)
        ? null
        : `there is no ${page}`;
    return problem === null ? [] : [{ file, line: lineAt(text, match.index), problem: `link: ${problem}` }];
  });
}

/** The page with blanks for its code, so that places stay what they are. */
function withoutCode(text: string): string {
  const blank = (code: string): string => code.replaceAll(/[^\n]/g, " ");
  return text
    .replaceAll(/^(```+|~~~+)[^\n]*\n[\s\S]*?^\1[^\n]*$/gm, blank)
    .replaceAll(/(`+)(?!`)[^\n]*?[^`]\1(?!`)/g, blank);
}

/** The ids that GitHub gives the headings of a page; one that comes again gets a number. */
export function anchorsIn(markdown: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const [, heading = ""] of markdown
    .replaceAll(/^(```+|~~~+)[^\n]*\n[\s\S]*?^\1[^\n]*$/gm, "")
    .matchAll(/^#{1,6} (.+)$/gm)) {
    const id = heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .trim()
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{M}\p{N}_ -]/gu, "")
      .replaceAll(" ", "-");
    let anchor = id;
    for (let again = 1; anchors.has(anchor); again++) anchor = `${id}-${again}`;
    anchors.add(anchor);
  }
  return anchors;
}

/** Sections and labels of the interface with the numbers of their rules. A label stands at the beginning of a line, before a colon. */
export function interfaceParts(markdown: string): ReadonlyMap<string, ReadonlySet<number>> {
  const parts = new Map<string, Set<number>>();
  const rulesOf = (name: string): Set<number> => {
    const rules = parts.get(name) ?? new Set<number>();
    parts.set(name, rules);
    return rules;
  };
  let rules = new Set<number>();
  for (const line of markdown.split("\n")) {
    const heading = /^#{2,3} (.+)$/.exec(line)?.[1];
    if (heading !== undefined) rules = rulesOf(plainText(heading));
    const label = /^([A-Z][^:|.]{2,40}):(?: |$)/.exec(line)?.[1];
    if (label !== undefined) rulesOf(plainText(label));
    const rule = /^(\d+)\. /.exec(line)?.[1];
    if (rule !== undefined) rules.add(Number(rule));
  }
  return parts;
}
