import { listAccounts } from "#db/accounts.ts";
import { listStrategies } from "#db/config-documents.ts";
import type { Database } from "#db/connection/pool.ts";
import { secretReference } from "#domain/account-secret.ts";

/** By `<account>/<secret>`: the ids of the current strategies that refer to it, in order. Retired strategies are omitted. */
export async function listSecretUses(db: Database): Promise<ReadonlyMap<string, readonly string[]>> {
  const slugs = new Map((await listAccounts(db)).map(({ id, slug }) => [id, slug]));
  const uses = new Map<string, string[]>();
  for (const { accountId, retired, strategy } of await listStrategies(db)) {
    const reference = secretReference(strategy.login);
    if (retired || reference === null) continue;
    const key = `${slugs.get(accountId) ?? accountId}/${reference.name}`;
    uses.set(key, [...(uses.get(key) ?? []), strategy.id].toSorted());
  }
  return uses;
}
