/** A part of a text of SQL, from `start` up to `end`, and what to put in its place. */
export interface SqlSite {
  readonly kind: "sql term removed" | "sql lock removed";
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

const IS_SQL = /\b(?:select|update|insert into|delete from|exists)\b/;
const LOCK =
  /\s+for (?:no key update|update|key share|share)(?: of [\w$-]+)?(?: skip locked)?|\s+skip locked\b/g;
const TERM = /(?<=\s)and\s/g;
/** At the depth of a term, what ends it. */
const ENDS =
  /^(?:\s+(?:and|or|order by|limit|for (?:no key )?update|for (?:key )?share|returning|group by|on conflict|union|then|else|when|as)\b|[),;])/;
const FIRST = /\bwhere\s/g;

/** Sites in the text of a string or a template, as it stands in the source between its quotes: `${…}` is taken as one word. */
export function findSqlSites(source: string): readonly SqlSite[] {
  if (!IS_SQL.test(source)) return [];
  const masked = maskHoles(source);
  const locks = [...masked.matchAll(LOCK)].map(({ 0: text, index }): SqlSite => ({
    kind: "sql lock removed",
    start: index,
    end: index + text.length,
    replacement: "",
  }));
  const terms = [...masked.matchAll(TERM)]
    .filter(({ index }) => !isOfBetween(masked, index))
    .map(({ 0: text, index }): SqlSite => {
      const end = endOfTerm(masked, index + text.length);
      return { kind: "sql term removed", start: index, end, replacement: "" };
    });
  const firsts = [...masked.matchAll(FIRST)].map(({ 0: text, index }): SqlSite => {
    const start = index + text.length;
    return { kind: "sql term removed", start, end: endOfTerm(masked, start), replacement: "true" };
  });
  return [...locks, ...terms, ...firsts].filter(({ start, end }) => end > start);
}

/** With `x` for every character of what is inserted, so that all places stay where they are. */
function maskHoles(source: string): string {
  let masked = "";
  for (let at = 0; at < source.length; at++) {
    if (!source.startsWith("${", at)) {
      masked += source[at];
      continue;
    }
    let depth = 0;
    do {
      if (source[at] === "{") depth++;
      if (source[at] === "}") depth--;
      masked += "x";
      at++;
    } while (at < source.length && (depth > 0 || source[at - 1] === "$"));
    at--;
  }
  return masked;
}

function endOfTerm(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at++) {
    if (depth === 0 && ENDS.test(text.slice(at, at + 40)) && !isOfBetween(text, at + 1)) return at;
    if (text[at] === "(") depth++;
    if (text[at] === ")") depth--;
  }
  return text.length;
}

const isOfBetween = (text: string, at: number): boolean =>
  /\bbetween\s+\S+\s+$/.test(text.slice(Math.max(0, at - 80), at));
