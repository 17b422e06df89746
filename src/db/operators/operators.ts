import type { OperatorRole, OperatorView } from "#domain/operator.ts";
import { must } from "#lib/assert.ts";
import type { Database } from "#db/connection/pool.ts";
import { readGenuine, readOneGenuine, signRow, type RowMark, type Signed } from "#db/signing/signed-rows.ts";
import { decidingColumns, signedColumns, type SignedRow } from "#db/signing/signed-tables.ts";

/** The row's state in the detail of the audit entry. */
export type AuditedRow = RowMark["audited"];

/** Returns false if an operator with this address exists. The password is a generated one: `limitPassword` must follow. */
export async function insertOperator(
  db: Database,
  operator: {
    readonly id: string;
    readonly email: string;
    readonly passwordHash: string;
    readonly role: OperatorRole;
    /** The accounts that the operator is limited to; null: all. */
    readonly accountIds: readonly string[] | null;
  },
): Promise<boolean> {
  const nothingElse = {
    totpNonce: null,
    hasSecondFactor: false,
    isDisabled: false,
    oidcIssuer: null,
    oidcSubject: null,
    firstPasswordUntil: null,
  };
  const mark = await signRow(db, "operator", { ...operator, ...nothingElse });
  const rows = await db.query(
    `insert into operator (id, email, password_hash, role, account_ids, row_serial, row_mac) values ($1, $2, $3, $4, $5, $6, $7)
     on conflict (email) do nothing returning id`,
    [
      operator.id,
      operator.email,
      operator.passwordHash,
      operator.role,
      operator.accountIds,
      mark.serial,
      mark.mac,
    ],
  );
  return rows.length > 0;
}

export async function countOperators(db: Database): Promise<number> {
  const rows = await db.query<{ count: number }>(`select count(*)::int as count from operator`);
  return rows[0]?.count ?? 0;
}

const ACCOUNT_NAMES = `case when operator.account_ids is not null then
  array(select slug from account where id = any(operator.account_ids) order by slug) end as accounts`;

const VIEW_COLUMNS = `operator.id, operator.email, operator.role, ${ACCOUNT_NAMES}, operator.created_at as "createdAt",
  operator.disabled_at as "disabledAt", operator.totp_confirmed_at is not null as "hasSecondFactor",
  operator.oidc_linked_at as "oidcLinkedAt", operator.signed_in_at as "signedInAt"`;

/** All operators, including rows that this installation did not write, which raise alarms. */
export async function listOperators(db: Database): Promise<readonly OperatorView[]> {
  await readOperators(db, "");
  return await db.query<OperatorView>(`select ${VIEW_COLUMNS} from operator order by email`);
}

/** An operator with the sign-in secrets. */
export interface StoredOperator extends OperatorView, SignedRow {
  readonly accountIds: readonly string[] | null;
  readonly isDisabled: boolean;
  readonly passwordHash: string;
  /** The password was generated and was not changed in time. */
  readonly isPasswordOver: boolean;
  readonly totpNonce: Buffer | null;
  readonly oidcIssuer: string | null;
  readonly oidcSubject: string | null;
  /** The expiry of a generated password, in the format of `signed-tables.ts`; null: the operator has chosen it. */
  readonly firstPasswordUntil: string | null;
}

const SELECT_STORED = `select ${signedColumns("operator")}, ${ACCOUNT_NAMES}, operator.created_at as "createdAt",
  coalesce(operator.first_password_until <= app_now(), false) as "isPasswordOver",
  operator.disabled_at as "disabledAt", operator.oidc_linked_at as "oidcLinkedAt",
  operator.signed_in_at as "signedInAt" from operator`;

const signedParts = (row: SignedRow): readonly Signed[] => [{ kind: "operator", row }];

/** The operators that this installation created; `where` is the rest of the query, from its `where` clause on. */
async function readOperators(
  db: Database,
  where: string,
  values: readonly unknown[] = [],
): Promise<readonly StoredOperator[]> {
  const { genuine } = await readGenuine(
    db,
    async () => await db.query<StoredOperator>(`${SELECT_STORED} ${where}`, values),
    signedParts,
  );
  return genuine;
}

