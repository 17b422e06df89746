import { randomUUID } from "node:crypto";
import { countAccountSecrets, saveAccountSecret } from "#db/account-secrets.ts";
import { recordAudit } from "#db/audit-entries.ts";
import type { Database } from "#db/connection/pool.ts";
import { accountSecretProblem, writeAccountSecret, type AccountSecret } from "#domain/account-secret.ts";
import type { AuditActor } from "#domain/audit.ts";
import { limits } from "#domain/limits.ts";
import type { Signing } from "#lib/signing.ts";
import { accountSecretBinding } from "#vault/binding.ts";
import type { Vault } from "#vault/vault.ts";
import { OperatorError, requireAccount } from "#actions/operator-error.ts";

export interface NewAccountSecret extends AccountSecret {
  /** The account's slug. */
  readonly account: string;
  readonly name: string;
}

/**
 * Stores a secret for an account, sealed together with the origins that it may reach; replaces the secret of the same name.
 * The vault need not hold private keys. Throws OperatorError, which never contains the value.
 */
export async function setAccountSecret(
  services: { readonly db: Database; readonly vault: Pick<Vault, "seal">; readonly signing: Signing },
  secret: NewAccountSecret,
  actor: AuditActor = { kind: "cli" },
): Promise<"created" | "replaced"> {
  const { name, origins } = secret;
  const problem = accountSecretProblem(secret);
  if (problem !== null) throw new OperatorError(problem.message);
  const { id: accountId } = await requireAccount(services.db, secret.account);
  const valueId = randomUUID();
  const plain = Buffer.from(writeAccountSecret(secret), "utf8");
  const sealed = await services.vault.seal(plain, accountSecretBinding(accountId, name, valueId));
  plain.fill(0);
  return await services.db.transaction(async (tx) => {
    const operatorId = actor.kind === "operator" ? actor.id : null;
    const { change, audited } = await saveAccountSecret(tx, {
      accountId,
      name,
      origins,
      valueId,
      operatorId,
      ...sealed,
    });
    if ((await countAccountSecrets(tx, accountId)) > limits.accountSecretsMax)
      throw new OperatorError(
        `Account "${secret.account}" has ${limits.accountSecretsMax} secrets, the maximum. Delete those that are no longer needed.`,
      );
    await recordAudit(tx, services.signing.audit, {
      accountId,
      actor,
      action: "secret.set",
      subjectId: name,
      detail: { change, origins: origins.join(" "), ...audited },
    });
    return change;
  });
}
