import { quote, type ConfigFinding, type ConfigPath } from "#domain/config-problem.ts";
import { suggestion } from "#domain/config-nearest.ts";
import type { LocatedUse } from "./read-expressions.ts";

/** Variables of a Blueprint. */
const NOT_IN_A_LOGIN = [
  "inputs",
  "metadata",
  "run",
  "index",
  "isValid",
  "errors",
  "counts",
  "nodes",
  "token",
];

export interface LoginNames {
  /** Field key to field type (null when it is not known); null when the strategy's fields could not be read. */
  readonly fields: ReadonlyMap<string, string | null> | null;
  /** The variables that are extracted before this place. */
  extractedBefore(path: ConfigPath): readonly string[];
}

/** docs/strategies.md#expressions-in-a-login: `$credential.<field>`, for a `totp_secret` field `.code`, and whatever earlier steps extracted. */
export function checkLoginVariables(
  uses: readonly LocatedUse[],
  names: LoginNames,
): readonly ConfigFinding[] {
  return uses.flatMap((use) => {
    const message = explainUse(use, names);
    return message === null ? [] : [{ path: use.path, message }];
  });
}

function explainUse({ name, parts, path }: LocatedUse, names: LoginNames): string | null {
  if (name === "credential") return explainField(parts, names.fields);
  const extracted = names.extractedBefore(path);
  if (extracted.includes(name)) return null;
  if (NOT_IN_A_LOGIN.includes(name))
    return `\`$${name}\` does not exist in a login; there are \`$credential\` and what earlier steps extract`;
  return `unknown variable \`$${name}\`${suggestion(`$${name}`, new Set(["$credential", ...extracted.map((each) => `$${each}`)]), "here there are")}`;
}

function explainField(
  [field, part, ...rest]: readonly string[],
  fields: LoginNames["fields"],
): string | null {
  if (field === undefined || fields === null) return null;
  const type = fields.get(field);
  if (type === undefined)
    return `the strategy has no field ${quote(field)}${suggestion(field, fields.keys(), "it has")}`;
  if (part === undefined || type === null) return null;
  // The names of its headers are the end user's.
  if (type === "headers") return null;
  if (type !== "totp_secret")
    return `the field ${quote(field)} is text and has no ${quote(part)}; only a totp_secret has \`.code\``;
  return part === "code" && rest.length === 0
    ? null
    : `a totp_secret has only \`.code\`; write \`$credential.${field}.code\``;
}
