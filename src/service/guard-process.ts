import { readFileSync } from "node:fs";
import { url as inspectorUrl } from "node:inspector";
import type { Log } from "#lib/log.ts";
import { StartRefused } from "./settings/settings.ts";

/** Options of Node that let anyone who can send a signal or open a port read a process's memory. */
const SPYING =
  /^--(inspect(-|=|$)|heapsnapshot-|heap-prof|cpu-prof|report-on-signal|report-uncaught-exception|prof(=|$))/;

/** The kernel's limit for core files; null where it isn't available. */
function coreLimit(): string | null {
  try {
    return /^Max core file size\s+(\S+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1] ?? null;
  } catch {
    return null;
  }
}

/**
 * Called before a process has keys and secrets: disables the means by which Node would write its memory to a port or a file.
 * Throws StartRefused if the process was started with one of them enabled. docs/decisions/0013.
 */
export function guardProcess(options: readonly string[], log: Log): void {
  const open = inspectorUrl() === undefined ? options.find((option) => SPYING.test(option)) : "--inspect";
  if (open !== undefined) {
    throw new StartRefused(
      `This process was started with ${open.split("=")[0]}, which exposes its memory, including keys and credentials. ` +
        "Start it without this option, and check NODE_OPTIONS.",
    );
  }
  // By default, Node would open the debugger's port.
  process.on("SIGUSR1", () =>
    log.warn("SIGUSR1 was ignored, because a debugger could read keys and credentials"),
  );
  process.report.excludeEnv = true;
  process.report.reportOnSignal = false;
  const core = coreLimit();
  if (core !== null && core !== "0")
    log.warn("a crash may write keys and credentials to a core file: start the service under `ulimit -c 0`");
}
