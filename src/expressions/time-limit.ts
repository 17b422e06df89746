/**
 * An evaluation is limited by its thread's CPU time, so that a harmless expression on a busy machine is not mistaken for an
 * endless one. In wall-clock time it may take this many times the limit, whatever CPU time it had.
 */
export const CLOCK_FACTOR = 60;

export interface TimeLimit {
  /** Called where an evaluation begins. */
  begin(): void;
  /** Wall-clock milliseconds since then that are certainly allowed. Called at each step, so it must be cheap. */
  allowedMs(): number;
}

/** A limit for the calling thread. */
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
      // The remaining CPU time can't be used up sooner.
      allowed = Math.min(CLOCK_FACTOR * timeoutMs, elapsed + timeoutMs - (user + system) / 1_000);
      return allowed;
    },
  };
}