/**
 * Finds an operator by the normalised name, since names are compared without regard to case. A row that this installation did not
 * write counts as missing.
 */
export async function findOperatorByName(db: Database, name: string): Promise<StoredOperator | undefined> {
  return (await readOperators(db, "where lower(email) = $1 order by id", [name]))[0];
}

/** A row that this installation did not write counts as missing. */
export async function findOperatorById(db: Database, id: string): Promise<StoredOperator | undefined> {
  return (await readOperators(db, "where id = $1", [id]))[0];
}

/** For the filter of a list, so rows that don't verify are included. */
export async function findOperatorId(db: Database, name: string): Promise<string | undefined> {
  const rows = await db.query<{ id: string }>(
    `select id from operator where lower(email) = $1 order by id limit 1`,
    [name],
  );
  return rows[0]?.id;
}

/** The operator with this identity at the provider. */
export async function findOperatorBySubject(
  db: Database,
  issuer: string,
  subject: string,
): Promise<StoredOperator | undefined> {
  return (await readOperators(db, "where oidc_issuer = $1 and oidc_subject = $2", [issuer, subject]))[0];
}

/**
 * Locks the row until the transaction ends, if there is one, so that concurrent changes of an operator are serialized. Throws
 * RowRefused: a row that this installation did not write is never signed as a side effect of another change.
 */
export async function lockOperator(tx: Database, id: string): Promise<StoredOperator | undefined> {
  return await readOneGenuine(
    tx,
    async () => await tx.query<StoredOperator>(`${SELECT_STORED} where id = $1 for update`, [id]),
    signedParts,
  );
}

const WHERE_ADMIN = "where role = 'admin' and disabled_at is null order by id";

/**
 * The other admins who can sign in and manage operators, locked: two who disable each other at once must not both succeed. An admin who
 * is limited to accounts does not count.
 */
export async function countOtherAdmins(tx: Database, id: string): Promise<number> {
  const admins = await readOperators(tx, `${WHERE_ADMIN} for update`);
  return admins.filter((row) => row.id !== id && row.accountIds === null).length;
}

/**
 * The ids of the admins of an account who can sign in. Nobody counts who is limited to other accounts, nor a row that this installation did
 * not write.
 */
export async function listAdminIds(db: Database, accountId: string): Promise<readonly string[]> {
  const admins = await readOperators(db, WHERE_ADMIN);
  return admins.filter(({ accountIds }) => accountIds?.includes(accountId) ?? true).map(({ id }) => id);
}

type Change = Partial<
  Pick<
    StoredOperator,
    | "role"
    | "accountIds"
    | "passwordHash"
    | "totpNonce"
    | "hasSecondFactor"
    | "isDisabled"
    | "oidcIssuer"
    | "oidcSubject"
  >
>;

/**
 * The only statement that changes an operator's signed columns. `operator` is locked. Returns the row's state for the audit entry
 * of the change. After a new password, `limitPassword` records who set it; the functions below change second factors, together
 * with their codes.
 */
export async function changeOperator(
  tx: Database,
  operator: StoredOperator,
  to: Change,
): Promise<AuditedRow> {
  const now = { ...operator, ...to };
  const { serial, mac, audited } = await signRow(tx, "operator", now);
  await tx.query(
    `update operator set role = $2, password_hash = $3, totp_nonce = $4,
       totp_confirmed_at = case when $5 then coalesce(totp_confirmed_at, app_now()) end,
       totp_step = case when $5 then totp_step end,
       disabled_at = case when $6 then coalesce(disabled_at, app_now()) end,
       oidc_issuer = $7, oidc_subject = $8,
       oidc_linked_at = case when $7::text is not null then coalesce(oidc_linked_at, app_now()) end,
       row_serial = $9, row_mac = $10, account_ids = $11
     where id = $1`,
    [
      now.id,
      now.role,
      now.passwordHash,
      now.totpNonce,
      now.hasSecondFactor,
      now.isDisabled,
      now.oidcIssuer,
      now.oidcSubject,
      serial,
      mac,
      now.accountIds,
    ],
  );
  return audited;
}

