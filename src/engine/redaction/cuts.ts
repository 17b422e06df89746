/** A part of text from `start` to before `end`, in bytes. */
export interface Cut {
  readonly start: number;
  readonly end: number;
}

/** Sorts cuts, and merges those that overlap or touch. */
export function merged(cuts: readonly Cut[]): readonly Cut[] {
  if (cuts.length < 2) return cuts;
  const all: { start: number; end: number }[] = [];
  for (const { start, end } of cuts.toSorted((a, b) => a.start - b.start || b.end - a.end)) {
    const last = all.at(-1);
    if (last !== undefined && start < last.end) last.end = Math.max(last.end, end);
    else all.push({ start, end });
  }
  return all;
}
