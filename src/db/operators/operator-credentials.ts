import type { PageRequest } from "#domain/page-cursor.ts";
import type { Database } from "#db/connection/pool.ts";
import type { SessionStatus } from "#domain/credential-session.ts";
import type { CredentialState } from "#domain/credential-state.ts";
import { doneBy, newestMetadata, type Whose } from "./whose.ts";

export interface SeenCredential extends Whose {
  readonly id: string;
  readonly account: string;
  readonly strategy: string;
  readonly name: string | null;
  readonly createdAt: Date;
  readonly rejections: number;
  readonly lockedUntil: Date | null;
  readonly sessionUntil: Date | null;
  readonly lastRunId: string | null;
  readonly lastRunAt: Date | null;
}

const CREDENTIAL = `credential.id, account.slug as account, credential.strategy_id as strategy, credential.name,
  credential.created_at as "createdAt", credential.login_rejections as rejections,
  case when credential.login_locked_until > app_now() then credential.login_locked_until end as "lockedUntil",
  (select expires_at from login_session where credential_id = credential.id and expires_at > app_now()) as "sessionUntil",
  last_run.id as "lastRunId", last_run.created_at as "lastRunAt",
  (select metadata from credential_session where credential_session.id = credential.session_id) as "sessionMetadata",
  ${newestMetadata("credential.id")} as "runMetadata"`;
/** Ids of runs are in the order of time. */
const WITH_LAST_RUN = `credential join account on account.id = credential.account_id
  left join run last_run on last_run.id = (select max(run_id) from run_credential where credential_id = credential.id)`;

/** A page of credentials, newest first, of some accounts and one strategy or of all, without sealed data. */
export async function listSeenCredentials(
  db: Database,
  filter: {
    readonly accountIds: readonly string[] | null;
    readonly strategyId: string | null;
    /** Part of the name or of the id, in small letters. */
    readonly text: string | null;
    readonly state: CredentialState | null;
  },
  { after, rows }: PageRequest,
): Promise<readonly SeenCredential[]> {
  return await db.query<SeenCredential>(
    `select ${CREDENTIAL}
     from ${WITH_LAST_RUN}
     where candidate_at is null and ($1::text[] is null or credential.account_id = any($1)) and ($5::text is null or credential.strategy_id = $5)
       and ($6::text is null or position($6 in lower(coalesce(credential.name, ''))) > 0
         or position($6 in lower(credential.id)) > 0)
       and ($7::text is null or case $7 when 'locked' then credential.login_locked_until > app_now() else credential.login_rejections > 0 end)
       and ($2::bigint is null or (credential.created_at, credential.id) < (timestamptz 'epoch' + $2 * interval '1 ms', $3))
     order by credential.created_at desc, credential.id desc limit $4`,
    [
      filter.accountIds,
      after?.atMs ?? null,
      after?.id ?? null,
      rows,
      filter.strategyId,
      filter.text,
      filter.state,
    ],
  );
}

export interface CredentialDetail extends SeenCredential {
  readonly sessionId: string;
  /** Null: it was never bound to origins. */
  readonly origins: readonly string[] | null;
}

export async function findSeenCredential(db: Database, id: string): Promise<CredentialDetail | undefined> {
  const rows = await db.query<CredentialDetail>(
    `select ${CREDENTIAL}, credential.session_id as "sessionId", credential.origins
     from ${WITH_LAST_RUN} where credential.id = $1 and candidate_at is null`,
    [id],
  );
  return rows[0];
}

/** The runs of one Blueprint with a credential. */
export interface CredentialUse {
  /** Null: test logins. */
  readonly blueprint: string | null;
  readonly runs: number;
  readonly completed: number;
  readonly failed: number;
  readonly loginFailed: number;
  readonly lastRunId: string;
  readonly lastRunAt: Date;
}

