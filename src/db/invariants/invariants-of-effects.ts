import { AUDITED_SINCE, NOT_BY_US, type RowCheck } from "./row-check.ts";
const NO_REPLAY =
  "delete the row before its caller retries (the retry is then executed as a new request), or restore the backup that has both";

/** Answers that may still be replayed; `id`: the id in their body. The rest of a body is not read here. */
const ANSWERS = `(select 'idempotency_key ' || account_id || ' ' || encode(key_hash, 'hex') as place, account_id, status, body,
    token_session_id, token_at, substring(encode(body, 'escape') from '^\\{"id":"([a-z]+_[0-9A-Za-z]+)"') as id
  from idempotency_key where expires_at > app_now()) answer`;

/** An operator's rerun is answered with 201, like the creation of a session. */
const IS_RUN = `(answer.id is not null and starts_with(answer.id, 'run_'))`;

const since = (column: string): string => `${column} >= ${AUDITED_SINCE}`;

/** How many entries of an action there are for each subject. */
const entries = (action: string): string =>
  `(select subject_id, count(*) from audit_entry where action = '${action}' group by 1) entry`;

/** Rows of a table that do not have exactly one entry of an action. */
const oneEach = (table: string, action: string, where: string): string =>
  `select '${table} ' || ${table}.id || ' (' || coalesce(entry.count, 0) || ')' as place
   from ${table} left join ${entries(action)} on entry.subject_id = ${table}.id
   where ${where} and entry.count is distinct from 1`;

const audit = (name: string, problem: string, find: string): RowCheck => ({
  invariant: "V9",
  name,
  problem,
  remedy:
    "compare with the tombstones, the target and your other logs; then keep this database and report the line",
  find,
});

const extra = (action: string, where: string): string =>
  `select 'audit_entry ' || entry.id || ' of ' || entry.subject_id as place from audit_entry entry
   where entry.action = '${action}' and ${where}`;

