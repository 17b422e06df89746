import type { Database } from "#db/connection/pool.ts";

/** Records a browser's redirect to the single sign-on provider, and deletes expired records. */
export async function insertOidcAttempt(
  db: Database,
  attempt: {
    readonly stateHash: Uint8Array;
    /** The session to confirm; null: a sign-in. */
    readonly sessionId: string | null;
    readonly returnTo: string;
    readonly lifetimeMs: number;
  },
): Promise<void> {
  await db.query(`delete from operator_oidc_attempt where expires_at <= app_now()`);
  await db.query(
    `insert into operator_oidc_attempt (state_hash, session_id, return_to, expires_at)
     values ($1, $2, $3, app_now() + $4::bigint * interval '1 ms')`,
    [attempt.stateHash, attempt.sessionId, attempt.returnTo, attempt.lifetimeMs],
  );
}

/** Takes a `state`, which is valid once, for a limited time and for one purpose: of any number of callers exactly one gets it. */
export async function takeOidcAttempt(
  db: Database,
  stateHash: Uint8Array,
  sessionId: string | null,
): Promise<{ readonly returnTo: string } | undefined> {
  const rows = await db.query<{ returnTo: string }>(
    `delete from operator_oidc_attempt
     where state_hash = $1 and session_id is not distinct from $2 and expires_at > app_now()
     returning return_to as "returnTo"`,
    [stateHash, sessionId],
  );
  return rows[0];
}
