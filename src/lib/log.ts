import { createRequire } from "node:module";
import { pino, type DestinationStream, type Logger } from "pino";
import type { LogLevel } from "./log-level.ts";
import type * as PrettyLog from "./pretty-log.ts";

export type Log = Logger;

const load = createRequire(import.meta.url);

/**
 * One logger per process, writing to standard error: standard output is for a command's result. By convention, fields are names,
 * counts and ids; never a library's error object, because its message may quote its input.
 */
export function openLog(
  options: { readonly level: LogLevel; readonly format: "json" | "pretty" },
  destination: DestinationStream = standardError(options.format),
): Log {
  return pino({ level: options.level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination);
}

function standardError(format: "json" | "pretty"): DestinationStream {
  if (format === "json") return pino.destination({ dest: 2, sync: true });
  // Loaded here, because a service that writes JSON has no need of it.
  const { pinoPretty } = load("./pretty-log.ts") as typeof PrettyLog;
  return pinoPretty();
}

/** The loggable parts of an unexpected error: its class, code and origin, but not its message. */
export function describeError(error: unknown): {
  readonly error: string;
  readonly code?: string;
  readonly at?: string;
} {
  if (!(error instanceof Error)) return { error: typeof error };
  const { code } = error as { code?: unknown };
  // The stack begins with the message, which may contain anything, including lines that look like frames.
  const [stack = "", said] = [error.stack, error.message === "" ? "" : `: ${error.message}`];
  const frames = stack.slice(stack.indexOf(said) + said.length);
  const frame = frames.split("\n").find((line) => line.startsWith("    at "));
  return {
    error: /^\w{1,60}$/.test(error.name) ? error.name : "Error",
    ...(typeof code === "string" && /^[\w.]{1,60}$/.test(code) ? { code } : {}),
    ...(frame ? { at: frame.trim().replace(/^at /, "") } : {}),
  };
}
