import { readHeaders } from "./header-rows.ts";
import type { Json } from "./json.ts";
import type { FieldType, StrategyField } from "./strategy.ts";

/** The value of `$credential.<field>` in a login, for every type but `totp_secret`, which no expression can read. */
export function fieldVariable(type: FieldType, stored: string): Json {
  switch (type) {
    case "checkbox":
      return stored === "true";
    case "headers":
      return Object.fromEntries(readHeaders(stored));
    case "totp_secret":
      return {};
    default:
      return stored;
  }
}

/** Shorter lines of a file are not treated as secrets, since they would match ordinary text. */
const LINE_CHARACTERS_MIN = 24;

/** The strings that disclose a secret field if a target echoes them: every header's value, every line of a file. */
export function secretTexts({ type }: StrategyField, stored: string): readonly string[] {
  if (type === "headers") return readHeaders(stored).map(([, value]) => value);
  if (type !== "file" && type !== "textarea") return [stored];
  const lines = stored.split(/\r?\n/).map((line) => line.trim());
  return [
    stored,
    ...lines.filter((line) => line.length >= LINE_CHARACTERS_MIN && !line.startsWith("-----BEGIN ")),
  ];
}
