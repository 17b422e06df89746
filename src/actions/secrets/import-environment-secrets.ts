import { listAppliedDocuments } from "#db/config-documents.ts";
import type { Database } from "#db/connection/pool.ts";
import { secretReference } from "#domain/account-secret.ts";
import { formatProblem } from "#domain/config-problem.ts";
import { isJsonObject, type Json, type JsonObject } from "#domain/json.ts";
import { readStrategy } from "#domain/strategy.ts";
import type { Secret } from "#lib/secret.ts";
import type { Signing } from "#lib/signing.ts";
import type { Vault } from "#vault/vault.ts";
import { applyConfig } from "#actions/config/apply-config.ts";
import { namedOrigins } from "#actions/config/check-client-secret.ts";
import { listKnownSecrets } from "./list-secret-problems.ts";
import { OperatorError } from "#actions/operator-error.ts";
import { setAccountSecret } from "./set-account-secret.ts";

/** A strategy in force that refers to an environment variable. */
export interface ImportedSecret {
  /** Slug. */
  readonly account: string;
  readonly strategyId: string;
  /** The variable's name, which is also the secret's. */
  readonly name: string;
  readonly origins: readonly string[];
  /** null: it was imported. */
  readonly problem: string | null;
}

interface OldStrategy {
  readonly account: string;
  readonly strategyId: string;
  readonly name: string;
  readonly origins: readonly string[];
  readonly document: JsonObject;
}

/**
 * Imports the client secrets of strategies that refer to environment variables: each becomes a secret of its account under the same
 * name, for the origins that the strategies name, and each strategy gets a version that refers to it. Runs of older
 * versions find the secret by the variable's name. A secret that can't be imported is left as it is, and the import may be repeated.
 */
export async function importEnvironmentSecrets(
  services: { readonly db: Database; readonly vault: Pick<Vault, "seal">; readonly signing: Signing },
  environmentSecret: (name: string) => Secret | null,
): Promise<readonly ImportedSecret[]> {
  const old = await listOldStrategies(services.db);
  const groups = Map.groupBy(old, ({ account, name }) => `${account}/${name}`);
  const imported: ImportedSecret[] = [];
  for (const [key, strategies] of groups) {
    const origins = [...new Set(strategies.flatMap((strategy) => strategy.origins))];
    const known = (await listKnownSecrets(services.db, new Map())).get(key);
    const problem = known === undefined ? await keep(services, strategies, origins, environmentSecret) : null;
    for (const strategy of strategies) {
      const { account, strategyId, name } = strategy;
      imported.push({
        account,
        strategyId,
        name,
        origins: known ?? origins,
        problem: problem ?? (await rewrite(services, strategy)),
      });
    }
  }
  return imported;
}

async function listOldStrategies(db: Database): Promise<readonly OldStrategy[]> {
  return (await listAppliedDocuments(db)).flatMap(({ kind, account, id, document }) => {
    const parsed = JSON.parse(document) as Json;
    if (kind !== "strategy" || !isJsonObject(parsed)) return [];
    const strategy = readStrategy(parsed);
    const reference = secretReference(strategy.login);
    if (reference?.kind !== "variable") return [];
    const { name } = reference;
    return [{ account, strategyId: id, name, origins: namedOrigins(strategy), document: parsed }];
  });
}

/** Null: the variable's value was stored. */
async function keep(
  services: Parameters<typeof setAccountSecret>[0],
  [first]: readonly OldStrategy[],
  origins: readonly string[],
  environmentSecret: (name: string) => Secret | null,
): Promise<string | null> {
  if (first === undefined) return null;
  const { account, name } = first;
  const value = environmentSecret(name);
  if (value === null)
    return "the variable is not set here; run the command with the environment of `latchkey serve`";
  try {
    await setAccountSecret(services, { account, name, value: value.reveal(), origins });
    return null;
  } catch (error) {
    if (error instanceof OperatorError) return error.message;
    throw error;
  }
}

/** Null: the version in force refers to the secret. */
async function rewrite(
  { db, signing }: { readonly db: Database; readonly signing: Signing },
  { account, strategyId, name, document }: OldStrategy,
): Promise<string | null> {
  const { client_secret_env: _variable, ...login } = document["login"] as JsonObject;
  // Problems of the document's own kind are listed first.
  const fresh = {
    strategy: strategyId,
    ...document,
    login: { ...login, client_secret: { secret: name } },
  };
  const file = `${account}/${strategyId}`;
  const outcome = await applyConfig(db, signing, [{ file, text: JSON.stringify(fresh, null, 2) }]);
  if (!outcome.ok) return outcome.problems.map(formatProblem).join("\n");
  if (outcome.proposal === null) return null;
  return `the account requires a second admin for it: confirm ${outcome.proposal.id} in the dashboard, under Proposals`;
}
