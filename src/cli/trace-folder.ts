import { chmodSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TracedExchange } from "#engine/local/trace.ts";
import { CommandFailed, USAGE } from "./output.ts";

/** A folder for one run's exchanges: its owner's alone. */
export interface TraceFolder {
  readonly count: number;
  keep(exchange: TracedExchange): void;
}

/** Makes the folder, or takes an empty one. Throws CommandFailed: with USAGE when it can't be taken. */
export function openTraceFolder(path: string): TraceFolder {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    if (readdirSync(path).length > 0)
      throw new CommandFailed(`--trace: ${path} is not empty. Name a new folder.`, USAGE);
    chmodSync(path, 0o700);
  } catch (error) {
    throw error instanceof CommandFailed ? error : refusal(path, error, USAGE);
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
        throw refusal(file, error, 1);
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
