import { styleText } from "node:util";
import { ExplainedError } from "#lib/explained-error.ts";

/** The exit code of a command line that asks for something impossible: a wrong option, value or file. */
export const USAGE = 2;

/** A command could not do what was asked; the message is all that people see. Exit code 1 unless it has one of its own. */
export class CommandFailed extends ExplainedError {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Results go to standard output. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** As the operator API names things: `created_at`, and times as texts. */
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

/** A whole list as `--json` has every list: `{items, next_cursor}`. */
export function printItems(rows: readonly object[]): void {
  print(JSON.stringify({ items: toSnakeCase(rows), next_cursor: null }));
}

/** A reader that has seen enough (`| head -1`) closes the pipe: what is written from then on is nobody's, and the command goes on to its end. */
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

type Style = Parameters<typeof styleText>[0];

/** Colour on a terminal, plain text elsewhere and with NO_COLOR. */
export function paint(style: Style, text: string): string {
  return styleText(style, text, { stream: process.stdout });
}

const PATIENCE_MS = 800;

/** Says what is being waited for when it takes longer than a moment. */
export async function withProgress<T>(what: string, work: Promise<T>): Promise<T> {
  const timer = setTimeout(() => tell(`${what} …`), PATIENCE_MS);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}

/** Rows as aligned columns under their headings. */
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
