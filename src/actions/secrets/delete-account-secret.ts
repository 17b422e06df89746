import { deleteAccountSecret } from "#db/account-secrets.ts";
import { recordAudit } from "#db/audit-entries.ts";
import type { Database } from "#db/connection/pool.ts";
import type { AuditActor } from "#domain/audit.ts";
import type { Signing } from "#lib/signing.ts";
import { listSecretUses } from "./list-secret-uses.ts";
import { OperatorError, requireAccount } from "#actions/operator-error.ts";

/**
 * Deletes a secret immediately and permanently. Throws OperatorError if there is no secret of that name or, without `force`, if
 * current strategies refer to it.
 */
export async function deleteAccountSecretAs(
  services: { readonly db: Database; readonly signing: Signing },
  actor: AuditActor,
  secret: { readonly account: string; readonly name: string; readonly force: boolean },
): Promise<void> {
  const { account, name, force } = secret;
  const { id: accountId } = await requireAccount(services.db, account);
  await services.db.transaction(async (tx) => {
    const audited = await deleteAccountSecret(tx, accountId, name);
    if (!audited) throw new OperatorError(`Account "${account}" has no secret ${name}.`, "missing");
    const uses = (await listSecretUses(tx)).get(`${account}/${name}`) ?? [];
    if (uses.length > 0 && !force)
      throw new OperatorError(
        `The secret ${name} of ${account} is used by ${uses.join(", ")}, whose sign-ins and runs would fail. ` +
          "Change or retire them first, or delete it with `force`.",
      );
    await recordAudit(tx, services.signing.audit, {
      accountId,
      actor,
      action: "secret.delete",
      subjectId: name,
      detail: { ...audited, ...(uses.length > 0 && { strategies: uses.join(" ") }) },
    });
  });
}
