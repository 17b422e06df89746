/** CPU time of processes, from /proc; where there is none (not Linux) nothing is said of it. */
import { existsSync, readdirSync, readFileSync } from "node:fs";

/** `sysconf(_SC_CLK_TCK)` of every Linux. */
const TICKS_PER_SECOND = 100;
const NS_PER_SECOND = 1e9;

interface ProcessTimes {
  readonly parent: number;
  readonly seconds: number;
  /** Of children that have ended and were waited for. */
  readonly endedSeconds: number;
}

const hasProc = existsSync("/proc/self/stat");

/** Seconds of CPU that these processes and all below them have had so far, those that have ended included. */
export function cpuSecondsOf(roots: readonly number[]): number {
  if (!hasProc) return Number.NaN;
  const times = readAll();
  const belongs = (pid: number): boolean => {
    for (let at = pid; at > 1; at = times.get(at)?.parent ?? 0) if (roots.includes(at)) return true;
    return false;
  };
  let total = 0;
  for (const [pid, { seconds, endedSeconds }] of times)
    if (belongs(pid)) total += Math.max(seconds, threadSeconds(pid)) + endedSeconds;
  return total;
}

/** Seconds of CPU that the main thread of a process has had so far. */
export function mainThreadSeconds(pid: number): number {
  return hasProc ? scheduledSeconds(`/proc/${pid}/task/${pid}/schedstat`) : Number.NaN;
}

/** Seconds of CPU that all processes of the machine have had so far. */
export function machineCpuSeconds(): number {
  if (!hasProc) return Number.NaN;
  const [, ...fields] = readFileSync("/proc/stat", "utf8").split("\n", 1)[0]?.split(/\s+/) ?? [];
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = fields.map(Number);
  return (user + nice + system + irq + softirq) / TICKS_PER_SECOND;
}

function readAll(): ReadonlyMap<number, ProcessTimes> {
  const found = new Map<number, ProcessTimes>();
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    const times = Number.isInteger(pid) ? read(pid) : null;
    if (times) found.set(pid, times);
  }
  return found;
}

function read(pid: number): ProcessTimes | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name, in parentheses, may hold anything.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const [parent = 0, user = 0, system = 0, endedUser = 0, endedSystem = 0] = [1, 11, 12, 13, 14].map(
      (index) => Number(fields[index]),
    );
    return {
      parent,
      seconds: (user + system) / TICKS_PER_SECOND,
      endedSeconds: (endedUser + endedSystem) / TICKS_PER_SECOND,
    };
  } catch {
    // It has ended since it was listed.
    return null;
  }
}

/**
 * Of the threads that a process has now, to the nanosecond. What ended threads had is only in the ticks of the process, which
 * are rounded down, so the larger of the two is taken.
 */
function threadSeconds(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/task`).reduce(
      (total, thread) => total + scheduledSeconds(`/proc/${pid}/task/${thread}/schedstat`),
      0,
    );
  } catch {
    return 0;
  }
}

function scheduledSeconds(path: string): number {
  try {
    return Number(readFileSync(path, "utf8").split(" ", 1)[0]) / NS_PER_SECOND;
  } catch {
    // The thread has ended, or the kernel keeps no such statistics.
    return 0;
  }
}
