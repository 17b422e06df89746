import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { isJsonObject, type Json } from "#domain/json.ts";
import { limits } from "#domain/limits.ts";
import type { WantedChanges } from "#domain/review.ts";
import { CommandFailed } from "./output.ts";

type Edits = WantedChanges["edits"];

const KEYS = ["ordinal", "data"];
const PROBLEMS_MAX = 100;

/**
 * Reads a reviewer's edits, one per line: `{"ordinal": 3, "data": {…}}`. All lines are read before any problem is reported, so that
 * every mistake is listed at once. Throws CommandFailed.
 */
export async function readEditsFile(path: string): Promise<Edits> {
  const edits: { at: string; ordinal: Json; data: Json }[] = [];
  const problems: string[] = [];
  let number = 0;
  let bytes = 0;
  try {
    for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Infinity })) {
      const at = `${path}:${++number}`;
      bytes += Buffer.byteLength(line) + 1;
      if (bytes > limits.reviewEditsBytesMax) throw new CommandFailed(tooLarge(path));
      const read = readLine(number === 1 ? line.replace(/^\uFEFF/, "") : line);
      if (typeof read === "string") problems.push(`${at}: ${read}`);
      else if (read !== null)
        edits.push({ at, ordinal: read["ordinal"] ?? null, data: read["data"] ?? null });
    }
  } catch (error) {
    if (error instanceof CommandFailed) throw error;
    throw new CommandFailed(`${path} can't be read (${(error as NodeJS.ErrnoException).code ?? "error"}).`);
  }
  if (problems.length > 0) throw new CommandFailed(refusal(problems));
  return edits;
}

/** The message for changes that can't be applied. */
export function refusal(problems: readonly string[]): string {
  const more = problems.length - PROBLEMS_MAX;
  const shown = more > 0 ? [...problems.slice(0, PROBLEMS_MAX), `… and ${more} more`] : problems;
  return `${shown.join("\n")}\nNothing was changed.`;
}

/** null: an empty line. A string is the problem; it never quotes the line, which is someone's data. */
function readLine(line: string): Readonly<Record<string, Json>> | string | null {
  if (line.trim() === "") return null;
  if (Buffer.byteLength(line) > limits.reviewEditBytesMax)
    return `is longer than ${limits.reviewEditBytesMax} bytes`;
  let json: unknown;
  try {
    json = JSON.parse(line);
  } catch {
    return "is not JSON";
  }
  if (!isJsonObject(json)) return 'must be an object, as in {"ordinal": 3, "data": {…}}';
  const unknown = Object.keys(json).find((key) => !KEYS.includes(key));
  if (unknown !== undefined)
    return `has the key ${JSON.stringify(unknown.slice(0, 60))}; an edit has \`ordinal\` and \`data\`, and its errors are computed again`;
  const missing = KEYS.find((key) => !Object.hasOwn(json, key));
  return missing === undefined ? json : `the key \`${missing}\` is missing`;
}

const tooLarge = (path: string): string =>
  `${path} is larger than ${limits.reviewEditsBytesMax} bytes. Edit fewer records, or change the Blueprint or its source.`;
