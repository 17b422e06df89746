import type { CredentialSession } from "#domain/credential-session.ts";
import type { LoginCheck } from "#domain/login-check.ts";
import { ENTRY, type SealedEntry } from "#db/audit-entries.ts";
import { given, namesOf, valuesOf, type Columns } from "#db/connection/given-rows.ts";
import type { Database, Statement } from "#db/connection/pool.ts";
import {
  claimKeys,
  HAS_ITS_KEY,
  insertedTogether,
  oncePerKey,
  SESSION_RECORD,
  type KeyedInsert,
  type KeyRecord,
} from "#db/keyed-inserts.ts";

export interface StoredSession extends CredentialSession {
  readonly accountId: string;
  readonly strategyVersion: number;
  readonly name: string | null;
  /** The embedded flow whose slot it collects; null: it has its own link. */
  readonly embeddedSessionId: string | null;
  readonly blueprintKey: string | null;
  readonly slot: string | null;
  /** What trying its login came to; null: none was tried. */
  readonly loginCheck: LoginCheck | null;
  /** The browser that first opened its link (`actions/sessions/note-opening.ts`); null: not opened yet. */
  readonly firstBrowser: Buffer | null;
}

// `expired` is decided here, by the database's clock at the instant of reading (docs/decisions/0017).
const SESSION_COLUMNS = `id, account_id as "accountId", strategy_id as "strategyId", strategy_version as "strategyVersion",
  name, return_url as "returnUrl", credential_id as "credentialId", created_at as "createdAt", expires_at as "expiresAt",
  completed_at as "completedAt", embedded_session_id as "embeddedSessionId", blueprint_key as "blueprintKey", slot,
  first_browser as "firstBrowser", login_check as "loginCheck", metadata, cancel_url as "cancelUrl",
  case when status = 'pending' and expires_at <= app_now() then 'expired' else status end as "status"`;

