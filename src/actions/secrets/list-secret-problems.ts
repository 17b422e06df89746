import { listAccountSecrets } from "#db/account-secrets.ts";
import { listAccounts } from "#db/accounts.ts";
import { listStrategies } from "#db/config-documents.ts";
import type { Database } from "#db/connection/pool.ts";
import { secretReference } from "#domain/account-secret.ts";
import { tokenOrigin, type KnownSecrets } from "#actions/config/check-client-secret.ts";

/** The secrets that this process has from other sources than the database. */
export interface SecretSources {
  /** The environment variable is set and is not one of the service's own. */
  hasVariable(name: string): boolean;
  /** The secrets of LATCHKEY_CLIENT_SECRETS_FILE. */
  readonly inFile: KnownSecrets;
}

/** A current strategy whose client secret needs attention. */
export interface SecretProblem {
  readonly account: string;
  readonly strategyId: string;
  /** The secret's name, or the variable's. */
  readonly name: string;
  /** `variable`: its logins work; those of the others fail. */
  readonly kind: "missing_secret" | "other_origin" | "missing_variable" | "variable";
  /** The token endpoint's origin, if the document states it. */
  readonly origin: string | null;
}

/** The stored secrets, with the origins that each may reach. */
export async function listKnownSecrets(db: Database, inFile: KnownSecrets): Promise<KnownSecrets> {
  const kept = await listAccountSecrets(db, null);
  // The file's secrets have precedence over the database's, as in use.
  return new Map([
    ...kept.map(({ account, name, origins }) => [`${account}/${name}`, origins] as const),
    ...inFile,
  ]);
}

/** Current strategies whose client secret is missing here, is for another server, or is still an environment variable. */
export async function listSecretProblems(
  db: Database,
  sources: SecretSources,
): Promise<readonly SecretProblem[]> {
  const slugs = new Map((await listAccounts(db)).map(({ id, slug }) => [id, slug]));
  const known = await listKnownSecrets(db, sources.inFile);
  return (await listStrategies(db)).flatMap(({ accountId, retired, strategy }): readonly SecretProblem[] => {
    const reference = secretReference(strategy.login);
    if (retired || reference === null) return [];
    const { name } = reference;
    const account = slugs.get(accountId) ?? accountId;
    const origin = tokenOrigin(strategy.login);
    const problem = { account, strategyId: strategy.id, name, origin };
    const origins = known.get(`${account}/${name}`);
    if (origins !== undefined)
      return origin === null || origins.includes(origin) ? [] : [{ ...problem, kind: "other_origin" }];
    if (reference.kind === "secret") return [{ ...problem, kind: "missing_secret" }];
    return [{ ...problem, kind: sources.hasVariable(name) ? "variable" : "missing_variable" }];
  });
}

/** What is wrong, without the remedy: for a page that offers it. */
export const explainSecretProblem = (problem: SecretProblem): string => partsOf(problem)[0];

/** A sentence that describes the problem and its remedy. */
export const describeSecretProblem = (problem: SecretProblem): string => partsOf(problem).join(" ");

function partsOf({ account, strategyId, name, kind, origin }: SecretProblem): readonly [string, string] {
  const strategy = `the strategy ${account}/${strategyId}`;
  const set = `latchkey secrets set --account ${account} ${name} --for ${origin ?? "ORIGIN"}`;
  switch (kind) {
    case "missing_secret":
      return [`${strategy} uses the secret ${name}, which the account does not have.`, `Set it: ${set}`];
    case "other_origin":
      return [
        `${strategy} would send the secret ${name} to ${origin ?? "a server"}, to which it may not be sent.`,
        `Correct the strategy, or allow it: ${set}`,
      ];
    case "missing_variable":
      return [
        `${name} is not set here: ${strategy} takes its client's secret from it.`,
        `Set it in the environment of every serve process, or keep it as a secret: ${set}`,
      ];
    case "variable":
      return [
        `${strategy} takes its client's secret from the variable ${name}, which no new document may name.`,
        `Take it over: latchkey secrets import-env`,
      ];
  }
}
