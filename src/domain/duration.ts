import type { Json } from "./json.ts";

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Milliseconds of `500ms`, `30s`, `10m`, `2h`, `7d`, or of the number 0; undefined for anything else. */
export function parseDuration(value: Json): number | undefined {
  if (value === 0 || value === "0") return 0;
  if (typeof value !== "string") return undefined;
  const match = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)$/.exec(value);
  if (!match) return undefined;
  return Math.round(Number(match[1]) * UNITS[match[2] as keyof typeof UNITS]);
}

/** The shape of a duration in configuration documents, for JSON Schemas. */
export const DURATION_PATTERN = String.raw`^(0|\d{1,9}(\.\d{1,3})?(ms|s|m|h|d))$`;
