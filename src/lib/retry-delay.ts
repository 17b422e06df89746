/** The maximum delay that a target can request. */
const RETRY_AFTER_MS_MAX = 60_000;

export interface RetryPace {
  readonly backoff: "exponential" | "fixed";
  readonly initialMs: number;
  readonly maxMs: number;
}

/**
 * The delay before the next attempt, in milliseconds: by the backoff, but at least what the target requested (`askedMs`; null: nothing).
 * `attempt`: the number of the failed one, from 1. `random`: a number in [0, 1).
 */
export function retryDelayMs(
  { backoff, initialMs, maxMs }: RetryPace,
  attempt: number,
  askedMs: number | null,
  random: number,
): number {
  const full = backoff === "fixed" ? initialMs : Math.min(maxMs, initialMs * 2 ** (attempt - 1));
  // Half of it is random, so that runs that failed together don't retry together.
  const jittered = Math.round(full / 2 + (full / 2) * random);
  return Math.max(jittered, Math.min(askedMs ?? 0, RETRY_AFTER_MS_MAX));
}

/** RFC 9110, 10.2.3: seconds, or a date relative to the response's own clock. null: missing or unreadable. */
export function retryAfterMs(headers: ReadonlyMap<string, string>): number | null {
  const value = headers.get("retry-after")?.trim();
  if (value === undefined) return null;
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1_000;
  const wait = Date.parse(value) - Date.parse(headers.get("date") ?? "");
  return Number.isFinite(wait) && wait > 0 ? wait : null;
}
