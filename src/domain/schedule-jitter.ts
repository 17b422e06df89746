import { hash } from "node:crypto";
import { must } from "#lib/assert.ts";
import { parseDuration } from "./duration.ts";
import { limits } from "./limits.ts";
import type { NextTime } from "./schedule.ts";

/** Milliseconds of a schedule's `jitter`; undefined: it is no duration, or too long. */
export function readJitter(text: string): number | undefined {
  const ms = parseDuration(text);
  return ms !== undefined && ms <= limits.scheduleJitterMsMax ? ms : undefined;
}

/**
 * When the run of a time begins: up to `jitter` later, but before the next time. By the schedule and the time alone, so that every worker
 * gets the same: docs/schedules.md#jitter.
 */
export function spread(
  { id, jitter }: { readonly id: string; readonly jitter: string },
  next: NextTime,
): (dueMs: number) => number {
  const jitterMs = must(readJitter(jitter), "a checked duration");
  if (jitterMs === 0) return (dueMs) => dueMs;
  return (dueMs) => {
    const share = hash("sha256", `${id}/${dueMs}`, "buffer").readUInt32BE() / 2 ** 32;
    return dueMs + Math.floor(share * Math.min(jitterMs, (next(dueMs) ?? Infinity) - dueMs));
  };
}