/**
 * Marks the password as generated: it must be changed at the first sign-in, and expires after this time. Null: the operator has
 * chosen it. Called in the transaction that has stored it; returns the part of the audit entry that refers to the row. Throws
 * RowRefused.
 */
export async function limitPassword(tx: Database, id: string, forMs: number | null): Promise<AuditedRow> {
  await lockOperator(tx, id);
  const rows = await tx.query<Record<string, unknown>>(
    `update operator set first_password_until = app_now() + $2::bigint * interval '1 ms' where id = $1
     returning ${decidingColumns("operator")}`,
    [id, forMs],
  );
  const { serial, mac, audited } = await signRow(tx, "operator", must(rows[0], "the operator"));
  await tx.query(`update operator set row_serial = $2, row_mac = $3 where id = $1`, [id, serial, mac]);
  return audited;
}

/** Stores the same password with the current parameters, unless it has been changed in the meantime. */
export async function renewPasswordHash(
  db: Database,
  id: string,
  before: string,
  passwordHash: string,
): Promise<void> {
  await db.transaction(async (tx) => {
    const operator = await lockOperator(tx, id);
    if (operator?.passwordHash === before) await changeOperator(tx, operator, { passwordHash });
  });
}

/** Sets the operator's identity at the single sign-on provider; null: removes it. */
export async function saveOidcLink(
  tx: Database,
  operator: StoredOperator,
  link: { readonly issuer: string; readonly subject: string } | null,
): Promise<AuditedRow> {
  return await changeOperator(tx, operator, {
    oidcIssuer: link?.issuer ?? null,
    oidcSubject: link?.subject ?? null,
  });
}

/** Starts a new set-up: nothing of an earlier second factor is valid any more. */
export async function saveTotpNonce(
  tx: Database,
  operator: StoredOperator,
  totpNonce: Buffer | null,
): Promise<AuditedRow> {
  const audited = await changeOperator(tx, operator, { totpNonce, hasSecondFactor: false });
  await tx.query(`delete from operator_recovery_code where operator_id = $1`, [operator.id]);
  return audited;
}

export async function confirmTotp(tx: Database, operator: StoredOperator, step: number): Promise<AuditedRow> {
  const audited = await changeOperator(tx, operator, { hasSecondFactor: true });
  await tx.query(`update operator set totp_step = $2 where id = $1`, [operator.id, step]);
  return audited;
}

/** Takes a time step of the operator's codes. False: this code or a later one was given already (docs/decisions/0021). */
export async function takeOperatorTotpStep(db: Database, id: string, step: number): Promise<boolean> {
  const rows = await db.query(
    `update operator set totp_step = $2 where id = $1 and totp_confirmed_at is not null and totp_step < $2 returning 1`,
    [id, step],
  );
  return rows.length > 0;
}

export async function saveRecoveryCodes(
  tx: Database,
  id: string,
  hashes: readonly Uint8Array[],
): Promise<void> {
  await tx.query(`delete from operator_recovery_code where operator_id = $1`, [id]);
  await tx.query(`insert into operator_recovery_code (operator_id, hash) select $1, unnest($2::bytea[])`, [
    id,
    hashes,
  ]);
}

/** Once. */
export async function takeRecoveryCode(db: Database, id: string, hash: Uint8Array): Promise<boolean> {
  const rows = await db.query(
    `delete from operator_recovery_code where operator_id = $1 and hash = $2 returning 1`,
    [id, hash],
  );
  return rows.length > 0;
}

/** Whether a code is one of an operator's, without taking it. */
export async function isRecoveryCode(db: Database, id: string, hash: Uint8Array): Promise<boolean> {
  const rows = await db.query(`select 1 from operator_recovery_code where operator_id = $1 and hash = $2`, [
    id,
    hash,
  ]);
  return rows.length > 0;
}

export async function countRecoveryCodes(db: Database, id: string): Promise<number> {
  const rows = await db.query<{ count: number }>(
    `select count(*)::int as count from operator_recovery_code where operator_id = $1`,
    [id],
  );
  return rows[0]?.count ?? 0;
}