export interface NewSession {
  readonly id: string;
  readonly accountId: string;
  readonly strategyId: string;
  readonly strategyVersion: number;
  readonly name: string | null;
  readonly returnUrl: string | null;
  /** JSON text. */
  readonly metadata: string | null;
  readonly cancelUrl: string | null;
  readonly tokenLookup: Uint8Array;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

interface Insert extends KeyedInsert {
  readonly session: NewSession;
  readonly entry: SealedEntry;
}

/** Inserts the session and its entry in the audit log, as part of the caller's transaction. */
export async function insertSession(tx: Database, session: NewSession, entry: SealedEntry): Promise<void> {
  await tx.query(insertSessions([{ session, entry, record: null }]));
}

/** The same, and the record of its key if it has one, as `insertedTogether`. */
export async function insertSessionTogether(
  db: Database,
  session: NewSession,
  entry: SealedEntry,
  record: KeyRecord | null,
): Promise<boolean> {
  return await insertGrouped(db, { session, entry, record });
}

const SESSION: Columns<Insert> = {
  id: ["text", ({ session }) => session.id],
  account_id: ["text", ({ session }) => session.accountId],
  strategy_id: ["text", ({ session }) => session.strategyId],
  strategy_version: ["int", ({ session }) => session.strategyVersion],
  name: ["text", ({ session }) => session.name],
  return_url: ["text", ({ session }) => session.returnUrl],
  metadata: ["text", ({ session }) => session.metadata],
  cancel_url: ["text", ({ session }) => session.cancelUrl],
  token_lookup: ["bytea", ({ session }) => session.tokenLookup],
  created_at: ["timestamptz", ({ session }) => session.createdAt.toISOString()],
  expires_at: ["timestamptz", ({ session }) => session.expiresAt.toISOString()],
};

const GIVEN = { ...SESSION, ...SESSION_RECORD };

function insertSessions(inserts: readonly Insert[]): Statement {
  const entries = inserts.map(({ entry }) => entry);
  return {
    name: "insert_sessions_with_keys",
    text: INSERT_SESSIONS,
    values: [...valuesOf(GIVEN, inserts), ...valuesOf(ENTRY, entries)],
  };
}

const insertGrouped = insertedTogether(insertSessions, ({ session }) => session.id, "session.after_insert");

// Its first line is what pg_stat_activity shows of it.
const INSERT_SESSIONS = `-- insert into credential_session, insert into idempotency_key
  with given as (
    select * from ${given("given", GIVEN, 1)}
  ), ready as (
    ${oncePerKey()}
  ), claimed as (
    ${claimKeys(["token_session_id", "token_at"])}
  ), made as (
    insert into credential_session (${namesOf(SESSION)})
    select ${namesOf(SESSION)} from ready where ${HAS_ITS_KEY}
    returning id
  ), recorded as (
    insert into audit_entry (${namesOf(ENTRY)})
    select entry.* from ${given("entry", ENTRY, 1 + Object.keys(GIVEN).length)} join made on made.id = entry.subject_id
  )
  select id from made`;

/** False: another browser was first, or the session has ended. */
export async function saveFirstBrowser(
  db: Database,
  session: Pick<StoredSession, "accountId" | "id">,
  browser: Uint8Array,
): Promise<boolean> {
  const rows = await db.query(
    `update credential_session set first_browser = $3, first_opened_at = app_now()
     where account_id = $1 and id = $2 and first_browser is null and status = 'pending' returning 1`,
    [session.accountId, session.id, browser],
  );
  return rows.length > 0;
}

export async function findSession(
  db: Database,
  accountId: string,
  id: string,
): Promise<StoredSession | undefined> {
  const rows = await db.query<StoredSession>({
    name: "find_session",
    // A session of an embedded flow's slot is only visible to the flow.
    text: `select ${SESSION_COLUMNS} from credential_session
      where account_id = $1 and id = $2 and embedded_session_id is null`,
    values: [accountId, id],
  });
  return rows[0];
}

/** A session of any purpose; the id must come from one of our rows. */
export async function findSessionById(
  db: Database,
  accountId: string,
  id: string,
): Promise<StoredSession | undefined> {
  const rows = await db.query<StoredSession>(
    `select ${SESSION_COLUMNS} from credential_session where account_id = $1 and id = $2`,
    [accountId, id],
  );
  return rows[0];
}

/** The slots of an embedded flow's Blueprint, in their order. */
export async function listSlotSessions(
  db: Database,
  flow: { readonly accountId: string; readonly id: string; readonly blueprintKey: string },
): Promise<readonly StoredSession[]> {
  return await db.query<StoredSession>(
    `select ${SESSION_COLUMNS} from credential_session
     where account_id = $1 and embedded_session_id = $2 and blueprint_key = $3 order by slot_position`,
    [flow.accountId, flow.id, flow.blueprintKey],
  );
}

/** By the SHA-256 of the token in its `hosted_url`. */
export async function findSessionByToken(
  db: Database,
  tokenLookup: Uint8Array,
): Promise<StoredSession | undefined> {
  const rows = await db.query<StoredSession>(
    `select ${SESSION_COLUMNS} from credential_session where token_lookup = $1 and embedded_session_id is null`,
    [tokenLookup],
  );
  return rows[0];
}

/** A credential that completes its session. */
export interface NewCredential {
  readonly id: string;
  readonly sealed: Uint8Array;
  readonly kid: string;
  readonly origins: readonly string[];
}

interface Completion extends KeyedInsert {
  readonly session: StoredSession;
  readonly credential: NewCredential;
  readonly entry: SealedEntry;
}

/**
 * Spec, Credential session `status`: `pending` → `completed`, its credential and the entry in the audit log, as one conditional write: of any
 * number of submits exactly one gets true (docs/decisions/0017). Part of the caller's transaction.
 */
export async function completeSession(
  tx: Database,
  session: StoredSession,
  credential: NewCredential,
  entry: SealedEntry,
): Promise<boolean> {
  return (await tx.query(completeSessions([{ session, credential, entry, record: null }]))).length > 0;
}

/** The same, as `insertedTogether`. */
export async function completeSessionTogether(
  db: Database,
  session: StoredSession,
  credential: NewCredential,
  entry: SealedEntry,
): Promise<boolean> {
  return await completeGrouped(db, { session, credential, entry, record: null });
}

const COMPLETION: Columns<Completion> = {
  session_id: ["text", ({ session }) => session.id],
  account_id: ["text", ({ session }) => session.accountId],
  id: ["text", ({ credential }) => credential.id],
  sealed: ["bytea", ({ credential }) => credential.sealed],
  kid: ["text", ({ credential }) => credential.kid],
  origins: ["text", ({ credential }) => JSON.stringify(credential.origins)],
};

function completeSessions(completions: readonly Completion[]): Statement {
  const entries = completions.map(({ entry }) => entry);
  return {
    name: "complete_sessions",
    text: COMPLETE_SESSIONS,
    values: [...valuesOf(COMPLETION, completions), ...valuesOf(ENTRY, entries)],
  };
}

const completeGrouped = insertedTogether(
  completeSessions,
  ({ credential }) => credential.id,
  "session.after_complete",
);

const COMPLETE_SESSIONS = `-- update credential_session, insert into credential
  with given as (
    select * from ${given("given", COMPLETION, 1)}
  ), completed as (
    update credential_session session set status = 'completed', credential_id = first.id, completed_at = app_now()
    from (select distinct on (session_id) * from given order by session_id, id) first
    where session.account_id = first.account_id and session.id = first.session_id
      and session.status = 'pending' and session.expires_at > app_now()
    returning session.id as session_id, session.account_id, session.strategy_id, session.name, first.id
  ), made as (
    insert into credential (id, account_id, strategy_id, session_id, name, sealed, kid, origins)
    select id, completed.account_id, strategy_id, completed.session_id, name, sealed, kid,
      array(select json_array_elements_text(origins::json))
    from completed join given using (id)
    returning id
  ), recorded as (
    insert into audit_entry (${namesOf(ENTRY)})
    select entry.* from ${given("entry", ENTRY, 1 + Object.keys(COMPLETION).length)} join made on made.id = entry.subject_id
  )
  select id from made`;

/** Ends a pending session before its time; false: it is not pending any more. Its revocation is on record, so its expiry is not noted again. */
export async function expireSession(
  tx: Database,
  session: { readonly accountId: string; readonly id: string },
): Promise<boolean> {
  const rows = await tx.query(
    `update credential_session set expires_at = app_now(), expiry_noted_at = app_now()
     where account_id = $1 and id = $2 and embedded_session_id is null and status = 'pending' and expires_at > app_now()
     returning 1`,
    [session.accountId, session.id],
  );
  return rows.length > 0;
}

/**
 * Marks some expired sessions without a credential as recorded, and returns them. Part of a transaction.
 */
export async function noteExpiredSessions(
  tx: Database,
  limit: number,
): Promise<readonly { readonly id: string; readonly accountId: string; readonly strategyId: string }[]> {
  return await tx.query<{ id: string; accountId: string; strategyId: string }>(
    `update credential_session set expiry_noted_at = app_now()
     where id in (select id from credential_session
       where status = 'pending' and expiry_noted_at is null and expires_at <= app_now()
       order by expires_at limit $1 for no key update skip locked)
     returning id, account_id as "accountId", strategy_id as "strategyId"`,
    [limit],
  );
}

/** The same as in the table's CHECK. */
const FAILURE_CHARACTERS_MAX = 500;

/** Records for operators why a sign-in on the target's own pages failed. `detail` contains no secret. */
export async function noteSignInFailure(db: Database, sessionId: string, detail: string): Promise<void> {
  await db.query(
    `update credential_session set sign_in_failure = $2, sign_in_failed_at = app_now() where id = $1 and status = 'pending'`,
    [sessionId, Array.from(detail).slice(0, FAILURE_CHARACTERS_MAX).join("")],
  );
}
