import { OperatorError } from "#actions/operator-error.ts";
import { recordAudit } from "#db/audit-entries.ts";
import {
  insertOperatorToken,
  listOperatorTokens,
  revokeOperatorToken,
} from "#db/operators/operator-tokens.ts";
import { lockOperator } from "#db/operators/operators.ts";
import type { Database } from "#db/connection/pool.ts";
import { ID_PREFIX, isId } from "#domain/ids.ts";
import type { OperatorRole } from "#domain/operator.ts";
import { describeRefused, RowRefused } from "#domain/refused-row.ts";
import { newOperatorToken } from "#lib/api-key.ts";
import { newId } from "#lib/new-id.ts";
import { idsOf } from "./account-limit.ts";
import type { ManageContext } from "./manage-operators.ts";

export interface NewOperatorToken {
  readonly id: string;
  /** The token itself, which is stored nowhere. */
  readonly token: string;
  readonly expiresAt: Date;
}

/** Creates a token. Only the result contains its text: the database stores a keyed hash. Throws OperatorError. */
export async function createOperatorToken(
  { db, signing, actor }: ManageContext,
  request: {
    /** A label for people, 1 to 255 characters. */
    readonly name: string;
    readonly role: OperatorRole;
    readonly lifetimeMs: number;
    /** The names of the accounts that it is limited to; null: all, also later ones. */
    readonly accounts: readonly string[] | null;
  },
): Promise<NewOperatorToken> {
  const name = request.name.trim();
  if (name === "" || /\p{C}/u.test(name))
    throw new OperatorError("The token's name must have visible characters only, and at least one.");
  const accountIds = await accountsWithin(db, actor, request.accounts && (await idsOf(db, request.accounts)));
  const token = newOperatorToken();
  const { role, lifetimeMs } = request;
  const made = await db.transaction(
    async (tx) =>
      await addToken({ db: tx, signing, actor }, token, {
        name,
        role,
        lifetimeMs,
        accountIds,
        actsFor: null,
      }),
  );
  return { id: made.id, token, expiresAt: made.expiresAt };
}

/** In the caller's transaction, with its audit entry. */
export async function addToken(
  { db: tx, signing, actor }: ManageContext,
  token: string,
  made: {
    readonly name: string;
    readonly role: OperatorRole;
    readonly lifetimeMs: number;
    readonly accountIds: readonly string[] | null;
    /** The operator for whom it acts; null: it is a program's own. */
    readonly actsFor: string | null;
  },
): Promise<Omit<NewOperatorToken, "token">> {
  const id = newId(ID_PREFIX.operatorToken);
  const { expiresAt, audited } = await insertOperatorToken(tx, {
    id,
    tokenHash: signing.operators.tokenHash(token),
    operatorId: actor.kind === "operator" ? actor.id : null,
    ...made,
  });
  await recordAudit(tx, signing.audit, {
    accountId: null,
    actor,
    action: "operator_token.create",
    subjectId: id,
    detail: {
      role: made.role,
      lifetime_ms: made.lifetimeMs,
      accounts: made.accountIds?.join(",") ?? null,
      ...(made.actsFor === null ? {} : { acts_for: made.actsFor }),
      ...audited,
    },
  });
  return { id, expiresAt };
}

/** A token of an operator who is limited to accounts has no others: by default these. Throws OperatorError. */
async function accountsWithin(
  db: Database,
  actor: ManageContext["actor"],
  accountIds: readonly string[] | null,
): Promise<readonly string[] | null> {
  const creator = actor.kind === "operator" ? await lockOperator(db, actor.id) : undefined;
  const limit = creator?.accountIds ?? null;
  if (limit === null) return accountIds;
  if (accountIds === null) return limit;
  if (accountIds.every((id) => limit.includes(id))) return accountIds;
  throw new OperatorError("You are limited to some accounts: a token of yours can't have others.");
}

/** Takes effect with the next request, in every process. Revoking again changes nothing. Throws OperatorError. */
export async function revokeTokenById({ db, signing, actor }: ManageContext, id: string): Promise<void> {
  await db.transaction(async (tx) => {
    const revoked = isId("operatorToken", id)
      ? await revokeOperatorToken(tx, id).catch(explainRefused)
      : undefined;
    if (!revoked)
      throw new OperatorError(
        `There is no operator token ${id}. \`latchkey tokens list\` shows the ids.`,
        "missing",
      );
    if (revoked.audited === null) return;
    await recordAudit(tx, signing.audit, {
      accountId: null,
      actor,
      action: "operator_token.revoke",
      subjectId: id,
      detail: revoked.audited,
    });
  });
}

/** A forged row is not changed, because the change would sign it. */
function explainRefused(error: unknown): never {
  if (!(error instanceof RowRefused)) throw error;
  throw new OperatorError(
    `${describeRefused(error)} It can't be used, and nothing was changed. Delete that row in the database.`,
  );
}

/** All tokens, newest first; never their text. */
export async function listTokens(db: Database) {
  return (await listOperatorTokens(db)).map((token) => ({
    id: token.id,
    name: token.name,
    role: token.role,
    accounts: token.accounts && [...token.accounts],
    created_by: token.createdBy,
    acts_for: token.actsFor,
    created_at: token.createdAt.toISOString(),
    expires_at: token.expiresAt.toISOString(),
    is_expired: token.isExpired,
    revoked_at: token.revokedAt?.toISOString() ?? null,
    last_used_at: token.lastUsedAt?.toISOString() ?? null,
  }));
}
