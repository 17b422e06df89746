import { durationText } from "../parts/duration-text.ts";
import { wordsOf } from "../parts/words-of.ts";

/** Keys that are no words of their own. */
const NAMES: Readonly<Record<string, string>> = {
  kid: "Master key",
  sha256: "SHA-256",
  by: "Signed in by",
};

/** Values that are words of the product; others are ids, names and addresses, which stay as they are. */
const WORDED: ReadonlySet<string> = new Set(["second_factor", "reason", "by", "change", "decision"]);
/** What the integrity check reads: the signed row, whose name is the subject's. The export has it. */
const OF_THE_CHECK: ReadonlySet<string> = new Set(["row", "serial"]);

export interface DetailField {
  readonly name: string;
  readonly text: string;
}

/** The fields of an entry's detail, as people read them. Those without a value, and those of the integrity check, are left out. */
export function readDetail(detail: unknown): readonly DetailField[] {
  if (typeof detail !== "object" || detail === null) return [];
  return Object.entries(detail).flatMap(([key, value]: [string, unknown]) =>
    value === null || OF_THE_CHECK.has(key) ? [] : [{ name: nameOf(key), text: textOf(key, value) }],
  );
}

function nameOf(key: string): string {
  return NAMES[key] ?? wordsOf(key.replace(/_(ms|at)$/, ""));
}

function textOf(key: string, value: unknown): string {
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number")
    return key.endsWith("_ms") ? durationText(value) : value.toLocaleString("en");
  if (typeof value !== "string") return JSON.stringify(value);
  return WORDED.has(key) ? value.replaceAll("_", " ") : value;
}
