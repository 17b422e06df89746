import { deleteCredential as deleteRow } from "#db/credentials.ts";
import type { Database } from "#db/pool.ts";
import { failIdleRunsOf } from "#db/runs.ts";
import { isId } from "#domain/ids.ts";
import { notFound } from "#domain/problem.ts";
import { failpoint } from "#lib/failpoint.ts";
import type { Answer } from "./replay-or-run.ts";
import type { Caller } from "./services.ts";

/**
 * `DELETE /credentials/{credentialId}`, inside the caller's transaction: the sealed secret, its data key and its cached
 * logins are gone with it; queued runs that need it fail, runs under way stop at their next node boundary. It always goes
 * through: a user's disconnect can't be blocked (design, page 1, Delete). Throws Problem 404.
 */
export async function deleteCredential(
  tx: Database,
  caller: Caller,
  id: string,
): Promise<{ readonly answer: Answer; readonly failedRunIds: readonly string[] }> {
  const deleted = isId("credential", id) && (await deleteRow(tx, caller.account.id, id));
  if (!deleted) throw notFound("Credential");
  const failedRunIds = await failIdleRunsOf(tx, id);
  await failpoint("credential.after_delete");
  return { answer: { status: 204, body: "" }, failedRunIds };
}
