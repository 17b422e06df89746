import type { Database } from "#db/connection/pool.ts";

/** Locks the credential against concurrent test logins and deletes until the transaction ends. */
export async function lockCredential(
  tx: Database,
  id: string,
): Promise<{ readonly accountId: string; readonly strategyId: string } | undefined> {
  const rows = await tx.query<{ accountId: string; strategyId: string }>(
    `select account_id as "accountId", strategy_id as "strategyId" from credential where id = $1 for no key update`,
    [id],
  );
  return rows[0];
}

export async function findActiveTestLogin(
  tx: Database,
  credentialId: string,
): Promise<{ readonly id: string; readonly runKey: string } | undefined> {
  const rows = await tx.query<{ id: string; runKey: string }>(
    `select run.id, run.run_key as "runKey" from run
     where run.blueprint_id is null and run.ended_at is null
       and run.id in (select run_id from run_credential where credential_id = $1)`,
    [credentialId],
  );
  return rows[0];
}
