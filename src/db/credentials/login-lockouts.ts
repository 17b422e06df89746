import type { Database } from "#db/connection/pool.ts";

/** Whether a credential may log in. Its target counts wrong passwords; we do too, and stop before it locks the user out. */
export interface LoginLockout {
  /** Rejected logins in a row. */
  readonly rejections: number;
  /** null: not locked. */
  readonly lockedUntil: Date | null;
}

/** Undefined when the credential was deleted. */
export async function findLoginLockout(
  db: Database,
  credentialId: string,
): Promise<LoginLockout | undefined> {
  const rows = await db.query<LoginLockout>(
    `select login_rejections as rejections,
       case when login_locked_until > app_now() then login_locked_until end as "lockedUntil"
     from credential where id = $1`,
    [credentialId],
  );
  return rows[0];
}

/**
 * Counts a rejected login of the run that holds the login lock, and locks the credential when the limit is reached. Returns the new
 * state; undefined, without counting, when the run has lost the lock or the credential was deleted.
 */
export async function countRejectedLogin(
  db: Database,
  rejected: {
    readonly credentialId: string;
    readonly runId: string;
    readonly after: number;
    readonly coolDownMs: number;
  },
): Promise<LoginLockout | undefined> {
  const rows = await db.query<LoginLockout>(
    `update credential set login_rejections = login_rejections + 1,
       login_locked_until = case when login_rejections + 1 >= $3
         then app_now() + $4::bigint * interval '1 ms' end
     where id = $1 and login_run_id = $2
     returning login_rejections as rejections, login_locked_until as "lockedUntil"`,
    [rejected.credentialId, rejected.runId, rejected.after, rejected.coolDownMs],
  );
  return rows[0];
}

/** After a successful login. */
export async function clearRejectedLogins(db: Database, credentialId: string, runId: string): Promise<void> {
  await db.query(
    `update credential set login_rejections = 0, login_locked_until = null
     where id = $1 and login_run_id = $2 and login_rejections > 0`,
    [credentialId, runId],
  );
}

/** Unlocks a credential for an operator. Returns the credential's account; undefined if there is no such credential. */
export async function unlockCredential(db: Database, credentialId: string): Promise<string | undefined> {
  const rows = await db.query<{ accountId: string }>(
    `update credential set login_rejections = 0, login_locked_until = null where id = $1
     returning account_id as "accountId"`,
    [credentialId],
  );
  return rows[0]?.accountId;
}

export interface ListedCredential extends LoginLockout {
  readonly id: string;
  readonly account: string;
  readonly strategy: string;
  /** The caller's label. */
  readonly name: string | null;
  readonly createdAt: Date;
  /** Whether there is a cached login for it. */
  readonly isLoggedIn: boolean;
}

/** For operators: the credentials of some accounts, or of all, without sealed values. */
export async function listCredentials(
  db: Database,
  accountIds: readonly string[] | null,
): Promise<readonly ListedCredential[]> {
  return await db.query<ListedCredential>(
    `select credential.id, account.slug as account, credential.strategy_id as strategy, credential.name,
       credential.created_at as "createdAt", credential.login_rejections as rejections,
       case when credential.login_locked_until > app_now() then credential.login_locked_until end as "lockedUntil",
       exists (select from login_session where credential_id = credential.id and expires_at > app_now()) as "isLoggedIn"
     from credential join account on account.id = credential.account_id
     where candidate_at is null and ($1::text[] is null or account.id = any($1)) order by account.slug, credential.created_at, credential.id`,
    [accountIds],
  );
}