/** Invariants V1, V9 and V12: stored answers, effects, and their audit entries agree. */
export const EFFECT_CHECKS: readonly RowCheck[] = [
  {
    invariant: "V1",
    name: "answer_missing",
    problem: "a key was claimed, but its answer is missing: its caller would never get one",
    remedy: NO_REPLAY,
    find: `select place from ${ANSWERS} where status is null or body is null`,
  },
  {
    invariant: "V1",
    name: "answer_without_run",
    problem: "a trigger was acknowledged, but its run does not exist",
    remedy: NO_REPLAY,
    find: `select place from ${ANSWERS} where (status = 202 or status = 201 and ${IS_RUN})
      and not exists (select from run where run.account_id = answer.account_id and run.id = answer.id)`,
  },
  {
    invariant: "V1",
    name: "answer_without_session",
    problem: "a session was acknowledged, but does not exist",
    remedy: NO_REPLAY,
    find: `select place from ${ANSWERS} where status = 201 and not ${IS_RUN} and not exists
      (select from credential_session session where session.account_id = answer.account_id and session.id = answer.id
       union all select from embedded_credential_session flow
         where flow.account_id = answer.account_id and flow.id = answer.id)`,
  },
  {
    invariant: "V1",
    name: "answer_without_cancel",
    problem: "a cancellation was acknowledged, but its run is not cancelled",
    remedy: NO_REPLAY,
    find: `select place from ${ANSWERS} where status = 200 and not exists
      (select from run where run.account_id = answer.account_id and run.id = answer.id and run.status = 'cancelled')`,
  },
  {
    invariant: "V1",
    name: "answer_twice",
    problem: "two keys refer to it: one request had no effect of its own",
    remedy: NOT_BY_US,
    find: `select id as place from ${ANSWERS} where status in (201, 202) and id is not null group by id having count(*) > 1`,
  },
  {
    invariant: "V12",
    name: "answer_changed",
    problem: "the stored answer differs from the run's first answer",
    remedy: NO_REPLAY,
    find: `select place from ${ANSWERS} join run on run.id = answer.id where answer.status in (201, 202)
      and body <> convert_to('{"id":"' || run.id || '","run_key":"' || run.run_key || '",' || case answer.status
        when 202 then '"status":"queued"' else '"blueprint_version":' || run.blueprint_version end || '}', 'UTF8')`,
  },
  {
    invariant: "V12",
    name: "answer_token",
    problem: "a retry would be given another session's link, or one in the wrong place",
    remedy: NO_REPLAY,
    find: `select place from ${ANSWERS} where case when status = 201 and not ${IS_RUN}
      then token_session_id is distinct from id or token_at < 1 or token_at > octet_length(body)
      else token_session_id is not null end`,
  },
  audit(
    "session_entry",
    "a session was created, but the log does not have exactly one entry for it",
    oneEach("credential_session", "session.create", `embedded_session_id is null and ${since("created_at")}`),
  ),
  audit(
    "embedded_session_entry",
    "an embedded session was created, but the log does not have exactly one entry for it",
    oneEach("embedded_credential_session", "embedded_session.create", since("created_at")),
  ),
  audit(
    "credential_entry",
    "a credential was submitted, but the log does not have exactly one entry for it",
    oneEach("credential", "credential.submit", `candidate_at is null and ${since("created_at")}`),
  ),
  audit(
    "cancel_entry",
    "a run was cancelled, but the log does not have exactly one entry for it",
    `select 'run ' || run.id || ' (' || coalesce(entry.count, 0) || ')' as place from run left join (
       select run_id, count(*) from audit_entry
       where action = 'run.cancel' or (action = 'review.decide' and detail like '%"decision":"rejected"%')
       group by 1) entry on entry.run_id = run.id
     where run.status = 'cancelled' and ${since("run.ended_at")} and entry.count is distinct from 1`,
  ),
  audit(
    "review_entry",
    "a review was decided, but the log does not have exactly one entry for it",
    oneEach("review", "review.decide", since("review.decided_at")),
  ),
  audit(
    "write_entry",
    "an operator decided on writes of the run, but the log has fewer entries for them",
    `select 'run ' || run_id as place from run_write left join ${entries("write.decide")} on entry.subject_id = run_id
     where decided_by is not null and ${since("decided_at")} group by run_id, entry.count having count(*) > coalesce(entry.count, 0)`,
  ),
  audit(
    "key_entry",
    "an API key was created, but the log does not have exactly one entry for it",
    oneEach(
      "api_key",
      "key.create",
      `${since("created_at")} and not exists (select from api_key old where old.replaced_by = api_key.id)`,
    ),
  ),
  audit(
    "key_change_entry",
    "an API key was revoked or replaced, but the log has no entry for it",
    `select 'api_key ' || key.id as place from api_key key
     where revoked_at is not null and ${since("revoked_at")}
         and not exists (select from audit_entry entry where action in ('key.revoke', 'key.rotate') and entry.subject_id = key.id)
       or replaced_by is not null and ${since("created_at")}
         and not exists (select from ${entries("key.rotate")} where entry.subject_id = key.id)`,
  ),
  audit(
    "operator_entry",
    "an operator was created, but the log does not have exactly one entry for it",
    oneEach("operator", "operator.create", since("created_at")),
  ),
  audit(
    "entry_without_session",
    "the log has the creation of a session that does not exist",
    extra("session.create", `not exists (select from credential_session where id = entry.subject_id)`),
  ),
  audit(
    "entry_without_embedded_session",
    "the log has the creation of an embedded session that does not exist",
    extra(
      "embedded_session.create",
      `not exists (select from embedded_credential_session where id = entry.subject_id)`,
    ),
  ),
  audit(
    "entry_without_credential",
    "the log has a submitted credential, but no session was completed with it",
    extra(
      "credential.submit",
      `not exists (select from credential_session where credential_id = entry.subject_id)`,
    ),
  ),
  audit(
    "entry_without_cancel",
    "the log has the cancellation of a run that was not cancelled",
    extra("run.cancel", `not exists (select from run where id = entry.subject_id and status = 'cancelled')`),
  ),
  audit(
    "entry_without_decision",
    "the log has the decision of a review that was not decided",
    extra("review.decide", `exists (select from review where id = entry.subject_id and decided_at is null)`),
  ),
];
