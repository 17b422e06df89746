import { recordAudit } from "#db/audit-entries.ts";
import { deleteOtherSessions } from "#db/operators/operator-sessions.ts";
import {
  changeOperator,
  countOtherAdmins,
  insertOperator,
  limitPassword,
  lockOperator,
  saveOidcLink,
  saveTotpNonce,
  type StoredOperator,
} from "#db/operators/operators.ts";
import type { Database } from "#db/connection/pool.ts";
import type { AuditAction } from "#domain/audit-actions.ts";
import type { AuditActor, AuditEvent } from "#domain/audit.ts";
import { ID_PREFIX, isId } from "#domain/ids.ts";
import { limits } from "#domain/limits.ts";
import { isOperatorName, normaliseOperatorName, type OperatorRole } from "#domain/operator.ts";
import { describeRefused, RowRefused } from "#domain/refused-row.ts";
import { newId, randomBase62 } from "#lib/new-id.ts";
import { hashPassword } from "#lib/password.ts";
import type { Signing } from "#lib/signing.ts";
import { OperatorError } from "#actions/operator-error.ts";
import { idsOf } from "./account-limit.ts";

/** The actor: a signed-in admin, or the command line. */
export interface ManageContext {
  readonly db: Database;
  readonly signing: Pick<Signing, "audit" | "operators">;
  readonly actor: AuditActor;
}

const PASSWORD_CHARACTERS = 20;

/** Creates an operator. The password is only in the result, and must be changed at the first sign-in. Throws OperatorError. */
export async function createOperator(
  context: ManageContext,
  request: {
    readonly email: string;
    readonly role: OperatorRole;
    /** The names of the accounts that the operator is limited to; null: all, also later ones. */
    readonly accounts: readonly string[] | null;
  },
): Promise<{ readonly id: string; readonly email: string; readonly password: string }> {
  const email = normaliseOperatorName(request.email);
  if (!isOperatorName(email)) throw new OperatorError(`The email must have the form name@example.com.`);
  const accountIds = request.accounts && (await idsOf(context.db, request.accounts));
  const id = newId(ID_PREFIX.operator);
  const password = randomBase62(PASSWORD_CHARACTERS);
  const passwordHash = await hashPassword(password, context.signing.operators.passwordKey);
  await context.db.transaction(async (tx) => {
    if (!(await insertOperator(tx, { id, email, passwordHash, role: request.role, accountIds })))
      throw new OperatorError(`The operator ${email} already exists.`);
    const audited = await limitPassword(tx, id, limits.firstPasswordMs);
    await record(context, tx, "operator.create", id, {
      role: request.role,
      accounts: accountIds?.join(",") ?? null,
      ...audited,
    });
  });
  return { id, email, password };
}

/** Ends the operator's sessions and refuses sign-ins. The last admin can't be disabled. Throws OperatorError. */
export async function disableOperator(context: ManageContext, id: string): Promise<void> {
  await change(context, id, async (tx, operator) => {
    if (operator.disabledAt !== null) return;
    await requireAnotherAdmin(tx, operator);
    const audited = await changeOperator(tx, operator, { isDisabled: true });
    await deleteOtherSessions(tx, id, null);
    await record(context, tx, "operator.disable", id, audited);
  });
}

/** Throws OperatorError. */
export async function enableOperator(context: ManageContext, id: string): Promise<void> {
  await change(context, id, async (tx, operator) => {
    if (operator.disabledAt === null) return;
    const audited = await changeOperator(tx, operator, { isDisabled: false });
    await record(context, tx, "operator.enable", id, audited);
  });
}

/** Takes effect with the next request. Open sessions end, so that operators notice the change. */
export async function changeRole(context: ManageContext, id: string, role: OperatorRole): Promise<void> {
  await change(context, id, async (tx, operator) => {
    if (operator.role === role) return;
    await requireAnotherAdmin(tx, operator);
    const audited = await changeOperator(tx, operator, { role });
    await deleteOtherSessions(tx, id, null);
    await record(context, tx, "operator.role_change", id, { from: operator.role, to: role, ...audited });
  });
}

