/** A `Date` header has whole seconds, and an answer is under way for a while: less than this says nothing. */
const NOISE_MS = 2_000;

/**
 * How far a target's clock is ahead of ours, as its `Date` header says (RFC 9110, 6.6.1); 0 when it says nothing, or nothing
 * that is sure. `nowMs` is the database's.
 */
export function targetClockOffsetMs(headers: ReadonlyMap<string, string>, nowMs: number): number {
  const dateMs = Date.parse(headers.get("date") ?? "");
  if (!Number.isFinite(dateMs)) return 0;
  const offsetMs = dateMs + 500 - nowMs;
  return Math.abs(offsetMs) <= NOISE_MS ? 0 : offsetMs;
}
