import type { Database } from "#db/connection/pool.ts";
import type { LoginCheck } from "#domain/login-check.ts";
import type { NewCredential, StoredSession } from "./credential-sessions.ts";

type SessionKey = Pick<StoredSession, "accountId" | "id">;

/**
 * Stores a login that is to be tried, for a pending session that takes one. False: it takes none, or has one already. Of concurrent submits
 * one gets true, because the session's row stays locked. Part of the caller's transaction.
 */
export async function insertCandidate(
  tx: Database,
  session: SessionKey,
  credential: NewCredential,
): Promise<boolean> {
  const rows = await tx.query(
    `with open as (
       select id, account_id, strategy_id, name from credential_session
       where account_id = $1 and id = $2 and status = 'pending' and expires_at > app_now()
         and (login_closed_until is null or login_closed_until <= app_now())
       for no key update
     )
     insert into credential (id, account_id, strategy_id, session_id, name, sealed, kid, origins, candidate_at)
     select $3, account_id, strategy_id, id, name, $4, $5, $6, app_now() from open
     on conflict (session_id) do nothing
     returning 1`,
    [session.accountId, session.id, credential.id, credential.sealed, credential.kid, credential.origins],
  );
  return rows.length > 0;
}

/** How a session's login stands. */
export interface LoginTry {
  /** The candidate that is being tried; null: there is none. */
  readonly candidateId: string | null;
  /** For how long it has been tried. */
  readonly triedMs: number;
  /** The state of the run that tries it; null: there is no candidate. */
  readonly runStatus: "queued" | "running" | "completed" | "failed" | "cancelled" | null;
  /** Whether the target has refused the candidate. */
  readonly isRefused: boolean;
  /** Whether the session can still be completed. */
  readonly isOpen: boolean;
  /** What the last try came to. */
  readonly check: LoginCheck | null;
  /** For how long no further login is taken; 0: one is. */
  readonly closedMs: number;
}

const LOGIN_TRY = `credential.id as "candidateId",
  coalesce((extract(epoch from app_now() - candidate_at) * 1000)::float8, 0) as "triedMs",
  (select run.status from run_credential used join run on run.id = used.run_id
    where used.credential_id = credential.id and run.blueprint_id is null order by run.id limit 1) as "runStatus",
  coalesce(login_rejections > 0, false) as "isRefused",
  session.status = 'pending' and session.expires_at > app_now() as "isOpen",
  session.login_check as "check",
  greatest(coalesce((extract(epoch from session.login_closed_until - app_now()) * 1000)::float8, 0), 0) as "closedMs"`;

/** Undefined: there is no such session. */
export async function findLoginTry(db: Database, session: SessionKey): Promise<LoginTry | undefined> {
  const rows = await db.query<LoginTry>({
    name: "find_login_try",
    text: `select ${LOGIN_TRY} from credential_session session
      left join credential on credential.session_id = session.id and candidate_at is not null
      where session.account_id = $1 and session.id = $2`,
    values: [session.accountId, session.id],
  });
  return rows[0];
}

/** The same with the session and its candidate locked; undefined: it has none. Part of a transaction. */
export async function lockLoginTry(tx: Database, session: SessionKey): Promise<LoginTry | undefined> {
  // First the session, as a submit and a revocation do.
  await tx.query(`select from credential_session where account_id = $1 and id = $2 for no key update`, [
    session.accountId,
    session.id,
  ]);
  await tx.query(`select from credential where session_id = $1 and candidate_at is not null for update`, [
    session.id,
  ]);
  // In a statement of its own, which sees what was committed before the locks.
  const found = await findLoginTry(tx, session);
  return found === undefined || found.candidateId === null ? undefined : found;
}

/**
 * Spec, Credential session `status`: `pending` → `completed` with the candidate, which is a credential from now on. Both rows are
 * locked. Part of a transaction.
 */
export async function completeWithCandidate(
  tx: Database,
  session: SessionKey,
  credentialId: string,
  check: Exclude<LoginCheck, "refused">,
): Promise<void> {
  await tx.query(
    `update credential_session set status = 'completed', credential_id = $3, completed_at = app_now(), login_check = $4
     where account_id = $1 and id = $2`,
    [session.accountId, session.id, credentialId, check],
  );
  await tx.query(`update credential set candidate_at = null where account_id = $1 and id = $2`, [
    session.accountId,
    credentialId,
  ]);
}

/** Counts a login that the target has refused. From the `tries`th in a row on, no further one is taken for `coolDownMs`. */
export async function countRefusedLogin(
  tx: Database,
  session: SessionKey,
  { tries, coolDownMs }: { readonly tries: number; readonly coolDownMs: number },
): Promise<void> {
  await tx.query(
    `update credential_session set login_check = 'refused', login_refusals = login_refusals + 1,
       login_closed_until = case when login_refusals + 1 >= $3 then app_now() + $4::bigint * interval '1 ms' end
     where account_id = $1 and id = $2`,
    [session.accountId, session.id, tries, coolDownMs],
  );
}

/** For a strategy without a lockout: a candidate's rejected login is noted all the same. */
export async function noteRefusedCandidate(db: Database, credentialId: string, runId: string): Promise<void> {
  await db.query(
    `update credential set login_rejections = login_rejections + 1
     where id = $1 and login_run_id = $2 and candidate_at is not null`,
    [credentialId, runId],
  );
}

/** Sessions whose candidates have come to something: their run has ended, they were tried for longer than `afterMs`, or the session is over. */
export async function listLeftCandidates(
  db: Database,
  { afterMs, limit }: { readonly afterMs: number; readonly limit: number },
): Promise<readonly SessionKey[]> {
  return await db.query<SessionKey>(
    `select session.account_id as "accountId", session.id from credential
       join credential_session session on session.id = credential.session_id
     where candidate_at is not null
       and (candidate_at < app_now() - $1::bigint * interval '1 ms' or session.expires_at <= app_now()
         or exists (select from run_credential used join run on run.id = used.run_id
           where used.credential_id = credential.id and run.ended_at is not null))
     order by candidate_at limit $2`,
    [afterMs, limit],
  );
}

/** After a restore: what was being tried is erased, and its sessions are pending as before. Part of a transaction. */
export async function deleteCandidates(
  tx: Database,
): Promise<readonly { readonly id: string; readonly accountId: string }[]> {
  return await tx.query<{ id: string; accountId: string }>(
    `delete from credential where candidate_at is not null returning id, account_id as "accountId"`,
  );
}
