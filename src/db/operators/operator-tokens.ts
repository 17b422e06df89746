import { coversRole, type OperatorRole } from "#domain/operator.ts";
import { must } from "#lib/assert.ts";
import type { Database } from "#db/connection/pool.ts";
import { readGenuine, readOneGenuine, signRow, type Signed } from "#db/signing/signed-rows.ts";
import { decidingColumns, signedColumns, type SignedRow } from "#db/signing/signed-tables.ts";
import { findOperatorById, type AuditedRow } from "./operators.ts";

/** A token that may be used at this moment. */
export interface LiveToken {
  readonly tokenId: string;
  readonly name: string;
  readonly role: OperatorRole;
  /** The accounts that it is limited to; null: all. */
  readonly accountIds: readonly string[] | null;
  /** The operator for whom it acts; null: it is a program's own. */
  readonly actsFor: { readonly id: string; readonly email: string } | null;
  readonly expiresAt: Date;
}

interface TokenRow extends Omit<LiveToken, "actsFor">, SignedRow {
  readonly isRevoked: boolean;
  readonly actsFor: string | null;
}

const signedParts = (row: TokenRow): readonly Signed[] => [{ kind: "operator_token", row }];

/**
 * Undefined: unknown, expired, revoked, or not created by this installation; or its operator was disabled, or no longer has a role that
 * covers the token's. Reads the database each time, so that all of this counts at once.
 */
export async function findLiveToken(db: Database, tokenHash: Uint8Array): Promise<LiveToken | undefined> {
  const { genuine } = await readGenuine(
    db,
    async () =>
      await db.query<TokenRow>({
        name: "find_operator_token",
        text: `select ${signedColumns("operator_token")}, expires_at as "expiresAt" from operator_token
          where token_hash = $1 and revoked_at is null and expires_at > app_now()`,
        values: [tokenHash],
      }),
    signedParts,
  );
  const [row] = genuine;
  if (!row) return undefined;
  const { tokenId, name, role, accountIds, expiresAt } = row;
  if (row.actsFor === null) return { tokenId, name, role, accountIds, expiresAt, actsFor: null };
  const operator = await findOperatorById(db, row.actsFor);
  if (!operator || operator.isDisabled || !coversRole(operator.role, role)) return undefined;
  return {
    tokenId,
    name,
    role,
    accountIds: withinBoth(accountIds, operator.accountIds),
    expiresAt,
    actsFor: { id: operator.id, email: operator.email },
  };
}

/** The operator may have been limited after the token was made. */
const withinBoth = (
  ofToken: readonly string[] | null,
  ofOperator: readonly string[] | null,
): readonly string[] | null =>
  ofToken === null || ofOperator === null
    ? (ofToken ?? ofOperator)
    : ofToken.filter((id) => ofOperator.includes(id));

/** At most once a minute per token. */
export async function touchOperatorToken(db: Database, id: string): Promise<void> {
  await db.query(
    `update operator_token set last_used_at = app_now()
     where id = $1 and (last_used_at is null or last_used_at < app_now() - interval '1 minute')`,
    [id],
  );
}

/** Returns its expiry, and the row's state for the audit entry. */
export async function insertOperatorToken(
  tx: Database,
  token: {
    readonly id: string;
    readonly name: string;
    readonly role: OperatorRole;
    readonly tokenHash: Uint8Array;
    readonly lifetimeMs: number;
    /** Who creates it; null: the command line. */
    readonly operatorId: string | null;
    readonly accountIds: readonly string[] | null;
    /** The operator for whom it acts; null: it is a program's own. */
    readonly actsFor: string | null;
  },
): Promise<{ readonly expiresAt: Date; readonly audited: AuditedRow }> {
  const rows = await tx.query<Record<string, unknown> & { expiresAt: Date }>(
    `insert into operator_token (id, name, role, token_hash, expires_at, operator_id, account_ids, acts_for)
     values ($1, $2, $3, $4, app_now() + $5::bigint * interval '1 ms', $6, $7, $8)
     returning ${decidingColumns("operator_token")}, expires_at as "expiresAt"`,
    [
      token.id,
      token.name,
      token.role,
      token.tokenHash,
      token.lifetimeMs,
      token.operatorId,
      token.accountIds,
      token.actsFor,
    ],
  );
  const row = must(rows[0], "the token");
  return { expiresAt: row.expiresAt, audited: await signToken(tx, token.id, row) };
}

async function signToken(
  tx: Database,
  id: string,
  row: Readonly<Record<string, unknown>>,
): Promise<AuditedRow> {
  const { serial, mac, audited } = await signRow(tx, "operator_token", row);
  await tx.query(`update operator_token set row_serial = $2, row_mac = $3 where id = $1`, [id, serial, mac]);
  return audited;
}

/**
 * Revokes a token; undefined: there is none. `audited` is null if it was revoked before. Throws RowRefused: a row that this installation
 * did not write is never signed as a side effect of another change.
 */
export async function revokeOperatorToken(
  tx: Database,
  id: string,
): Promise<{ readonly audited: AuditedRow | null } | undefined> {
  const before = await readOneGenuine(
    tx,
    async () =>
      await tx.query<TokenRow>(
        `select ${signedColumns("operator_token")} from operator_token where id = $1 for update`,
        [id],
      ),
    signedParts,
  );
  if (!before) return undefined;
  if (before.isRevoked) return { audited: null };
  const rows = await tx.query<Record<string, unknown>>(
    `update operator_token set revoked_at = app_now() where id = $1 returning ${decidingColumns("operator_token")}`,
    [id],
  );
  return { audited: await signToken(tx, id, must(rows[0], "the token")) };
}

export interface ListedToken {
  readonly id: string;
  readonly name: string;
  readonly role: OperatorRole;
  /** The names of the accounts that it is limited to; null: all. */
  readonly accounts: readonly string[] | null;
  /** The email of the operator who created it; null: the command line. */
  readonly createdBy: string | null;
  /** The email of the operator for whom it acts; null: it is a program's own. */
  readonly actsFor: string | null;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly revokedAt: Date | null;
  readonly lastUsedAt: Date | null;
  /** By the database's clock. */
  readonly isExpired: boolean;
}

/** All tokens, newest first, including rows that this installation did not write, which raise alarms. */
export async function listOperatorTokens(db: Database): Promise<readonly ListedToken[]> {
  await readGenuine(
    db,
    async () => await db.query<TokenRow>(`select ${signedColumns("operator_token")} from operator_token`),
    signedParts,
  );
  return await db.query<ListedToken>(
    `select token.id, token.name, token.role, operator.email as "createdBy", principal.email as "actsFor", token.created_at as "createdAt",
       token.expires_at as "expiresAt", token.revoked_at as "revokedAt", token.last_used_at as "lastUsedAt",
       token.expires_at <= app_now() as "isExpired",
       case when token.account_ids is not null then
         array(select slug from account where id = any(token.account_ids) order by slug) end as accounts
     from operator_token token left join operator on operator.id = token.operator_id
       left join operator principal on principal.id = token.acts_for
     order by token.created_at desc, token.id`,
  );
}
