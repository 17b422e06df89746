import type { ChildProcess } from "node:child_process";
import { until } from "./eventually.ts";
import type { ServiceProcess } from "./service.ts";

/** Whether a process that this one started has ended, in whatever way. */
export function isDead({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

/** Waits until a process is gone; gives the signal that ended it. */
export async function untilDead({ child }: ServiceProcess): Promise<NodeJS.Signals | null> {
  await until("the process is dead", () => isDead(child));
  return child.signalCode;
}
