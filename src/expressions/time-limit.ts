/**
 * How long an evaluation may take: so much CPU time of its thread, so that an innocent expression on a busy machine is not taken for
 * an endless one. By the clock it may take this many times as long, whatever CPU time it had.
 */
export const CLOCK_FACTOR = 60;

export interface TimeLimit {
  /** Called where an evaluation begins. */
  begin(): void;
  /** Milliseconds by the clock since then that are certainly allowed; asked at each step, so it is cheap while they last. */
  allowedMs(): number;
}

/** Of the thread that calls it. */
export function timeLimit(timeoutMs: number): TimeLimit {
  let beganAt = 0;
  let cpuBefore = process.threadCpuUsage();
  let allowed = timeoutMs;
  return {
    begin() {
      beganAt = Date.now();
      cpuBefore = process.threadCpuUsage();
      allowed = timeoutMs;
    },
    allowedMs() {
      const elapsed = Date.now() - beganAt;
      if (elapsed <= allowed) return allowed;
      const { user, system } = process.threadCpuUsage(cpuBefore);
      // What CPU time is left can't be used up sooner.
      allowed = Math.min(CLOCK_FACTOR * timeoutMs, elapsed + timeoutMs - (user + system) / 1_000);
      return allowed;
    },
  };
}
