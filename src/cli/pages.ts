import { InvalidArgumentError, type Command } from "commander";
import type { Database } from "#db/connection/pool.ts";
import { limits } from "#domain/limits.ts";
import type { Composition } from "./composition.ts";
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
    .option("--json", "print {items, next_cursor} as JSON, as the operator API returns it");
}

export function printMore(nextCursor: string | null): void {
  if (nextCursor !== null) print(`\nMore: --cursor ${nextCursor}`);
}

/** A time without its seconds, with its zone: 2026-11-22 07:09 UTC. */
export const minute = (time: Date | string): string =>
  `${(typeof time === "string" ? time : time.toISOString()).slice(0, 16).replace("T", " ")} UTC`;

/** Lists what belongs to the account of this name, or to all. Throws OperatorError for an unknown name. */
export async function listOf<Row>(
  composition: Composition,
  account: string | undefined,
  list: (db: Database, accountIds: readonly string[] | null) => Promise<Row>,
): Promise<Row> {
  const { accountIdsOf } = await import("#actions/operator-error.ts");
  return await composition.withDatabase(async (db) => await list(db, await accountIdsOf(db, account, null)));
}

/** An option's time, in UTC. */
export function readTime(text: string): string {
  const isIso = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)?)?$/.test(text);
  if (!isIso || Number.isNaN(Date.parse(text)))
    throw new InvalidArgumentError(
      "It must be a date or a time, such as 2026-11-01 or 2026-11-01T08:00:00Z.",
    );
  return new Date(text).toISOString();
}

function readLimit(text: string): number {
  if (!/^\d{1,3}$/.test(text) || Number(text) < 1 || Number(text) > limits.pageItemsMax)
    throw new InvalidArgumentError(`It must be a number from 1 to ${limits.pageItemsMax}.`);
  return Number(text);
}
