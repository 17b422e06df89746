import { chmodSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TracedExchange } from "#engine/local/trace.ts";
import { CommandFailed, EXIT_CODES } from "./output.ts";

/** A folder for one run's exchanges, readable only by its owner. */
export interface TraceFolder {
  readonly count: number;
  keep(exchange: TracedExchange): void;
}

/** Creates the folder, or uses an empty one. Throws CommandFailed, with the exit code of a usage error, when it can't be used. */
export function openTraceFolder(path: string): TraceFolder {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    if (readdirSync(path).length > 0)
      throw new CommandFailed(`--trace: ${path} is not empty. Name a new folder.`, EXIT_CODES.usage);
    chmodSync(path, 0o700);
  } catch (error) {
    throw error instanceof CommandFailed ? error : refusal(path, error, EXIT_CODES.usage);
  }
  let count = 0;
  return {
    get count() {
      return count;
    },
    keep({ number, step, text }) {
      const file = join(path, `${String(number).padStart(4, "0")}-${slug(step)}.txt`);
      try {
        writeFileSync(file, text, { flag: "wx", mode: 0o600 });
      } catch (error) {
        throw refusal(file, error, EXIT_CODES.failed);
      }
      count++;
    },
  };
}

function refusal(path: string, error: unknown, exitCode: number): CommandFailed {
  const { code } = error as NodeJS.ErrnoException;
  return new CommandFailed(`--trace: ${path} can't be written (${code ?? "error"}).`, exitCode);
}

const slug = (step: string): string =>
  step
    .replaceAll(/[^A-Za-z0-9]+/g, "-")
    .replaceAll(/^-+|-+$/g, "")
    .slice(0, 60) || "request";
