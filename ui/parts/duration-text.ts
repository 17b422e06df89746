const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
] as const;

/** As documents write it: `7d`, `36h`, `90s`, `500ms`. */
export function durationText(ms: number): string {
  if (ms === 0) return "0";
  const [unit, size] = UNITS.find(([, each]) => ms % each === 0) ?? ["ms", 1];
  return `${ms / size}${unit}`;
}
