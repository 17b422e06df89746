import { AUDITED_SINCE, NOT_BY_US, type RowCheck } from "./row-check.ts";
const DELETE_IT =
  "if a backup was restored: latchkey restore-reconcile, before the service is started; otherwise delete it by the API";

const ofSessions = (where: string): string =>
  `select 'credential_session ' || session.id as place from credential_session session where ${where}`;

/** Secrets that belong to a credential and are deleted with it. */
const leftOf = (table: string): string =>
  `select '${table} of ' || credential_id as place from ${table}
   where not exists (select from credential where credential.id = ${table}.credential_id)`;

const DELETED = `(select subject_id, occurred_at from audit_entry where action = 'credential.delete') deleted`;

/** Invariants V6 and V7, and V11's rows. */
export const CREDENTIAL_CHECKS: readonly RowCheck[] = [
  {
    invariant: "V6",
    name: "session_shape",
    problem: "it is completed without a credential or a time, or has them without being completed",
    remedy: NOT_BY_US,
    find: ofSessions(`status not in ('pending', 'completed') or (status = 'completed') <> (credential_id is not null)
      or (status = 'completed') <> (completed_at is not null)`),
  },
  {
    invariant: "V6",
    name: "session_late",
    problem: "it was completed after it had expired",
    remedy:
      "its session was no longer valid: delete the credential by the API, and ask the end user to connect again",
    find: ofSessions(`completed_at >= expires_at`),
  },
  {
    invariant: "V6",
    name: "session_credential_gone",
    problem: "its credential is missing, although it was not deleted",
    remedy: "restore the backup that has the credential, or let its owner connect again",
    find: ofSessions(`status = 'completed' and completed_at >= ${AUDITED_SINCE}
      and not exists (select from credential where credential.id = session.credential_id)
      and not exists (select from ${DELETED} where deleted.subject_id = session.credential_id)`),
  },
  {
    invariant: "V6",
    name: "credential_session",
    problem: "it does not belong to a session that was completed with it",
    remedy: NOT_BY_US,
    find: `select 'credential ' || credential.id as place
      from credential left join credential_session session on session.id = credential.session_id
      where candidate_at is null and session.credential_id is distinct from credential.id`,
  },
  {
    invariant: "V6",
    name: "candidate_session",
    problem: "it is being tried, but its session is not pending",
    remedy: NOT_BY_US,
    find: `select 'credential ' || credential.id as place
      from credential left join credential_session session on session.id = credential.session_id
      where candidate_at is not null and session.status is distinct from 'pending'`,
  },
  {
    invariant: "V6",
    name: "embedded_session_shape",
    problem: "it is completed without a credential for each slot, or has them all and is not completed",
    remedy: NOT_BY_US,
    find: `select 'embedded_credential_session ' || flow.id as place from embedded_credential_session flow
      cross join lateral (select count(*) as slots, count(credential_id) as filled,
          (array_agg(credential_id order by slot_position))[1] as first from credential_session session
        where session.embedded_session_id = flow.id and session.blueprint_key = flow.selected_blueprint_key) of_slots
      where (flow.status = 'completed') <> (slots > 0 and slots = filled)
        or flow.status = 'completed' and flow.credential_id is distinct from of_slots.first`,
  },
  {
    invariant: "V7",
    name: "credential_deleted",
    problem: "it was deleted, but still exists",
    remedy: DELETE_IT,
    find: `select 'credential ' || id as place from credential
      where exists (select from ${DELETED} where deleted.subject_id = credential.id)`,
  },
  {
    invariant: "V7",
    name: "credential_left_over",
    problem: "its credential was deleted, but this row remains",
    remedy: "delete the row: nothing reads it any more, and it contains data that should have been deleted",
    find: ["login_session", "oauth_token", "totp_use"].map(leftOf).join(" union all "),
  },
  {
    invariant: "V7",
    name: "run_after_delete",
    problem: "it was triggered with a credential that had been deleted before",
    remedy: NOT_BY_US,
    find: `select 'run ' || run.id || ' with ' || used.credential_id as place
      from run join run_credential used on used.run_id = run.id
        join ${DELETED} on deleted.subject_id = used.credential_id
      where run.created_at > deleted.occurred_at`,
  },
  {
    invariant: "V7",
    name: "opened_after_delete",
    problem: "a run opened a credential more than 10 s after it had been deleted",
    remedy: "find out what the run did with it (latchkey audit export), and report this line as a defect",
    find: `select 'audit_entry ' || opened.id || ' of ' || opened.subject_id as place
      from audit_entry opened join ${DELETED} on deleted.subject_id = opened.subject_id
      where opened.action = 'credential.open' and opened.occurred_at > deleted.occurred_at + interval '10 seconds'`,
  },
  {
    invariant: "V11",
    name: "object_of_no_run",
    problem: "it belongs to no run: nothing would ever purge it",
    remedy: "delete the row; the next sweep removes the object",
    find: `select 'blob ' || key as place from blob where run_id is null`,
  },
];
