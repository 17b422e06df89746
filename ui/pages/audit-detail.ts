import { durationText } from "../parts/duration-text.ts";

/** Keys that are no words of their own. */
const NAMES: Readonly<Record<string, string>> = {
  kid: "Master key",
  sha256: "SHA-256",
  by: "Signed in by",
};
const WORDS: Readonly<Record<string, string>> = { oauth: "OAuth", id: "ID", totp: "TOTP", url: "URL" };

export interface DetailField {
  readonly name: string;
  readonly text: string;
}

/** The fields of an entry's detail, as people read them. Those without a value are left out. */
export function readDetail(detail: unknown): readonly DetailField[] {
  if (typeof detail !== "object" || detail === null) return [];
  return Object.entries(detail).flatMap(([key, value]: [string, unknown]) =>
    value === null ? [] : [{ name: nameOf(key), text: textOf(key, value) }],
  );
}

function nameOf(key: string): string {
  const words = key.replace(/_(ms|at)$/, "").split("_");
  const name = words.map((word) => WORDS[word] ?? word).join(" ");
  return NAMES[key] ?? name.charAt(0).toUpperCase() + name.slice(1);
}

function textOf(key: string, value: unknown): string {
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number")
    return key.endsWith("_ms") ? durationText(value) : value.toLocaleString("en");
  if (typeof value !== "string") return JSON.stringify(value);
  // Ids and addresses stay as they are: they have digits, dots or slashes.
  return /^[a-z]+(_[a-z]+)+$/.test(value) ? value.replaceAll("_", " ") : value;
}
