import { quote } from "#domain/config-problem.ts";
import { suggestion } from "#domain/config-nearest.ts";
import { isJsonObject, type Json } from "#domain/json.ts";
import { LoginFailure, type ConfigFinding } from "./define-login.ts";

/** Headers that the connection sets itself; the egress gate refuses them. */
const CONNECTION_HEADERS: ReadonlySet<string> = new Set(
  "host content-length transfer-encoding connection keep-alive proxy-connection upgrade te trailer expect http2-settings".split(
    " ",
  ),
);

/** Names that can't be a header's, or that belong to the connection, or that differ only in case. */
export function checkHeaderNames(
  headers: { readonly [name: string]: unknown } | undefined,
  path: ConfigFinding["path"],
): readonly ConfigFinding[] {
  const seen = new Set<string>();
  return Object.keys(headers ?? {}).flatMap((name): readonly ConfigFinding[] => {
    const finding = (message: string) => [{ path: [...path, name], at: "key" as const, message }];
    const lowerCase = name.toLowerCase();
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name))
      return finding(`${quote(name)} is no header name; letters, digits and - are`);
    if (CONNECTION_HEADERS.has(lowerCase))
      return finding(`the header ${quote(name)} belongs to the connection; leave it out`);
    if (seen.has(lowerCase)) return finding(`the header ${quote(name)} is written twice, in different case`);
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

/** A value that a header can hold, or a LoginFailure that names the header and not the value. */
export function headerValue(value: string, name: string, place: string): string {
  if (/[^\t\x20-\x7e\x80-\xff]/.test(value))
    throw new LoginFailure(
      `${place}: the value of the header ${name} has characters that a header can't hold`,
    );
  return value;
}

/**
 * Names and values of a rendered `query`, `form` or `headers`: a list gives its name several times, null and nothing leave
 * it out. Throws LoginFailure for an object.
 */
export function textPairs(
  rendered: Json | undefined,
  place: string,
): readonly (readonly [name: string, value: string])[] {
  if (!isJsonObject(rendered)) return [];
  return Object.entries(rendered).flatMap(([name, value]) => {
    const values: readonly Json[] = Array.isArray(value) ? value : [value];
    return values
      .filter((each) => each !== null && each !== undefined)
      .map((each) => {
        if (typeof each === "object")
          throw new LoginFailure(
            `${place}.${name} gives an object; it must give a text, a number, true or false`,
          );
        return [name, String(each)] as const;
      });
  });
}

/** Rendered headers as a session keeps them: lower-case names, one value each. */
export function sessionHeaders(
  rendered: Json | undefined,
  place: string,
): { readonly [name: string]: string } {
  const pairs = textPairs(rendered, place).map(
    ([name, value]) => [name.toLowerCase(), headerValue(value, name, place)] as const,
  );
  return Object.fromEntries(pairs);
}
