/** A `Date` header has a resolution of one second, and an answer takes time to arrive: a smaller difference is not significant. */
const NOISE_MS = 2_000;

/**
 * How far a target's clock is ahead of ours, according to its `Date` header (RFC 9110, 6.6.1); 0 if there is none, or the
 * difference is not significant. `nowMs` is the database's time.
 */
export function targetClockOffsetMs(headers: ReadonlyMap<string, string>, nowMs: number): number {
  const dateMs = Date.parse(headers.get("date") ?? "");
  if (!Number.isFinite(dateMs)) return 0;
  const offsetMs = dateMs + 500 - nowMs;
  return Math.abs(offsetMs) <= NOISE_MS ? 0 : offsetMs;
}
