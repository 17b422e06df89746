import type { Database } from "#db/connection/pool.ts";

/** A pending sign-in of an end user on a target's own pages. */
export interface OAuthAttempt {
  readonly stateHash: Uint8Array;
  readonly accountId: string;
  readonly sessionId: string;
  readonly strategyId: string;
  /** Encrypted under a key of its `state`. */
  readonly form: Uint8Array;
}

/** Stores an attempt, for a pending session only, and removes expired attempts. False: the session is not pending. */
export async function insertOAuthAttempt(
  db: Database,
  attempt: OAuthAttempt,
  lifetimeMs: number,
): Promise<boolean> {
  await db.query(`delete from oauth_attempt where expires_at <= app_now()`);
  const rows = await db.query(
    `insert into oauth_attempt (state_hash, account_id, session_id, strategy_id, form, expires_at)
     select $1, account_id, id, strategy_id, $4, app_now() + $5::bigint * interval '1 ms'
     from credential_session
     where account_id = $2 and id = $3 and strategy_id = $6 and status = 'pending' and expires_at > app_now()
     returning 1`,
    [attempt.stateHash, attempt.accountId, attempt.sessionId, attempt.form, lifetimeMs, attempt.strategyId],
  );
  return rows.length > 0;
}

export interface FoundAttempt extends OAuthAttempt {
  readonly isUsed: boolean;
  /** The callback's data, if there was one. */
  readonly outcome: "refused" | "failed" | null;
}

/** Finds an unexpired attempt by the SHA-256 of its `state`. Changes nothing. */
export async function findOAuthAttempt(
  db: Database,
  stateHash: Uint8Array,
): Promise<FoundAttempt | undefined> {
  const rows = await db.query<FoundAttempt>(
    `select state_hash as "stateHash", account_id as "accountId", session_id as "sessionId", strategy_id as "strategyId", form,
       used_at is not null as "isUsed", outcome
     from oauth_attempt where state_hash = $1 and expires_at > app_now()`,
    [stateHash],
  );
  return rows[0];
}

/** Consumes a `state`: of any number of callers exactly one gets true. */
export async function useOAuthAttempt(db: Database, stateHash: Uint8Array): Promise<boolean> {
  const rows = await db.query(
    `update oauth_attempt set used_at = app_now()
     where state_hash = $1 and used_at is null and expires_at > app_now() returning 1`,
    [stateHash],
  );
  return rows.length > 0;
}

export async function recordOutcome(
  db: Database,
  stateHash: Uint8Array,
  outcome: "refused" | "failed",
): Promise<void> {
  await db.query(`update oauth_attempt set outcome = $2 where state_hash = $1`, [stateHash, outcome]);
}

/** Hands a callback over to a worker process, and notifies one. */
export async function handOverAnswer(db: Database, stateHash: Uint8Array, answer: Uint8Array): Promise<void> {
  await db.query(
    `with handed as (
       update oauth_attempt set answer = $2 where state_hash = $1 and used_at is not null returning encode(state_hash, 'hex') as hash)
     select graphile_worker.add_job('finish_sign_in', json_build_object('stateHash', hash), priority => -1, max_attempts => 3)
     from handed`,
    [stateHash, answer],
  );
}

/** Takes a handed-over callback: exactly one caller gets it. Undefined: it was taken or withdrawn. */
export async function takeAnswer(
  db: Database,
  stateHash: Uint8Array,
): Promise<{ readonly attempt: OAuthAttempt; readonly answer: Uint8Array } | undefined> {
  const rows = await db.query<OAuthAttempt & { answer: Uint8Array }>(
    `with handed as (select answer from oauth_attempt where state_hash = $1 and answer is not null for update)
     update oauth_attempt set answer = null from handed where state_hash = $1
     returning state_hash as "stateHash", account_id as "accountId", session_id as "sessionId",
       strategy_id as "strategyId", form, handed.answer`,
    [stateHash],
  );
  const [row] = rows;
  if (row === undefined) return undefined;
  const { answer, ...attempt } = row;
  return { attempt, answer };
}

/** The outcome of a handed-over callback. `isClosed`: its session is completed or has expired. */
export async function findProgress(
  db: Database,
  stateHash: Uint8Array,
): Promise<{ readonly outcome: FoundAttempt["outcome"]; readonly isClosed: boolean } | undefined> {
  const rows = await db.query<{ outcome: FoundAttempt["outcome"]; isClosed: boolean }>({
    name: "find_oauth_progress",
    text: `select outcome, status <> 'pending' or credential_session.expires_at <= app_now() as "isClosed"
      from oauth_attempt join credential_session on credential_session.id = session_id where state_hash = $1`,
    values: [stateHash],
  });
  return rows[0];
}

/** A credential's tokens at a version, sealed. */
export interface SealedTokens {
  readonly version: number;
  readonly sealed: Uint8Array;
  readonly kid: string;
}

export interface NewTokens extends SealedTokens {
  readonly accountId: string;
  readonly credentialId: string;
  readonly expiresAtMs: number | null;
}

export async function findTokens(
  db: Database,
  accountId: string,
  credentialId: string,
): Promise<SealedTokens | undefined> {
  const rows = await db.query<SealedTokens>(
    `select version, sealed, kid from oauth_token where account_id = $1 and credential_id = $2`,
    [accountId, credentialId],
  );
  return rows[0];
}

/**
 * Version 1 is a new row; every later one replaces its predecessor. False: another version was stored, or the credential was deleted.
 */
export async function saveTokens(db: Database, tokens: NewTokens): Promise<boolean> {
  const { accountId, credentialId, version, sealed, kid, expiresAtMs } = tokens;
  const values = [accountId, credentialId, version, sealed, kid, expiresAtMs];
  const rows =
    version === 1
      ? await db.query(
          `insert into oauth_token (account_id, credential_id, version, sealed, kid, expires_at)
           select account_id, id, $3::integer, $4::bytea, $5::text, to_timestamp($6::float8 / 1000) from credential
           where account_id = $1 and id = $2
           on conflict do nothing returning 1`,
          values,
        )
      : await db.query(
          `update oauth_token set version = $3, sealed = $4, kid = $5, expires_at = to_timestamp($6::float8 / 1000),
             updated_at = app_now()
           where account_id = $1 and credential_id = $2 and version = $3 - 1 returning 1`,
          values,
        );
  return rows.length > 0;
}
