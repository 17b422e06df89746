import { RE2JS } from "re2js";

/** Compiles an expression that runs in linear time; `^` and `$` match at line ends. Throws if it is invalid. */
export function compileRows(rows: string): RE2JS {
  return RE2JS.compile(RE2JS.translateRegExp(rows), RE2JS.MULTILINE);
}

/** The names of its groups, in their order. */
export function groupsOf(pattern: RE2JS): readonly string[] {
  return Object.entries(pattern.namedGroups())
    .sort(([, left], [, right]) => left - right)
    .map(([name]) => name);
}
