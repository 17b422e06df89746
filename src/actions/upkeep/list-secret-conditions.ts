import { listAccounts } from "#db/accounts.ts";
import { listStrategies } from "#db/config-documents.ts";
import type { Database } from "#db/connection/pool.ts";
import { formatPath } from "#domain/config-problem.ts";
import { findSecretUsesOf } from "#expressions/secret-use.ts";
import { loginTypes } from "#strategies/registry.ts";

export interface SecretCondition {
  readonly account: string;
  readonly strategyId: string;
  /** A path as in `validate`: `login.steps[2].when`. */
  readonly places: readonly string[];
}

/**
 * Current strategies whose expressions could disclose a secret field bit by bit. `apply` now refuses them; those that were
 * applied before still work.
 */
export async function listSecretConditions(db: Database): Promise<readonly SecretCondition[]> {
  const slugs = new Map((await listAccounts(db)).map(({ id, slug }) => [id, slug]));
  return (await listStrategies(db)).flatMap(({ accountId, retired, strategy }) => {
    const type = loginTypes.get(strategy.login.type);
    if (retired || type === undefined) return [];
    const places = findSecretUsesOf(type.schema, strategy).map(({ path }) => formatPath(["login", ...path]));
    const account = slugs.get(accountId) ?? accountId;
    return places.length === 0 ? [] : [{ account, strategyId: strategy.id, places }];
  });
}

/** A sentence that describes the problem and its remedy. */
export const describeSecretCondition = ({ account, strategyId, places }: SecretCondition): string =>
  `the login of the strategy ${account}/${strategyId} depends on secret fields (${places.join(", ")}). It keeps working, but test logins do not ` +
  "show those steps. Compare fields that are not secret, or use `$exists($credential.<field>)`, and apply it again";
