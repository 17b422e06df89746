import { accountIdsOf } from "#actions/operator-error.ts";
import { revokeApiKey } from "#actions/keys/revoke-api-key.ts";
import type { Needs } from "#actions/services.ts";
import { listKeys } from "#db/api-keys.ts";
import type { Database } from "#db/connection/pool.ts";
import { isId } from "#domain/ids.ts";
import { notFound } from "#domain/problem.ts";
import { actorOf, type Principal } from "./operator-caller.ts";

/** Lists the keys of one account, or of all. Throws OperatorError. */
export async function listApiKeys(
  db: Database,
  account: string | undefined,
  limit: readonly string[] | null,
) {
  const accountIds = await accountIdsOf(db, account, limit);
  return (await listKeys(db, accountIds)).map((key) => ({
    id: key.id,
    account: key.account,
    name: key.name,
    blueprints: key.blueprintKeys && [...key.blueprintKeys],
    scopes: key.scopes && [...key.scopes],
    created_at: key.createdAt.toISOString(),
    expires_at: key.expiresAt?.toISOString() ?? null,
    is_expired: key.isExpired,
    revoked_at: key.revokedAt?.toISOString() ?? null,
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
    replaced_by: key.replacedBy,
    created_by: key.createdBy,
  }));
}

/** Throws Problem 404. */
export async function revokeKeyOf(
  services: Needs<"db" | "signing">,
  caller: Principal,
  id: string,
): Promise<void> {
  const isKnown = isId("apiKey", id);
  if (!isKnown || !(await revokeApiKey(services.db, services.signing, id, actorOf(caller))))
    throw notFound("API key");
}
