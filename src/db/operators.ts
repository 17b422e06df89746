import type { OperatorRole, OperatorView } from "#domain/operator.ts";
import type { Database } from "./pool.ts";

/** True when the operator was made, false when one with this address exists. */
export async function insertOperator(
  db: Database,
  operator: {
    readonly id: string;
    readonly email: string;
    readonly passwordHash: string;
    readonly role: string;
  },
): Promise<boolean> {
  const rows = await db.query(
    `insert into operator (id, email, password_hash, role) values ($1, $2, $3, $4) on conflict (email) do nothing returning id`,
    [operator.id, operator.email, operator.passwordHash, operator.role],
  );
  return rows.length > 0;
}

export async function countOperators(db: Database): Promise<number> {
  const rows = await db.query<{ count: number }>(`select count(*)::int as count from operator`);
  return rows[0]?.count ?? 0;
}

const VIEW_COLUMNS = `operator.id, operator.email, operator.role, operator.created_at as "createdAt",
  operator.disabled_at as "disabledAt", operator.totp_confirmed_at is not null as "hasSecondFactor",
  operator.oidc_linked_at as "oidcLinkedAt"`;

export async function listOperators(db: Database): Promise<readonly OperatorView[]> {
  return await db.query<OperatorView>(`select ${VIEW_COLUMNS} from operator order by email`);
}

/** With what proves who somebody is. */
export interface StoredOperator extends OperatorView {
  readonly passwordHash: string;
  /** It was made for the operator, who has not changed it in time. */
  readonly isPasswordOver: boolean;
  readonly totpNonce: Buffer | null;
  readonly oidcIssuer: string | null;
  readonly oidcSubject: string | null;
}

const STORED_COLUMNS = `${VIEW_COLUMNS}, operator.password_hash as "passwordHash",
  coalesce(operator.first_password_until <= app_now(), false) as "isPasswordOver", operator.totp_nonce as "totpNonce",
  operator.oidc_issuer as "oidcIssuer", operator.oidc_subject as "oidcSubject"`;

/** By a normalised name: names are unlike in more than case. */
export async function findOperatorByName(db: Database, name: string): Promise<StoredOperator | undefined> {
  const rows = await db.query<StoredOperator>(
    `select ${STORED_COLUMNS} from operator where lower(email) = $1 order by id limit 1`,
    [name],
  );
  return rows[0];
}

/** By who they are at the provider. */
export async function findOperatorBySubject(
  db: Database,
  issuer: string,
  subject: string,
): Promise<StoredOperator | undefined> {
  const rows = await db.query<StoredOperator>(
    `select ${STORED_COLUMNS} from operator where oidc_issuer = $1 and oidc_subject = $2`,
    [issuer, subject],
  );
  return rows[0];
}

/** Locked until the transaction ends, where there is one: two that change an operator come one after the other. */
export async function lockOperator(tx: Database, id: string): Promise<StoredOperator | undefined> {
  const rows = await tx.query<StoredOperator>(
    `select ${STORED_COLUMNS} from operator where id = $1 for update`,
    [id],
  );
  return rows[0];
}

/** The other admins who can sign in, locked: two who disable each other at once must not both succeed. */
export async function countOtherAdmins(tx: Database, id: string): Promise<number> {
  const rows = await tx.query<{ id: string }>(
    `select id from operator where role = 'admin' and disabled_at is null order by id for update`,
  );
  return rows.filter((row) => row.id !== id).length;
}

export async function savePasswordHash(db: Database, id: string, passwordHash: string): Promise<void> {
  await db.query(`update operator set password_hash = $2 where id = $1`, [id, passwordHash]);
}

/** The password was made for the operator: it is changed at the first sign-in, and counts for so long. Null: it is the operator's own. */
export async function limitPassword(db: Database, id: string, forMs: number | null): Promise<void> {
  await db.query(
    `update operator set first_password_until = app_now() + $2::bigint * interval '1 ms' where id = $1`,
    [id, forMs],
  );
}

/** With today's parameters; not over a password that was changed meanwhile. */
export async function renewPasswordHash(
  db: Database,
  id: string,
  before: string,
  passwordHash: string,
): Promise<void> {
  await db.query(`update operator set password_hash = $3 where id = $1 and password_hash = $2`, [
    id,
    before,
    passwordHash,
  ]);
}

export async function saveDisabled(db: Database, id: string, isDisabled: boolean): Promise<void> {
  await db.query(
    `update operator set disabled_at = case when $2 then coalesce(disabled_at, app_now()) end where id = $1`,
    [id, isDisabled],
  );
}

export async function saveRole(db: Database, id: string, role: OperatorRole): Promise<void> {
  await db.query(`update operator set role = $2 where id = $1`, [id, role]);
}

/** Begins anew: nothing of an earlier second factor counts any more. */
export async function saveTotpNonce(tx: Database, id: string, nonce: Uint8Array | null): Promise<void> {
  await tx.query(
    `update operator set totp_nonce = $2, totp_confirmed_at = null, totp_step = null where id = $1`,
    [id, nonce],
  );
  await tx.query(`delete from operator_recovery_code where operator_id = $1`, [id]);
}

export async function confirmTotp(tx: Database, id: string, step: number): Promise<void> {
  await tx.query(`update operator set totp_confirmed_at = app_now(), totp_step = $2 where id = $1`, [
    id,
    step,
  ]);
}

/** Takes a time step of the operator's codes. False: this code or a later one was given already (design, page 6, I-17). */
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
