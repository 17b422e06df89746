import type { Database } from "#db/connection/pool.ts";

/** What callers have said of a credential or of a session: JSON texts, the nearer one first. */
export interface Whose {
  /** Of the session. */
  readonly sessionMetadata: string | null;
  /** Of the newest run of a Blueprint with the credential. */
  readonly runMetadata: Buffer | null;
}

/** Runs of a credential that are looked at, newest first: test logins have no metadata. */
const NEWEST = 20;

/** The metadata of the newest run of a Blueprint with a credential, whose id is given as SQL. Ids of runs are in the order of time. */
export const newestMetadata = (credentialId: string): string =>
  `(select metadata from run where blueprint_id is not null and id = any(array(
     select run_id from run_credential where credential_id = ${credentialId} order by run_id desc limit ${NEWEST}))
   order by id desc limit 1)`;

/** Who did something to a subject, both given as SQL, by the audit log; null: it is not there any more. */
export const doneBy = (subjectId: string, action: string): string =>
  `(select case entry.actor_kind
      when 'operator' then (select email from operator where operator.id = entry.actor_id)
      when 'operator_token' then (select 'the token "' || name || '"' from operator_token where operator_token.id = entry.actor_id)
      when 'api_key' then coalesce((select 'the API key "' || nullif(name, '') || '"' from api_key where api_key.id = entry.actor_id),
        'the API key ' || entry.actor_id)
      when 'cli' then 'the command line' else entry.actor_kind end
    from audit_entry entry where entry.subject_id = ${subjectId} and entry.action = '${action}'
    order by entry.occurred_at limit 1)`;

/** A run that only logs in. */
interface TriedLogin extends Whose {
  readonly runId: string;
  /** The label of the credential, or of the session that is to make it. */
  readonly name: string | null;
  /** Whether an end user has just typed it, and waits for the outcome (docs/strategies.md#trying-a-login-when-it-is-submitted). */
  readonly isSignIn: boolean;
}

/** What some runs log in with. A login that was refused at sign-in has left no credential: the audit log knows its session. */
export async function listTriedLogins(
  db: Database,
  runIds: readonly string[],
): Promise<readonly TriedLogin[]> {
  if (runIds.length === 0) return [];
  return await db.query<TriedLogin>(
    `select used.run_id as "runId", coalesce(credential.name, session.name) as name, session.metadata as "sessionMetadata",
       ${newestMetadata("used.credential_id")} as "runMetadata", tried.session_id is not null as "isSignIn"
     from run_credential used left join credential on credential.id = used.credential_id
       left join lateral (select actor_id as session_id from audit_entry
         where subject_id = used.credential_id and action = 'credential.verify' and run_id = used.run_id limit 1) tried on true
       left join credential_session session on session.id = coalesce(credential.session_id, tried.session_id)
     where used.run_id = any($1)`,
    [runIds],
  );
}

/** What is counted of a completed run that nobody has reviewed. */
interface RunCounts {
  readonly runId: string;
  readonly endedAt: Date | null;
  readonly recordsTotal: number | null;
  readonly recordsValid: number | null;
  /** Lines of `domain/node-tally.ts`: of its last step to end, and after it. */
  readonly tallies: readonly (Buffer | null)[];
}

/** The last counts of some runs: one row for each that has completed without a review. */
export async function listLastCounts(db: Database, runIds: readonly string[]): Promise<readonly RunCounts[]> {
  if (runIds.length === 0) return [];
  return await db.query<RunCounts>(
    `select run.id as "runId", last.ended_at as "endedAt", last.records_total as "recordsTotal",
       last.records_valid as "recordsValid", array[last.tally, run.tally] as tallies
     from run left join lateral (select ended_at, records_total, records_valid, tally from run_step
       where run_step.run_id = run.id and ended_at is not null order by ended_at desc limit 1) last on true
     where run.id = any($1) and run.status = 'completed'
       and not exists (select from review where review.run_id = run.id)`,
    [runIds],
  );
}
