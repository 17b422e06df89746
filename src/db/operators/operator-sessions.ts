import type { OperatorRole, SignInWay } from "#domain/operator.ts";
import { must } from "#lib/assert.ts";
import type { Database } from "#db/connection/pool.ts";
import { readGenuine, readOneGenuine, signRow, type Signed } from "#db/signing/signed-rows.ts";
import { decidingColumns, signedColumns, type SignedRow } from "#db/signing/signed-tables.ts";

/** How long sessions last, by the database's clock. */
export interface SessionTimes {
  readonly idleMs: number;
  readonly stepUpMs: number;
  readonly lateStepUpMs: number;
}

/** A live session with its operator, read from the database at this moment, so that a change of role has immediate effect. */
export interface LiveSession {
  readonly id: string;
  readonly operatorId: string;
  readonly email: string;
  readonly role: OperatorRole;
  /** The accounts that the operator is limited to; null: all. */
  readonly accountIds: readonly string[] | null;
  readonly hasSecondFactor: boolean;
  /** The password was generated, and the operator must change it before anything else. */
  readonly hasFirstPassword: boolean;
  /** The second factor was given within the last minutes. */
  readonly isSteppedUp: boolean;
  /** The same, within the last half hour. */
  readonly isSteppedUpLately: boolean;
  readonly signedInBy: SignInWay;
  /** A second factor was given in this session, at any time. */
  readonly wasSteppedUp: boolean;
  /** Whether it was opened within the time for which a second factor is valid. */
  readonly isNew: boolean;
  readonly expiresAt: Date;
}

/** Of a sign-in, which is noted at the operator. */
export async function insertOperatorSession(
  tx: Database,
  session: {
    readonly id: string;
    readonly operatorId: string;
    readonly tokenHash: Uint8Array;
    readonly lifetimeMs: number;
    readonly isSteppedUp: boolean;
    readonly signedInBy: SignInWay;
    readonly address: string;
    readonly userAgent: string;
  },
): Promise<void> {
  const rows = await tx.query<SessionRow>(
    `insert into operator_session (id, operator_id, token_hash, expires_at, stepped_up_at, address, user_agent, signed_in_by)
     values ($1, $2, $3, app_now() + $4::bigint * interval '1 ms', case when $5 then app_now() end, $6, $7, $8)
     returning ${decidingColumns("operator_session")}`,
    [
      session.id,
      session.operatorId,
      session.tokenHash,
      session.lifetimeMs,
      session.isSteppedUp,
      session.address,
      session.userAgent,
      session.signedInBy,
    ],
  );
  await signSession(tx, must(rows[0], "the session"));
  await tx.query(`update operator set signed_in_at = app_now() where id = $1`, [session.operatorId]);
}

interface SessionRow {
  readonly sessionId: string;
}

async function signSession(tx: Database, session: SessionRow): Promise<void> {
  const { serial, mac } = await signRow(tx, "operator_session", { ...session });
  await tx.query(`update operator_session set row_serial = $2, row_mac = $3 where id = $1`, [
    session.sessionId,
    serial,
    mac,
  ]);
}

/** Both rows: the session's signature, and under `operator…` that of its operator. */
interface LiveRow extends LiveSession, SignedRow {
  readonly sessionId: string;
  readonly operatorSerial: number | null;
  readonly operatorMac: Buffer | null;
}

const signedParts = (row: LiveRow): readonly Signed[] => [
  { kind: "operator_session", row },
  { kind: "operator", row: { ...row, rowSerial: row.operatorSerial, rowMac: row.operatorMac } },
];

