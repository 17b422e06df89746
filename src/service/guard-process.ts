import { readFileSync } from "node:fs";
import { url as inspectorUrl } from "node:inspector";
import type { Log } from "#lib/log.ts";
import { StartRefused } from "./settings/settings.ts";

/** Options of Node with which anybody who may send a signal, or open a port, reads a process's memory. */
const SPYING =
  /^--(inspect(-|=|$)|heapsnapshot-|heap-prof|cpu-prof|report-on-signal|report-uncaught-exception|prof(=|$))/;

/** Core files of a crash, as the kernel shows it; null where it does not. */
function coreLimit(): string | null {
  try {
    return /^Max core file size\s+(\S+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1] ?? null;
  } catch {
    return null;
  }
}

/**
 * Before a process holds keys and secrets: closes the ways in which Node would write its memory to a port or a file. Throws
 * StartRefused when it was started with one of them open. docs/decisions/0013.
 */
export function guardProcess(options: readonly string[], log: Log): void {
  const open = inspectorUrl() === undefined ? options.find((option) => SPYING.test(option)) : "--inspect";
  if (open !== undefined) {
    throw new StartRefused(
      `This process was started with ${open.split("=")[0]}, which shows its memory: keys and credentials are in it. ` +
        "Start it without, and look into NODE_OPTIONS.",
    );
  }
  // Node would open the debugger's port.
  process.on("SIGUSR1", () => log.warn("SIGUSR1 was ignored: a debugger would see keys and credentials"));
  process.report.excludeEnv = true;
  process.report.reportOnSignal = false;
  const core = coreLimit();
  if (core !== null && core !== "0")
    log.warn("a crash may write keys and credentials to a core file: start the service under `ulimit -c 0`");
}
