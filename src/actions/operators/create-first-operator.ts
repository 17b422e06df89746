import { recordAudit } from "#db/audit-entries.ts";
import { countOperators, insertOperator, limitPassword } from "#db/operators/operators.ts";
import type { Database } from "#db/connection/pool.ts";
import { ID_PREFIX } from "#domain/ids.ts";
import { limits } from "#domain/limits.ts";
import { normaliseOperatorName } from "#domain/operator.ts";
import { newId, randomBase62 } from "#lib/new-id.ts";
import { hashPassword } from "#lib/password.ts";
import type { Signing } from "#lib/signing.ts";

const PASSWORD_CHARACTERS = 20;

/** The first operator, an admin, with a password that is shown once and changed at the first sign-in; null when there are operators already. */
export async function createFirstOperator(
  db: Database,
  signing: Signing,
  name: string,
): Promise<{ readonly email: string; readonly password: string } | null> {
  if ((await countOperators(db)) > 0) return null;
  const email = normaliseOperatorName(name);
  const password = randomBase62(PASSWORD_CHARACTERS);
  const operator = {
    id: newId(ID_PREFIX.operator),
    email,
    passwordHash: await hashPassword(password, signing.operators.passwordKey),
    role: "admin" as const,
    accountIds: null,
  };
  return await db.transaction(async (tx) => {
    if (!(await insertOperator(tx, operator))) return null;
    const audited = await limitPassword(tx, operator.id, limits.firstPasswordMs);
    await recordAudit(tx, signing.audit, {
      accountId: null,
      actor: { kind: "cli" },
      action: "operator.create",
      subjectId: operator.id,
      detail: { role: operator.role, ...audited },
    });
    return { email, password };
  });
}
