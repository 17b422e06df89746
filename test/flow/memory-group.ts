import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { until } from "../eventually.ts";

/** Processes with a memory limit of their own, which the kernel enforces as for a container: it kills one that wants more. */
export interface MemoryGroup {
  /** The settings with which a service starts in it. */
  readonly environment: Readonly<Record<string, string>>;
  setLimit(bytes: number): void;
  /** How many of its processes the kernel has killed. */
  countKills(): number;
  /** Once all of its processes have ended. */
  remove(): Promise<void>;
}

const ROOT = "/sys/fs/cgroup/memory";

/** This process's own group: the new one is inside of it, so that its limits go on. */
function ownGroup(): string | null {
  try {
    const [, path] = /^\d+:memory:(.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8")) ?? [];
    const folder = path === undefined ? null : join(ROOT, path);
    return folder !== null && readFileSync(join(folder, "cgroup.procs"), "utf8") !== "" ? folder : null;
  } catch {
    return null;
  }
}

/** Why there can be none here; false: there can. */
export const skipMemoryGroup: string | false =
  process.getuid?.() !== 0 || ownGroup() === null
    ? "needs root and the memory controller of version 1 of cgroups"
    : false;

export function openMemoryGroup(): MemoryGroup {
  const folder = join(ownGroup() ?? ROOT, `latchkey-test-${process.pid}`);
  mkdirSync(folder);
  const hook = pathToFileURL(join(import.meta.dirname, "join-memory-group.mjs")).href;
  return {
    environment: { NODE_OPTIONS: `--import=${hook}`, LATCHKEY_TEST_MEMORY_GROUP: folder },
    setLimit: (bytes) => writeFileSync(join(folder, "memory.limit_in_bytes"), String(bytes)),
    countKills: () =>
      Number(/^oom_kill (\d+)$/m.exec(readFileSync(join(folder, "memory.oom_control"), "utf8"))?.[1] ?? 0),
    remove: async () => {
      await until(
        "the group has no process",
        () => readFileSync(join(folder, "cgroup.procs"), "utf8") === "",
      );
      rmdirSync(folder);
    },
  };
}