/** Undefined: it does not exist, has expired, or its operator is disabled or was not created by this installation. */
export async function findLiveSession(
  db: Database,
  tokenHash: Uint8Array,
  { idleMs, stepUpMs, lateStepUpMs }: SessionTimes,
): Promise<LiveSession | undefined> {
  const { genuine } = await readGenuine(
    db,
    async () =>
      await db.query<LiveRow>({
        name: "find_operator_session",
        text: `select ${signedColumns("operator_session", "session")}, ${decidingColumns("operator")},
        operator.row_serial as "operatorSerial", operator.row_mac as "operatorMac", session.expires_at as "expiresAt",
        operator.first_password_until is not null as "hasFirstPassword",
        coalesce(session.stepped_up_at > app_now() - $3::bigint * interval '1 ms', false) as "isSteppedUp",
        coalesce(session.stepped_up_at > app_now() - $4::bigint * interval '1 ms', false) as "isSteppedUpLately",
        session.stepped_up_at is not null as "wasSteppedUp",
        session.created_at > app_now() - $3::bigint * interval '1 ms' as "isNew"
      from operator_session session join operator on operator.id = session.operator_id
      where session.token_hash = $1 and operator.disabled_at is null and session.expires_at > app_now()
        and session.seen_at > app_now() - $2::bigint * interval '1 ms'`,
        values: [tokenHash, idleMs, stepUpMs, lateStepUpMs],
      }),
    signedParts,
  );
  const [row] = genuine;
  if (!row) return undefined;
  const { operatorId, email, role, accountIds, hasSecondFactor, hasFirstPassword } = row;
  const { isSteppedUp, isSteppedUpLately, signedInBy, wasSteppedUp, isNew, expiresAt } = row;
  return {
    id: row.sessionId,
    operatorId,
    email,
    role,
    accountIds,
    hasSecondFactor,
    hasFirstPassword,
    isSteppedUp,
    isSteppedUpLately,
    signedInBy,
    wasSteppedUp,
    isNew,
    expiresAt,
  };
}

/** At most once a minute per session. */
export async function touchOperatorSession(db: Database, id: string): Promise<void> {
  await db.query(
    `update operator_session set seen_at = app_now() where id = $1 and seen_at < app_now() - interval '1 minute'`,
    [id],
  );
}

/** Gives the session a new token and records that the second factor was given just now. The old token becomes invalid. */
export async function rotateOperatorSession(
  tx: Database,
  id: string,
  tokenHash: Uint8Array,
  isSteppedUp: boolean,
): Promise<boolean> {
  // A row that this installation did not write is never signed as a side effect of another change.
  const before = await readOneGenuine(
    tx,
    async () =>
      await tx.query<SessionRow & SignedRow>(
        `select ${signedColumns("operator_session")} from operator_session where id = $1 for update`,
        [id],
      ),
    (row) => [{ kind: "operator_session", row }],
  );
  if (!before) return false;
  const rows = await tx.query<SessionRow>(
    `update operator_session set token_hash = $2, seen_at = app_now(),
       stepped_up_at = case when $3 then app_now() else stepped_up_at end where id = $1
     returning ${decidingColumns("operator_session")}`,
    [id, tokenHash, isSteppedUp],
  );
  await signSession(tx, must(rows[0], "the session"));
  return true;
}

export interface ListedSession {
  readonly id: string;
  readonly createdAt: Date;
  readonly seenAt: Date;
  readonly expiresAt: Date;
  readonly address: string;
  readonly userAgent: string;
  readonly signedInBy: SignInWay;
}

export async function listOperatorSessions(
  db: Database,
  operatorId: string,
  idleMs: number,
): Promise<readonly ListedSession[]> {
  return await db.query<ListedSession>(
    `select id, created_at as "createdAt", seen_at as "seenAt", expires_at as "expiresAt", address,
       user_agent as "userAgent", signed_in_by as "signedInBy"
     from operator_session where operator_id = $1 and expires_at > app_now()
       and seen_at > app_now() - $2::bigint * interval '1 ms' order by created_at desc, id`,
    [operatorId, idleMs],
  );
}

/** Only a session of this operator. */
export async function deleteOperatorSession(tx: Database, operatorId: string, id: string): Promise<boolean> {
  const rows = await tx.query(`delete from operator_session where operator_id = $1 and id = $2 returning 1`, [
    operatorId,
    id,
  ]);
  return rows.length > 0;
}

/** By a token that a browser brought, of any operator. */
export async function deleteSessionOfToken(tx: Database, tokenHash: Uint8Array): Promise<void> {
  await tx.query(`delete from operator_session where token_hash = $1`, [tokenHash]);
}

/** Ends all sessions, or all but one. Returns their number. */
export async function deleteOtherSessions(
  tx: Database,
  operatorId: string,
  keptId: string | null,
): Promise<number> {
  const rows = await tx.query(
    `delete from operator_session where operator_id = $1 and id is distinct from $2 returning 1`,
    [operatorId, keptId],
  );
  return rows.length;
}

/** Deletes the expired sessions of all operators. */
export async function deleteOldSessions(tx: Database, idleMs: number): Promise<void> {
  await tx.query(
    `delete from operator_session where expires_at <= app_now()
       or seen_at <= app_now() - $1::bigint * interval '1 ms'`,
    [idleMs],
  );
}