/** The newest `among` runs with a credential, whose ids are in the order of time, by Blueprint: the last used one first. */
export async function listUses(db: Database, id: string, among: number): Promise<readonly CredentialUse[]> {
  return await db.query<CredentialUse>(
    // Each run by itself, by the index: the planner does not know how few they are.
    `with newest as materialized (
       select distinct run_id from run_credential where credential_id = $1 order by run_id desc limit $2
     )
     select blueprint.key as blueprint, count(*)::int as runs,
       (count(*) filter (where run.status = 'completed'))::int as completed,
       (count(*) filter (where run.status = 'failed'))::int as failed,
       (count(*) filter (where run.error_kind = 'login'))::int as "loginFailed",
       max(run.id) as "lastRunId", max(run.created_at) as "lastRunAt"
     from newest cross join lateral (select * from run where id = newest.run_id limit 1) run left join blueprint on blueprint.id = run.blueprint_id
     group by 1 order by max(run.id) desc`,
    [id, among],
  );
}

/** The newest `limit` runs with a credential, newest first. */
export async function listRunsWithCredential(
  db: Database,
  id: string,
  limit: number,
): Promise<readonly string[]> {
  const rows = await db.query<{ runId: string }>(
    `select distinct run_id as "runId" from run_credential where credential_id = $1 order by run_id desc limit $2`,
    [id, limit],
  );
  return rows.map(({ runId }) => runId);
}

export async function findAccountOfCredential(db: Database, id: string): Promise<string | undefined> {
  const rows = await db.query<{ accountId: string }>(
    `select account_id as "accountId" from credential where id = $1`,
    [id],
  );
  return rows[0]?.accountId;
}

export interface SeenSession extends Whose {
  readonly id: string;
  readonly account: string;
  readonly strategy: string;
  readonly name: string | null;
  readonly status: string;
  readonly credentialId: string | null;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly openedAt: Date | null;
  readonly completedAt: Date | null;
  readonly signInFailure: string | null;
  readonly signInFailedAt: Date | null;
  /** By the audit log; null: it does not say any more. */
  readonly createdBy: string | null;
}

const SESSION = `session.id, account.slug as account, session.strategy_id as strategy, session.name, session.metadata as "sessionMetadata",
  case when session.status = 'pending' and session.expires_at <= app_now() then 'expired' else session.status end as status,
  session.credential_id as "credentialId", session.created_at as "createdAt", session.expires_at as "expiresAt",
  session.first_opened_at as "openedAt", session.completed_at as "completedAt", session.sign_in_failure as "signInFailure",
  session.sign_in_failed_at as "signInFailedAt", ${newestMetadata("session.credential_id")} as "runMetadata",
  ${doneBy("session.id", "session.create")} as "createdBy"`;

/** A page of hosted sessions, newest first. `expired` is decided by the clock at the read. */
export async function listSeenSessions(
  db: Database,
  filter: { readonly accountIds: readonly string[] | null; readonly status: SessionStatus | null },
  { after, rows }: PageRequest,
): Promise<readonly SeenSession[]> {
  return await db.query<SeenSession>(
    `select ${SESSION}
     from credential_session session join account on account.id = session.account_id
     where session.embedded_session_id is null
       and ($5::text is null or $5 = case when session.status = 'pending' and session.expires_at <= app_now() then 'expired' else session.status end)
       and ($1::text[] is null or session.account_id = any($1)) and ($2::bigint is null
       or (session.created_at, session.id) < (timestamptz 'epoch' + $2 * interval '1 ms', $3))
     order by session.created_at desc, session.id desc limit $4`,
    [filter.accountIds, after?.atMs ?? null, after?.id ?? null, rows, filter.status],
  );
}

export interface SessionDetail extends SeenSession {
  readonly accountId: string;
  readonly strategyVersion: number;
  readonly returnUrl: string | null;
  /** Null: it has its own link. */
  readonly embeddedSessionId: string | null;
  readonly blueprint: string | null;
  readonly slot: string | null;
}

/** A session of any purpose. */
export async function findSeenSession(db: Database, id: string): Promise<SessionDetail | undefined> {
  const rows = await db.query<SessionDetail>(
    `select ${SESSION}, session.account_id as "accountId", session.strategy_version as "strategyVersion",
       session.return_url as "returnUrl",
       session.embedded_session_id as "embeddedSessionId", session.blueprint_key as blueprint, session.slot
     from credential_session session join account on account.id = session.account_id where session.id = $1`,
    [id],
  );
  return rows[0];
}
