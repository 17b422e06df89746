import { readlinkSync } from "node:fs";
import { setPriority } from "node:os";

/**
 * Long tasks yield to short ones: the kernel gives them half of an ordinary thread's share when cores are contended, and a full
 * core otherwise. A smaller share might keep them from finishing on a busy machine.
 */
const SLOW_NICE = 3;

/** The kernel's id of the calling thread. null: not Linux, the only system with priorities per thread. */
export function ownThreadId(): number | null {
  if (process.platform !== "linux") return null;
  try {
    return Number(/\d+$/.exec(readlinkSync("/proc/thread-self"))?.[0] ?? Number.NaN) || null;
  } catch {
    return null;
  }
}

/** Permanent: raising a thread's priority again needs a privilege that this process should not have. */
export function lowerPriority(threadId: number | null): void {
  if (threadId === null) return;
  try {
    setPriority(threadId, SLOW_NICE);
  } catch {
    // It has already ended, or the operator lowered its priority further.
  }
}
