import type { Database } from "#db/connection/pool.ts";
import { findRunOfAnyAccount } from "#db/runs/runs.ts";
import { readRunReference } from "#domain/ids.ts";
import { OperatorError } from "#actions/operator-error.ts";

/** Finds a run of any account by its `run_…` id or run key. Throws OperatorError. */
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
