import { NumberText, type JsonTree } from "#lib/json-text.ts";

/** Notes a problem of a field. */
export type Wrong = (field: string, message: string) => null;

/** `expires_in_seconds` of a session of either kind; null: not given, or a problem that was noted. */
export function readSeconds(value: JsonTree, wrong: Wrong): number | null {
  if (value === null) return null;
  if (!(value instanceof NumberText))
    return wrong("expires_in_seconds", "`expires_in_seconds` must be a number.");
  return Number(value.text);
}
