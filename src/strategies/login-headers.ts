import { textPairs as textPairsOf, type TextPairs } from "#answers/text-pairs.ts";
import { quote } from "#domain/config-problem.ts";
import { suggestion } from "#domain/config-nearest.ts";
import { belongsToConnection, isHeaderName, isHeaderValue } from "#domain/header-names.ts";
import type { Json } from "#domain/json.ts";
import type { FieldType } from "#domain/strategy.ts";
import { LoginFailure, type CheckedStrategy, type ConfigFinding } from "./define-login.ts";

/** Rejects invalid header names, headers of the connection, and names that differ only in case. */
export function checkHeaderNames(
  headers: { readonly [name: string]: unknown } | undefined,
  path: ConfigFinding["path"],
): readonly ConfigFinding[] {
  const seen = new Set<string>();
  return Object.keys(headers ?? {}).flatMap((name): readonly ConfigFinding[] => {
    const finding = (message: string) => [{ path: [...path, name], at: "key" as const, message }];
    const lowerCase = name.toLowerCase();
    if (!isHeaderName(name))
      return finding(`${quote(name)} is not a valid header name; use letters, digits and -`);
    if (belongsToConnection(name))
      return finding(`the header ${quote(name)} belongs to the connection; remove it`);
    if (seen.has(lowerCase)) return finding(`the header ${quote(name)} is listed twice, in different case`);
    seen.add(lowerCase);
    return [];
  });
}

export function checkFieldKey(
  key: string,
  path: ConfigFinding["path"],
  fieldKeys: readonly string[],
): readonly ConfigFinding[] {
  return fieldKeys.includes(key)
    ? []
    : [{ path, message: `the strategy has no field ${quote(key)}${suggestion(key, fieldKeys, "it has")}` }];
}

/** Like `checkFieldKey`, for a field that must have a certain type. */
export function checkFieldOfType(
  key: string,
  type: FieldType,
  path: ConfigFinding["path"],
  { fieldKeys, fieldTypes }: CheckedStrategy,
): readonly ConfigFinding[] {
  const unknown = checkFieldKey(key, path, fieldKeys);
  const found = fieldTypes.get(key) ?? type;
  if (unknown.length > 0 || found === type) return unknown;
  return [
    { path, message: `the field ${quote(key)} is of type ${quote(found)}; it must be a ${quote(type)}` },
  ];
}

/** Returns the value if it is valid in a header. Throws a LoginFailure that names the header and not the value. */
export function headerValue(value: string, name: string, place: string): string {
  if (!isHeaderValue(value))
    throw new LoginFailure(
      `${place}: the value of the header ${name} has characters that are not allowed in a header`,
    );
  return value;
}

/** Names and values of a rendered `query`, `form` or `headers`. Throws LoginFailure for an object. */
export function textPairs(rendered: Json | undefined, place: string): TextPairs {
  return textPairsOf(rendered, place, (message) => new LoginFailure(message));
}

/** Rendered headers as a session stores them: lower-case names with one value each. */
export function sessionHeaders(
  rendered: Json | undefined,
  place: string,
): { readonly [name: string]: string } {
  const pairs = textPairs(rendered, place).map(
    ([name, value]) => [name.toLowerCase(), headerValue(value, name, place)] as const,
  );
  return Object.fromEntries(pairs);
}
