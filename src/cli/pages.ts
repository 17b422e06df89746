import { InvalidArgumentError, type Command } from "commander";
import { limits } from "#domain/limits.ts";
import { print } from "./output.ts";

/** The options of every list that the operator API returns in pages. */
export interface PageOptions {
  account?: string;
  limit?: number;
  cursor?: string;
  json?: boolean;
}

/** Adds the paging options after those of the list itself. */
export function addPageOptions(list: Command): Command {
  return list
    .option("--limit <number>", "how many (default: 50)", readLimit)
    .option("--cursor <text>", "start after this page: its `next_cursor`")
    .option("--json", "print {items, next_cursor} as JSON, as the operator API gives it");
}

export function printMore(nextCursor: string | null): void {
  if (nextCursor !== null) print(`\nMore: --cursor ${nextCursor}`);
}

/** A time in ISO 8601 without its seconds. */
export const minute = (time: string): string => time.slice(0, 16).replace("T", " ");

function readLimit(text: string): number {
  if (!/^\d{1,3}$/.test(text) || Number(text) < 1 || Number(text) > limits.pageItemsMax)
    throw new InvalidArgumentError(`It must be a number from 1 to ${limits.pageItemsMax}.`);
  return Number(text);
}
