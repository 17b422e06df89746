import { listAccounts } from "#db/accounts.ts";
import { listStrategies } from "#db/config-documents.ts";
import type { Database } from "#db/pool.ts";
import type { Secret } from "#lib/secret.ts";

export interface MissingVariable {
  readonly account: string;
  readonly strategyId: string;
  readonly variable: string;
}

/** The environment variables that strategies in force name and that are not set here. Their logins fail until they are. */
export async function listMissingVariables(
  db: Database,
  environmentSecret: (name: string) => Secret | null,
): Promise<readonly MissingVariable[]> {
  const slugs = new Map((await listAccounts(db)).map(({ id, slug }) => [id, slug]));
  return (await listStrategies(db)).flatMap(({ accountId, retired, strategy }) => {
    const variable = strategy.login["client_secret_env"];
    if (retired || typeof variable !== "string" || environmentSecret(variable) !== null) return [];
    return [{ account: slugs.get(accountId) ?? accountId, strategyId: strategy.id, variable }];
  });
}

/** One sentence with the remedy. */
export const describeMissing = ({ account, strategyId, variable }: MissingVariable): string =>
  `${variable} is not set here: the strategy ${account}/${strategyId} takes its client's secret from it. ` +
  "Set it in the environment of every serve process";
