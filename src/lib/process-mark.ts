import { readFileSync } from "node:fs";

/** Identifies a process, and distinguishes it from a later one with the same pid. */
export type ProcessMark = { pid: number; startedAt: string };

export function ownMark(): ProcessMark {
  return { pid: process.pid, startedAt: startTime(process.pid) ?? "" };
}

/** When in doubt (another system than Linux, a hidden /proc) a process with this pid counts as alive. */
export function isAlive(mark: ProcessMark): boolean {
  if (!isRunning(mark.pid)) return false;
  const startedAt = startTime(mark.pid);
  return startedAt === null || mark.startedAt === "" || startedAt === mark.startedAt;
}

/** Whether the pid belongs to a running process. A zombie doesn't count. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
  return statFields(pid)?.[0] !== "Z";
}

/** Boot id and clock ticks since that boot; null where /proc does not say. */
function startTime(pid: number): string | null {
  const ticks = statFields(pid)?.[19];
  if (ticks === undefined) return null;
  try {
    return `${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()}/${ticks}`;
  } catch {
    return ticks;
  }
}

/** `/proc/<pid>/stat` from its third field (the state) on; the second, the name, may contain spaces. */
function statFields(pid: number): string[] | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  } catch {
    return null;
  }
}
