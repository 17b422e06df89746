/** A target may ask for patience, but not for more than this at a time. */
const RETRY_AFTER_MS_MAX = 60_000;

export interface RetryPace {
  readonly backoff: "exponential" | "fixed";
  readonly initialMs: number;
  readonly maxMs: number;
}

/**
 * The wait before the next attempt, in milliseconds: what the pace says, and no less than the target asked for (`askedMs`; null: it
 * asked for nothing). `attempt`: of the one that failed, from 1. `random`: a number in [0, 1).
 */
export function retryDelayMs(
  { backoff, initialMs, maxMs }: RetryPace,
  attempt: number,
  askedMs: number | null,
  random: number,
): number {
  const full = backoff === "fixed" ? initialMs : Math.min(maxMs, initialMs * 2 ** (attempt - 1));
  // Half of it is chance, so that many runs that failed together don't come back together.
  const jittered = Math.round(full / 2 + (full / 2) * random);
  return Math.max(jittered, Math.min(askedMs ?? 0, RETRY_AFTER_MS_MAX));
}

/** RFC 9110, 10.2.3: seconds, or a date, which is measured against the response's own clock. Null without one that can be read. */
export function retryAfterMs(headers: ReadonlyMap<string, string>): number | null {
  const value = headers.get("retry-after")?.trim();
  if (value === undefined) return null;
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1_000;
  const wait = Date.parse(value) - Date.parse(headers.get("date") ?? "");
  return Number.isFinite(wait) && wait > 0 ? wait : null;
}
