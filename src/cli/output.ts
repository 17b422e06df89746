import { styleText } from "node:util";
import { ExplainedError } from "#lib/explained-error.ts";

/** Exit codes are stable for scripts (docs/decisions/0032). A command that a signal interrupts ends with 128 and the signal's number. */
export const EXIT_CODES = {
  done: 0,
  /** The command failed, or found something wrong (`doctor`, `validate`, `audit verify`). */
  failed: 1,
  /** The command line is invalid. */
  usage: 2,
  /** `plan` found changes. */
  changes: 3,
  /** The change was proposed and waits for admins. */
  proposed: 4,
} as const;

/** A command could not do what was asked. People see only the message. */
export class CommandFailed extends ExplainedError {
  readonly exitCode: number;

  constructor(message: string, exitCode: number = EXIT_CODES.failed) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Results go to standard output. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Names as in the operator API, such as `created_at`; times as text. */
function toSnakeCase(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toSnakeCase);
  if (typeof value !== "object" || value === null || value instanceof Date) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [
      key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      toSnakeCase(each),
    ]),
  );
}

/** Prints a complete list in the form of every list of `--json`: `{items, next_cursor}`. */
export function printItems(rows: readonly object[]): void {
  print(JSON.stringify({ items: toSnakeCase(rows), next_cursor: null }));
}

/** Prints one item in the form of the items of a list. */
export function printItem(item: object): void {
  print(JSON.stringify(toSnakeCase(item)));
}

/** A reader such as `| head -1` may close the pipe early: further output is dropped, and the command runs to its end. */
export function outliveClosedPipes(): void {
  for (const stream of [process.stdout, process.stderr]) {
    if (outlived.has(stream)) continue;
    outlived.add(stream);
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error;
    });
  }
}

const outlived = new WeakSet<object>();

/** Progress and messages go to standard error, so that scripts can read the result alone. */
export function tell(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Text from a target must not control the terminal. */
export const plain = (text: string): string => text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, " ");

type Style = Parameters<typeof styleText>[0];

/** Colour on a terminal, plain text elsewhere and with NO_COLOR. */
export function paint(style: Style, text: string): string {
  return styleText(style, text, { stream: process.stdout });
}

const PROGRESS_AFTER_MS = 800;

/** Prints a progress message when the work takes longer than a moment. */
export async function withProgress<T>(what: string, work: Promise<T>): Promise<T> {
  const timer = setTimeout(() => tell(`${what} …`), PROGRESS_AFTER_MS);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}

/** Formats rows as aligned columns under their headings. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => (row[column] ?? "").length)),
  );
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd();
  return [paint("bold", line(headings)), ...rows.map(line)].join("\n");
}