/**
 * Limits an operator to accounts, by their names; null: no longer. Takes effect with the next request. Open sessions end, so that operators
 * notice the change. Throws OperatorError.
 */
export async function limitOperatorTo(
  context: ManageContext,
  id: string,
  accounts: readonly string[] | null,
): Promise<void> {
  const accountIds = accounts && (await idsOf(context.db, accounts));
  await change(context, id, async (tx, operator) => {
    const [from, to] = [operator.accountIds, accountIds].map((ids) => ids?.join(",") ?? null);
    if (from === to) return;
    if (accountIds !== null) await requireAnotherAdmin(tx, operator);
    const audited = await changeOperator(tx, operator, { accountIds });
    await deleteOtherSessions(tx, id, null);
    await record(context, tx, "operator.accounts_change", id, {
      from: from ?? null,
      to: to ?? null,
      ...audited,
    });
  });
}

/** Sets a new password, which is only in the result and must be changed at the next sign-in; sessions end. Throws OperatorError. */
export async function resetPassword(context: ManageContext, id: string): Promise<string> {
  const password = randomBase62(PASSWORD_CHARACTERS);
  const passwordHash = await hashPassword(password, context.signing.operators.passwordKey);
  await change(context, id, async (tx, operator) => {
    await changeOperator(tx, operator, { passwordHash });
    const audited = await limitPassword(tx, id, limits.firstPasswordMs);
    await deleteOtherSessions(tx, id, null);
    await record(context, tx, "operator.password_reset", id, audited);
  });
  return password;
}

/** Removes the second factor and its recovery codes; sessions end. Throws OperatorError. */
export async function resetSecondFactor(context: ManageContext, id: string): Promise<void> {
  await change(context, id, async (tx, operator) => {
    const audited = await saveTotpNonce(tx, operator, null);
    await deleteOtherSessions(tx, id, null);
    await record(context, tx, "operator.totp_reset", id, audited);
  });
}

/**
 * Unlinks an operator: the next person who signs in at the provider with the operator's address becomes the operator. Ends the
 * operator's sessions. Throws OperatorError.
 */
export async function unlinkOperator(context: ManageContext, id: string): Promise<void> {
  await change(context, id, async (tx, operator) => {
    if (operator.oidcLinkedAt === null) return;
    const audited = await saveOidcLink(tx, operator, null);
    await deleteOtherSessions(tx, id, null);
    await record(context, tx, "operator.oidc_unlink", id, audited);
  });
}

async function change(
  { db }: ManageContext,
  id: string,
  work: (tx: Database, operator: StoredOperator) => Promise<void>,
): Promise<void> {
  await db.transaction(
    async (tx) => {
      const operator = isId("operator", id) ? await lockOperator(tx, id).catch(explainRefused) : undefined;
      if (!operator)
        throw new OperatorError(
          `There is no operator ${id}. \`latchkey operators list\` shows them.`,
          "missing",
        );
      await work(tx, operator);
    },
    // Two admins have changed each other at the same time.
    { retry: true },
  );
}

/** A forged row is not changed, because the change would sign it. */
function explainRefused(error: unknown): never {
  if (!(error instanceof RowRefused)) throw error;
  throw new OperatorError(
    `${describeRefused(error)} Nothing was changed. Delete that row in the database, and create the operator again.`,
  );
}

async function requireAnotherAdmin(tx: Database, operator: StoredOperator): Promise<void> {
  if (operator.role !== "admin" || operator.accountIds !== null || operator.disabledAt !== null) return;
  if ((await countOtherAdmins(tx, operator.id)) > 0) return;
  throw new OperatorError(`${operator.email} is the only admin of all accounts. Create another one first.`);
}

async function record(
  { signing, actor }: ManageContext,
  tx: Database,
  action: AuditAction,
  subjectId: string,
  detail: AuditEvent["detail"] = {},
): Promise<void> {
  await recordAudit(tx, signing.audit, { accountId: null, actor, action, subjectId, detail });
}
