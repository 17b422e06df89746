import { chmodSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TracedExchange } from "#engine/local/trace.ts";
import { CommandFailed, EXIT_CODES } from "./output.ts";

/** A folder for what a run has shown, readable only by its owner. */
export interface PrivateFolder {
  readonly count: number;
  keep(name: string, content: string | Uint8Array): void;
}

/**
 * Creates the folder that an option names, or uses an empty one. Throws CommandFailed, with the exit code of a usage error, when it
 * can't be used.
 */
export function openPrivateFolder(option: `--${string}`, path: string): PrivateFolder {
  const refusal = (at: string, error: unknown, exitCode: number): CommandFailed => {
    const { code } = error as NodeJS.ErrnoException;
    return new CommandFailed(`${option}: ${at} can't be written (${code ?? "error"}).`, exitCode);
  };
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    if (readdirSync(path).length > 0)
      throw new CommandFailed(`${option}: ${path} is not empty. Name a new folder.`, EXIT_CODES.usage);
    chmodSync(path, 0o700);
  } catch (error) {
    throw error instanceof CommandFailed ? error : refusal(path, error, EXIT_CODES.usage);
  }
  let count = 0;
  return {
    get count() {
      return count;
    },
    keep(name, content) {
      const file = join(path, name);
      try {
        writeFileSync(file, content, { flag: "wx", mode: 0o600 });
      } catch (error) {
        throw refusal(file, error, EXIT_CODES.failed);
      }
      count++;
    },
  };
}

/** The name of the file with an exchange, so that they are in their order. */
export const exchangeFile = ({ number, step }: TracedExchange): string =>
  `${String(number).padStart(4, "0")}-${slug(step)}.txt`;

/** The name of the file with a picture of a page. */
export const pictureFile = (number: number, node: string): string =>
  `${String(number).padStart(4, "0")}-${slug(node)}.png`;

const slug = (step: string): string =>
  step
    .replaceAll(/[^A-Za-z0-9]+/g, "-")
    .replaceAll(/^-+|-+$/g, "")
    .slice(0, 60) || "request";
