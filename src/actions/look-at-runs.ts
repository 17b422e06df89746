import type { Database } from "#db/pool.ts";
import {
  findShownRun,
  listRuns as listRows,
  type ListedRun,
  type RunFilter,
  type ShownRun,
} from "#db/run-list.ts";
import { findRunOfAnyAccount } from "#db/runs.ts";
import { readRunReference } from "#domain/ids.ts";
import { OperatorError, requireAccount } from "./operator-error.ts";

/** For operators: the runs of all accounts, or of one. */
export interface WantedRuns extends Omit<RunFilter, "accountId"> {
  readonly account: string | null;
  readonly limit: number;
}

/** `next`: what the next page comes after; null at the end. Throws OperatorError. */
export async function listRuns(
  db: Database,
  wanted: WantedRuns,
): Promise<{ readonly runs: readonly ListedRun[]; readonly next: string | null }> {
  const accountId = wanted.account === null ? null : (await requireAccount(db, wanted.account)).id;
  if (wanted.after !== null) await requireRun(db, wanted.after);
  const runs = await listRows(db, { ...wanted, accountId }, wanted.limit + 1);
  const page = runs.slice(0, wanted.limit);
  return { runs: page, next: runs.length > page.length ? (page.at(-1)?.id ?? null) : null };
}

/** By `run_…` id or run key, of whatever account. Throws OperatorError. */
export async function showRun(db: Database, reference: string): Promise<ShownRun> {
  const { id } = await requireRun(db, reference);
  const run = await findShownRun(db, id);
  if (!run) throw new OperatorError(`There is no run ${reference}.`);
  return run;
}

export async function requireRun(
  db: Database,
  reference: string,
): Promise<{ readonly id: string; readonly accountId: string }> {
  const parsed = readRunReference(reference);
  const run = parsed && (await findRunOfAnyAccount(db, parsed));
  if (!run)
    throw new OperatorError(`There is no run ${reference}. \`latchkey runs list\` shows them.`, "missing");
  return run;
}
