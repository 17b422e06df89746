import { listVariableStrategies } from "#db/config-documents.ts";
import type { Database } from "#db/connection/pool.ts";
import { secretReference } from "#domain/account-secret.ts";
import { namedOrigins } from "#actions/config/check-client-secret.ts";

/** By `<account id>/<variable>`: the origins that the variable's value may be sent to. */
export type VariableOrigins = ReadonlyMap<string, readonly string[]>;

/** Covers every version of a strategy that refers to a variable: runs and sign-ins of older versions may be in progress. */
export async function listVariableOrigins(db: Database): Promise<VariableOrigins> {
  const origins = new Map<string, readonly string[]>();
  for (const { accountId, strategy } of await listVariableStrategies(db)) {
    const reference = secretReference(strategy.login);
    if (reference?.kind !== "variable") continue;
    const key = `${accountId}/${reference.name}`;
    origins.set(key, [...new Set([...(origins.get(key) ?? []), ...namedOrigins(strategy)])]);
  }
  return origins;
}
