import { open, readFile, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { syncFolder } from "./new-file.ts";

/** An append-only file of lines. Appended lines are durable once `append` has returned. */
export interface AppendLog {
  readonly file: string;
  append(lines: readonly string[]): Promise<void>;
}

const NEWLINE = 0x0a;

/** The file is created with its first line. Several processes may append to one file. */
export function openAppendLog(file: string): AppendLog {
  // One write at a time, so that lines of this process never interleave; what comes meanwhile is the next one.
  let last: Promise<void> = Promise.resolve();
  let next: { readonly lines: string[]; readonly written: Promise<void> } | null = null;
  return {
    file,
    append: async (lines) => {
      if (next === null) {
        const mine: string[] = [];
        const written = last
          .catch(() => {})
          .then(async () => {
            next = null;
            await append(file, mine);
          });
        next = { lines: mine, written };
        last = written;
      }
      next.lines.push(...lines);
      await next.written;
    },
  };
}

async function append(file: string, lines: readonly string[]): Promise<void> {
  const handle = await open(file, "a+", 0o600);
  try {
    const { size } = await handle.stat();
    // After a crash in the middle of a line, the next entry starts on a new line.
    const isTorn = size > 0 && (await byteAt(handle, size - 1)) !== NEWLINE;
    // All of it: a single write on a disk with little room left may end early, without an error.
    await handle.appendFile(`${isTorn ? "\n" : ""}${lines.map((line) => `${line}\n`).join("")}`);
    await handle.sync();
    if (size === 0) await syncFolder(dirname(file));
  } finally {
    await handle.close();
  }
}

async function byteAt(handle: FileHandle, position: number): Promise<number | undefined> {
  const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, position);
  return buffer[0];
}

/** The lines that are JSON objects, with their line numbers; none if the file doesn't exist. Other lines are only counted. */
export async function readLog(
  file: string,
): Promise<{ readonly lines: readonly LogLine[]; readonly unreadable: number }> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "";
    throw error;
  });
  const lines: LogLine[] = [];
  let unreadable = 0;
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    const value = parseObject(line);
    if (value) lines.push({ number: index + 1, value });
    else unreadable++;
  }
  return { lines, unreadable };
}

export interface LogLine {
  readonly number: number;
  readonly value: Readonly<Record<string, unknown>>;
}

function parseObject(line: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}
