import { quote, quoteList } from "./config-problem.ts";

/** The name that `written` was most likely meant to be; undefined if none is similar. */
export function nearestName(written: string, names: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(written.length / 3)) + 1;
  for (const name of names) {
    const distance = editDistance(written.toLowerCase(), name.toLowerCase(), bestDistance);
    if (distance < bestDistance) {
      best = name;
      bestDistance = distance;
    }
  }
  return best;
}

/** `; did you mean …?`, or else `; there are: …` if the list is short enough to help. */
export function suggestion(written: string, names: Iterable<string>, listWord = "known"): string {
  const all = [...names];
  const nearest = nearestName(written, all);
  if (nearest !== undefined) return `; did you mean ${quote(nearest)}?`;
  return all.length === 0
    ? ""
    : `; ${listWord}: ${quoteList(all.slice(0, 30))}${all.length > 30 ? ", …" : ""}`;
}

/** Insertions, deletions, replacements and swaps of neighbours; returns `atLeast` as soon as the distance can't be less. */
function editDistance(a: string, b: string, atLeast: number): number {
  // No name in a document is this long, and the cost is quadratic.
  if (Math.abs(a.length - b.length) >= atLeast || a.length > 200) return atLeast;
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      let best = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + cost);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        best = Math.min(best, (beforeLast[j - 2] ?? 0) + 1);
      }
      row.push(best);
    }
    if (Math.min(...row) >= atLeast) return atLeast;
    beforeLast = last;
    last = row;
  }
  return last[b.length] ?? atLeast;
}
