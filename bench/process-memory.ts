import { readdirSync, readFileSync } from "node:fs";

/** Fields of `/proc/PID/stat` after the name. */
const statOf = (pid: number): readonly string[] | null => {
  try {
    return readFileSync(`/proc/${pid}/stat`, "latin1")
      .replace(/^.*\) /s, "")
      .split(" ");
  } catch {
    return null;
  }
};

export function descendantsOf(root: number): readonly number[] {
  const children = Map.groupBy(
    readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : [])),
    (pid) => Number(statOf(pid)?.[1] ?? 0),
  );
  const below = (pid: number): readonly number[] =>
    (children.get(pid) ?? []).flatMap((child) => [child, ...below(child)]);
  return below(root);
}

/** With that of its children that have ended. The unit of the kernel is 10 ms. */
export const cpuMsOf = (pid: number): number =>
  (statOf(pid) ?? []).slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) * 10, 0);

/** The proportional set size. */
export function memoryOf(pid: number): number {
  try {
    const text = readFileSync(`/proc/${pid}/smaps_rollup`, "latin1");
    return Number(/^Pss:\s+(\d+) kB/m.exec(text)?.[1] ?? 0) * 1_024;
  } catch {
    return 0;
  }
}
