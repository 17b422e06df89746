import type { PageRequest } from "#domain/page-cursor.ts";
import type { Database } from "#db/connection/pool.ts";

export interface SeenCredential {
  readonly id: string;
  readonly account: string;
  readonly strategy: string;
  readonly name: string | null;
  readonly createdAt: Date;
  readonly rejections: number;
  readonly lockedUntil: Date | null;
  readonly sessionUntil: Date | null;
  readonly lastRunId: string | null;
}

/** A page of credentials, newest first, of one account and strategy or of all, without sealed data. */
export async function listSeenCredentials(
  db: Database,
  filter: { readonly accountId: string | null; readonly strategyId: string | null },
  { after, rows }: PageRequest,
): Promise<readonly SeenCredential[]> {
  return await db.query<SeenCredential>(
    `select credential.id, account.slug as account, credential.strategy_id as strategy, credential.name,
       credential.created_at as "createdAt", credential.login_rejections as rejections,
       case when credential.login_locked_until > app_now() then credential.login_locked_until end as "lockedUntil",
       (select expires_at from login_session where credential_id = credential.id and expires_at > app_now()) as "sessionUntil",
       (select max(run_id) from run_credential where credential_id = credential.id) as "lastRunId"
     from credential join account on account.id = credential.account_id
     where ($1::text is null or credential.account_id = $1) and ($5::text is null or credential.strategy_id = $5)
       and ($2::bigint is null or (credential.created_at, credential.id) < (timestamptz 'epoch' + $2 * interval '1 ms', $3))
     order by credential.created_at desc, credential.id desc limit $4`,
    [filter.accountId, after?.atMs ?? null, after?.id ?? null, rows, filter.strategyId],
  );
}

export async function findAccountOfCredential(db: Database, id: string): Promise<string | undefined> {
  const rows = await db.query<{ accountId: string }>(
    `select account_id as "accountId" from credential where id = $1`,
    [id],
  );
  return rows[0]?.accountId;
}

export interface SeenSession {
  readonly id: string;
  readonly account: string;
  readonly strategy: string;
  readonly name: string | null;
  readonly status: string;
  readonly credentialId: string | null;
  readonly createdAt: Date;
  readonly expiresAt: Date;
  readonly completedAt: Date | null;
  readonly signInFailure: string | null;
  readonly signInFailedAt: Date | null;
}

/** A page of hosted sessions, newest first. `expired` is decided by the clock at the read. */
export async function listSeenSessions(
  db: Database,
  accountId: string | null,
  { after, rows }: PageRequest,
): Promise<readonly SeenSession[]> {
  return await db.query<SeenSession>(
    `select session.id, account.slug as account, session.strategy_id as strategy, session.name,
       case when session.status = 'pending' and session.expires_at <= app_now() then 'expired' else session.status end as status,
       session.credential_id as "credentialId", session.created_at as "createdAt", session.expires_at as "expiresAt",
       session.completed_at as "completedAt", session.sign_in_failure as "signInFailure",
       session.sign_in_failed_at as "signInFailedAt"
     from credential_session session join account on account.id = session.account_id
     where session.embedded_session_id is null
       and ($1::text is null or session.account_id = $1) and ($2::bigint is null
       or (session.created_at, session.id) < (timestamptz 'epoch' + $2 * interval '1 ms', $3))
     order by session.created_at desc, session.id desc limit $4`,
    [accountId, after?.atMs ?? null, after?.id ?? null, rows],
  );
}
