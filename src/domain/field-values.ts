import { readHeaders } from "./header-rows.ts";
import type { Json } from "./json.ts";
import type { FieldType, StrategyField } from "./strategy.ts";

/** What `$credential.<field>` is in a login, for every type but `totp_secret`, whose key no expression sees. */
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

/** Shorter lines of a file are no secret, and would be found in ordinary text. */
const LINE_CHARACTERS_MIN = 24;

/** The texts that give a secret field away where a target echoes them: every header's value, every line of a file. */
export function secretTexts({ type }: StrategyField, stored: string): readonly string[] {
  if (type === "headers") return readHeaders(stored).map(([, value]) => value);
  if (type !== "file" && type !== "textarea") return [stored];
  const lines = stored.split(/\r?\n/).map((line) => line.trim());
  return [
    stored,
    ...lines.filter((line) => line.length >= LINE_CHARACTERS_MIN && !line.startsWith("-----BEGIN ")),
  ];
}
