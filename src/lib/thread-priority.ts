import { readlinkSync } from "node:fs";
import { setPriority } from "node:os";

/**
 * What takes long stands back behind what is quick: the kernel gives it half of an ordinary thread's share where both want a
 * processor, and all of one that nobody wants. Not less: on a machine that is busy with other things it must come to its end, too.
 */
const SLOW_NICE = 3;

/** The kernel's name of the calling thread. Null: not Linux, where alone a thread has a priority of its own. */
export function ownThreadId(): number | null {
  if (process.platform !== "linux") return null;
  try {
    return Number(/\d+$/.exec(readlinkSync("/proc/thread-self"))?.[0] ?? Number.NaN) || null;
  } catch {
    return null;
  }
}

/** For good: without a right that nobody should give this process, a thread's priority is never raised again. */
export function standBack(threadId: number | null): void {
  if (threadId === null) return;
  try {
    setPriority(threadId, SLOW_NICE);
  } catch {
    // It has ended meanwhile, or has been given less by the operator already.
  }
}
