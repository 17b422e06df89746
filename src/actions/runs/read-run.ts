import type { VisibleRun } from "#db/runs/runs.ts";
import { findRun } from "#db/runs/runs.ts";
import { readRunReference } from "#domain/ids.ts";
import { notFound } from "#domain/problem.ts";
import { authorizeBlueprint } from "#actions/keys/authenticate.ts";
import type { Caller, Needs } from "#actions/services.ts";

/** A run that the caller may read, by `run_…` id or run key. Throws Problem 404, then 403. */
export async function findVisibleRun(
  services: Needs<"db">,
  caller: Caller,
  reference: string,
): Promise<VisibleRun> {
  const parsed = readRunReference(reference);
  const run = parsed && (await findRun(services.db, caller.account.id, parsed));
  if (!run) throw notFound("Run");
  authorizeBlueprint(caller, run.blueprintKey);
  return run;
}
