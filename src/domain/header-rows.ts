import { belongsToConnection, isHeaderName, isHeaderValue } from "./header-names.ts";
import type { IssueCode } from "./form-issue.ts";
import { limits } from "./limits.ts";

/** A field of type `headers` is several rows of two controls; these are the controls' names. */
export interface HeaderRow {
  readonly name: string;
  readonly value: string;
}

export type HeaderPairs = readonly (readonly [name: string, value: string])[];

/** The controls of a field: a row for each header. */
export function headerRows(key: string): readonly HeaderRow[] {
  return Array.from({ length: limits.formHeadersMax }, (_row, index) => ({
    name: `${key}.${index + 1}.name`,
    value: `${key}.${index + 1}.value`,
  }));
}

/** The values of a field's rows. Blanks around a name or a value are removed (RFC 9110, 5.5). */
export function readHeaderRows(key: string, submitted: ReadonlyMap<string, string>): HeaderPairs {
  return headerRows(key)
    .map((row) => [(submitted.get(row.name) ?? "").trim(), (submitted.get(row.value) ?? "").trim()] as const)
    .filter(([name, value]) => name !== "" || value !== "");
}

/** The problem of the rows, or null. It quotes neither a name nor a value: they may have been confused. */
export function checkHeaderPairs(pairs: HeaderPairs): IssueCode | null {
  const seen = new Set<string>();
  for (const [name, value] of pairs) {
    if (name === "") return "header_unnamed";
    if (value === "") return "header_empty";
    if (!isHeaderName(name)) return "header_name";
    if (belongsToConnection(name)) return "header_reserved";
    if (!isHeaderValue(value)) return "header_value";
    if (seen.has(name.toLowerCase())) return "header_twice";
    seen.add(name.toLowerCase());
  }
  return null;
}

/** The sealed text of a field of headers. */
export const writeHeaders = (pairs: HeaderPairs): string => JSON.stringify(pairs);

/** Parses the output of `writeHeaders`; empty for any other text. */
export function readHeaders(stored: string): HeaderPairs {
  try {
    const pairs: unknown = JSON.parse(stored);
    return Array.isArray(pairs) ? pairs.filter(isPair) : [];
  } catch {
    return [];
  }
}

function isPair(value: unknown): value is readonly [string, string] {
  return Array.isArray(value) && value.length === 2 && value.every((each) => typeof each === "string");
}
