import { deleteAccountSecretAs } from "#actions/secrets/delete-account-secret.ts";
import {
  describeSecretProblem,
  explainSecretProblem,
  listSecretProblems,
} from "#actions/secrets/list-secret-problems.ts";
import { listSecretUses } from "#actions/secrets/list-secret-uses.ts";
import { accountIdsOf } from "#actions/operator-error.ts";
import type { Needs } from "#actions/services.ts";
import { setAccountSecret, type NewAccountSecret } from "#actions/secrets/set-account-secret.ts";
import { listAccountSecrets } from "#db/account-secrets.ts";
import { accountSecretProblem } from "#domain/account-secret.ts";
import { invalidField } from "#domain/problem.ts";
import { namesOf } from "./account-limit.ts";
import { actorOf, type Principal } from "./operator-caller.ts";

/** Lists the secrets of one account, or of all, without values. Throws OperatorError. */
export async function listSecrets(
  services: Needs<"db" | "secretSources">,
  account: string | undefined,
  limit: readonly string[] | null,
) {
  const { db, secretSources: sources } = services;
  const accountIds = await accountIdsOf(db, account, limit);
  const names = limit && (await namesOf(db, limit));
  const uses = await listSecretUses(db);
  const secrets = await listAccountSecrets(db, accountIds);
  const problems = (await listSecretProblems(db, sources)).filter((each) =>
    account === undefined ? (names?.includes(each.account) ?? true) : each.account === account,
  );
  return {
    items: secrets.map((secret) => ({
      account: secret.account,
      name: secret.name,
      origins: [...secret.origins],
      strategies: [...(uses.get(`${secret.account}/${secret.name}`) ?? [])],
      set_at: secret.updatedAt.toISOString(),
      set_by: secret.setBy,
      created_at: secret.createdAt.toISOString(),
      is_overridden: sources.inFile.has(`${secret.account}/${secret.name}`),
    })),
    warnings: problems.map((each) => sentence(describeSecretProblem(each))),
    problems: problems.map((each) => ({
      account: each.account,
      strategy: each.strategyId,
      name: each.name,
      kind: each.kind,
      origin: each.origin,
      message: capitalized(explainSecretProblem(each)),
    })),
  };
}

/** Throws OperatorError, Problem 422. Neither contains the value. */
export async function setSecretAs(
  services: Needs<"db" | "secretSources" | "signing" | "vault">,
  caller: Principal,
  secret: NewAccountSecret,
) {
  const problem = accountSecretProblem(secret);
  if (problem !== null) throw invalidField(problem.field, problem.message);
  const change = await setAccountSecret(services, secret, actorOf(caller));
  const { account, name } = secret;
  return {
    change,
    warnings: await warningsOf(services, (each) => each.account === account && each.name === name),
  };
}

/** Throws OperatorError if there is no such secret, or current strategies use it. */
export async function deleteSecretAs(
  services: Needs<"db" | "signing">,
  caller: Principal,
  secret: { readonly account: string; readonly name: string; readonly force: boolean },
): Promise<void> {
  await deleteAccountSecretAs(services, actorOf(caller), secret);
}

async function warningsOf(
  { db, secretSources }: Needs<"db" | "secretSources">,
  isAsked: (problem: { readonly account: string; readonly name: string }) => boolean,
): Promise<string[]> {
  const problems = await listSecretProblems(db, secretSources);
  return problems.filter(isAsked).map((each) => sentence(describeSecretProblem(each)));
}

const capitalized = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
const sentence = (text: string): string => `${capitalized(text)}.`;
