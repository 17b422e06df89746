import { ofAccounts, type Plant } from "./plants-of-accounts.ts";
import { ofSessions } from "./plants-of-embedded.ts";
import type { Left } from "./workload.ts";

const WORKER = (started: string): string =>
  `insert into worker (id, lock_key, hostname, pid, started_at) values ('wrk_x', 1, 'h', 1, app_now() - interval '${started}')`;

/** The parked run as one that is under way; `more` sets the rest. */
const underWay = (run: string, more: string): readonly string[] => [
  `update review set status = 'closed' where run_id = '${run}'`,
  `update run set parked_at = null, progress_step = 'running', ${more} where id = '${run}'`,
];

/** A row of a run that is left after its purge. */
const leftOf = (run: string, columns: string, values: string): Plant => ({
  check: "run_purged_data",
  place: `run ${run}`,
  sql: [`insert into ${columns} select account_id, id, ${values} from run where id = '${run}'`],
});

/** An entry of the audit log like another of its action, about something else. */
const entry = (action: string, subject: string, run = "null"): string =>
  `insert into audit_entry (id, account_id, occurred_at, actor_kind, actor_id, action, subject_id, run_id, detail, seal)
   select 'aud_planted', account_id, occurred_at, actor_kind, actor_id, action, '${subject}', ${run}, '{}', seal
   from audit_entry where action = '${action}' limit 1`;

/** The parked run as one that waits for a time in a line. */
const inLine = (check: string, run: string, line: string): Plant => ({
  check,
  place: `run ${run}`,
  sql: [
    `update review set status = 'closed' where run_id = '${run}'`,
    `update run set line = '${line}', progress_step = 'running' where id = '${run}'`,
  ],
});

const answer = (status: number, set: string): string =>
  `update idempotency_key set ${set} where status = ${status}`;

function ofRuns(left: Left): readonly Plant[] {
  const run = (check: string, id: string, set: string): Plant => ({
    check,
    place: `run ${id}`,
    sql: [`update run set ${set} where id = '${id}'`],
  });
  const step = (check: string, id: string, set: string): Plant => ({
    check,
    place: `run_step ${id} items`,
    sql: [`update run_step set ${set} where run_id = '${id}' and node_id = 'items'`],
  });
  const { completed, failed, parked, doubtful, decided, purged } = left;
  const sent = (id: string, ordinal: number): string =>
    `run_id = '${id}' and node_id = 'sent' and ordinal = ${ordinal}`;
  return [
    run("run_status", failed, "ended_at = null"),
    run("run_error", failed, "error_kind = null"),
    run("run_times", completed, "started_at = ended_at + interval '1 minute'"),
    run("run_progress", completed, "progress_step = 'reading'"),
    {
      check: "run_ended_held",
      place: `run ${completed}`,
      sql: [WORKER("0s"), `update run set lease_owner = 'wrk_x' where id = '${completed}'`],
    },
    step("run_worked_after_end", completed, "started_at = now() + interval '1 minute'"),
    {
      check: "run_worked_after_end",
      place: `run_write ${decided} sent 0`,
      sql: [
        `update run_write set started_at = now() + interval '1 minute', ended_at = now() + interval '1 minute'
        where ${sent(decided, 0)}`,
      ],
    },
    run("run_parked", parked, "progress_step = 'running'"),
    run("run_parked", parked, "admitted_at = app_now()"),
    {
      check: "run_parked_unasked",
      place: `run ${parked}`,
      sql: [`delete from review where run_id = '${parked}'`],
    },
    inLine("run_parked_unwoken", parked, "clock"),
    inLine("run_delayed_unwoken", parked, "delay"),
    {
      check: "review_open_unparked",
      place: `of run ${parked}`,
      sql: [`update run set parked_at = null, progress_step = 'running' where id = '${parked}'`],
    },
    {
      check: "run_overdue",
      place: `run ${parked}`,
      sql: [
        WORKER("1h"),
        ...underWay(parked, "admitted_at = app_now(), deadline_at = app_now() - interval '6 minutes'"),
      ],
    },
    {
      check: "write_without_step",
      place: `run_write ${doubtful} sent 1`,
      sql: [`delete from run_step where run_id = '${doubtful}' and node_id = 'sent'`],
    },
    {
      check: "write_unsettled_step",
      place: `run_write ${doubtful} sent 1`,
      sql: [
        `update run_step set status = 'done', output_kind = 'absent' where run_id = '${doubtful}' and node_id = 'sent'`,
      ],
    },
    {
      check: "write_unsettled_run",
      place: `run_write ${decided} sent 1`,
      sql: [
        `update run_step set status = 'failed' where run_id = '${decided}' and node_id = 'sent'`,
        `update run_write set status = 'in_doubt', outcome = null where ${sent(decided, 1)}`,
      ],
    },
    {
      check: "write_shape",
      place: `run_write ${decided} sent 0`,
      sql: [`update run_write set outcome = null where ${sent(decided, 0)}`],
    },
    step("step_epoch", completed, "epoch = 99"),
    {
      check: "write_epoch",
      place: `run_write ${decided} sent 0`,
      sql: [`update run_write set epoch = 99 where ${sent(decided, 0)}`],
    },
    {
      check: "run_epoch",
      place: `run ${parked}`,
      sql: [WORKER("0s"), ...underWay(parked, "lease_owner = 'wrk_x', admitted_at = null")],
    },
    {
      check: "run_held_by_nobody",
      place: `run ${parked}`,
      sql: underWay(parked, "lease_owner = 'wrk_gone', admitted_at = app_now()"),
    },
    run("run_response_bytes", completed, "response_bytes = null"),
    {
      check: "result_of_other_run",
      place: `run_result ${failed} 0`,
      sql: [
        `insert into blob (key, account_id, run_id, purpose, size_bytes, sha256)
         select 'results/planted', account_id, id, 'result', 1, '' from run where id = '${failed}'`,
        `insert into run_result (account_id, run_id, ordinal, key, total_records, json_bytes, blob_key)
         select account_id, id, 0, 'out', 1, 1, 'results/planted' from run where id = '${failed}'`,
      ],
    },
    {
      check: "result_object",
      place: `run_result ${completed} 0`,
      sql: [
        `update blob set purpose = 'step' where key = (select blob_key from run_result where run_id = '${completed}' and ordinal = 0)`,
      ],
    },
    {
      check: "result_content",
      place: `run_result ${completed} 1`,
      sql: [`update run_result set content = content || ' ' where run_id = '${completed}' and ordinal = 1`],
    },
    step("step_output", completed, "blob_key = null"),
    {
      check: "results_incomplete",
      place: `run ${completed}`,
      sql: [`delete from run_result where run_id = '${completed}' and ordinal = 1`],
    },
    run("run_sequence", completed, "sequence = 1"),
    run(
      "run_purged_before_end",
      purged,
      "status = 'running', progress_step = 'running', ended_at = null, response_bytes = null",
    ),
    leftOf(
      purged,
      "run_turn (account_id, run_id, node_id, ordinal, epoch, output_kind)",
      "'each.open', 0, 1, 'absent'",
    ),
    leftOf(purged, "run_poll (account_id, run_id, node_id, ordinal)", "'items', 0"),
    run("run_purged_data", purged, "error_detail = 'the story'"),
    run("run_purged_data", purged, `metadata = '{"a":"b"}'`),
    leftOf(purged, "run_input (account_id, run_id, ref_key, kind, content)", "'k', 'text', ''"),
    {
      check: "run_unpurged",
      place: `run ${failed}`,
      sql: [
        WORKER("2h"),
        `update run set started_at = now() - interval '3 days', ended_at = now() - interval '2 days', retention_ms = 0 where id in ('${failed}', '${purged}')`,
        `update run_step set started_at = now() - interval '3 days' where run_id = '${failed}'`,
      ],
    },
  ];
}

function ofCredentials({ credential, deleted, pending }: Left): readonly Plant[] {
  const session = (check: string, set: string): Plant => ({
    check,
    place: "credential_session sess_",
    sql: [`update credential_session set ${set} where credential_id = '${credential}'`],
  });
  return [
    session("session_shape", "completed_at = null"),
    session("session_late", "completed_at = expires_at"),
    {
      check: "session_credential_gone",
      place: "credential_session sess_",
      sql: ["login_session", "oauth_token", "totp_use"]
        .map((table) => `delete from ${table} where credential_id = '${credential}'`)
        .concat(`delete from credential where id = '${credential}'`),
    },
    {
      check: "credential_session",
      place: `credential ${credential}`,
      sql: [`update credential set session_id = '${pending}' where id = '${credential}'`],
    },
    {
      check: "credential_deleted",
      place: `credential ${deleted}`,
      sql: [
        `insert into credential (id, account_id, strategy_id, session_id, sealed, kid)
         select '${deleted}', session.account_id, session.strategy_id, session.id, sealed, kid
         from credential, credential_session session where credential.id = '${credential}' and session.credential_id = '${deleted}'`,
      ],
    },
    {
      check: "credential_left_over",
      place: "login_session of cred_gone",
      sql: [`update login_session set credential_id = 'cred_gone' where credential_id = '${credential}'`],
    },
    {
      check: "credential_left_over",
      place: "oauth_token of cred_gone",
      sql: [
        `insert into oauth_token (account_id, credential_id, version, sealed, kid) select account_id, 'cred_gone', 1, '', kid from credential limit 1`,
      ],
    },
    {
      check: "credential_left_over",
      place: "totp_use of cred_gone",
      sql: [`insert into totp_use (credential_id, field_key, step) values ('cred_gone', 'code', 1)`],
    },
    {
      check: "run_after_delete",
      place: `with ${deleted}`,
      sql: [
        `update run set created_at = now() + interval '1 second' where id in (select run_id from run_credential where credential_id = '${deleted}')`,
      ],
    },
    {
      check: "opened_after_delete",
      place: `audit_entry aud_planted of ${deleted}`,
      sql: [
        entry("credential.open", deleted),
        `update audit_entry set occurred_at = now() + interval '1 minute' where id = 'aud_planted'`,
      ],
    },
    {
      check: "object_of_no_run",
      place: "blob steps/planted",
      sql: [
        `insert into blob (key, account_id, purpose, size_bytes, sha256) select 'steps/planted', id, 'step', 1, '' from account limit 1`,
      ],
    },
  ];
}

function ofEffects({
  completed,
  cancelled,
  approved,
  parked,
  credential,
  decided,
  pending,
}: Left): readonly Plant[] {
  const withoutEntry = (check: string, place: string, action: string, subject: string): Plant => ({
    check,
    place,
    sql: [`delete from audit_entry where action = '${action}' and subject_id = ${subject}`],
  });
  const body = (text: string): string => `body = convert_to('${text}', 'UTF8')`;
  const spare = "(select id from api_key where replaced_by is not null limit 1)";
  return [
    {
      check: "answer_missing",
      place: "idempotency_key acct_",
      sql: [answer(202, "status = null, body = null")],
    },
    {
      check: "answer_without_run",
      place: "idempotency_key acct_",
      sql: [answer(202, body('{"id":"run_gone","run_key":"x"}'))],
    },
    {
      check: "answer_without_session",
      place: "idempotency_key acct_",
      sql: [answer(201, `${body('{"id":"sess_gone"}')}, token_session_id = 'sess_gone', token_at = 1`)],
    },
    {
      check: "answer_without_run",
      place: "idempotency_key acct_",
      sql: [
        answer(
          201,
          `${body('{"id":"run_gone","run_key":"x","blueprint_version":1}')}, token_session_id = null, token_at = null`,
        ),
      ],
    },
    {
      check: "answer_without_cancel",
      place: "idempotency_key acct_",
      sql: [answer(200, body(`{"id":"${completed}"}`))],
    },
    {
      check: "answer_twice",
      place: completed,
      sql: [
        `insert into idempotency_key (account_id, key_hash, fingerprint, expires_at, status, body)
         select account_id, '\\x00', fingerprint, expires_at, status, body from idempotency_key where status = 202`,
      ],
    },
    {
      check: "answer_changed",
      place: "idempotency_key acct_",
      sql: [
        answer(202, "body = convert_to(replace(convert_from(body, 'UTF8'), 'queued', 'running'), 'UTF8')"),
      ],
    },
    {
      check: "answer_changed",
      place: "idempotency_key acct_",
      sql: [
        answer(
          202,
          `status = 201, body = convert_to(replace(convert_from(body, 'UTF8'), '"status":"queued"', '"blueprint_version":99'), 'UTF8')`,
        ),
      ],
    },
    {
      check: "answer_token",
      place: "idempotency_key acct_",
      sql: [
        answer(
          202,
          `status = 201, token_session_id = 'sess_x', token_at = 1, body = convert_to(replace(convert_from(body, 'UTF8'), '"status":"queued"', '"blueprint_version":1'), 'UTF8')`,
        ),
      ],
    },
    { check: "answer_token", place: "idempotency_key acct_", sql: [answer(201, "token_at = 100000")] },
    {
      check: "answer_token",
      place: "idempotency_key acct_",
      sql: [answer(201, "token_session_id = 'sess_x'")],
    },
    withoutEntry("session_entry", `credential_session ${pending} (0)`, "session.create", `'${pending}'`),
    {
      check: "session_entry",
      place: `credential_session ${pending} (2)`,
      sql: [entry("session.create", pending)],
    },
    withoutEntry("credential_entry", `credential ${credential} (0)`, "credential.submit", `'${credential}'`),
    withoutEntry("cancel_entry", `run ${cancelled} (0)`, "run.cancel", `'${cancelled}'`),
    withoutEntry(
      "review_entry",
      "review rev_",
      "review.decide",
      `(select id from review where run_id = '${approved}')`,
    ),
    withoutEntry("write_entry", `run ${decided}`, "write.decide", `'${decided}'`),
    withoutEntry("key_entry", "api_key key_", "key.create", spare),
    withoutEntry("key_change_entry", "api_key key_", "key.rotate", spare),
    {
      check: "operator_entry",
      place: "operator op_planted",
      sql: [
        `insert into operator (id, email, password_hash, role) values ('op_planted', 'x@example.com', '', 'admin')`,
      ],
    },
    { check: "entry_without_session", place: "of sess_gone", sql: [entry("session.create", "sess_gone")] },
    {
      check: "entry_without_credential",
      place: "of cred_gone",
      sql: [entry("credential.submit", "cred_gone")],
    },
    { check: "entry_without_cancel", place: `of ${completed}`, sql: [entry("run.cancel", completed)] },
    {
      check: "entry_without_decision",
      place: "of rev_",
      sql: [
        entry("review.decide", "rev_"),
        `update audit_entry set subject_id = (select id from review where run_id = '${parked}') where id = 'aud_planted'`,
      ],
    },
  ];
}

export const plantsOf = (left: Left): readonly Plant[] => [
  ...ofRuns(left),
  ...ofCredentials(left),
  ...ofEffects(left),
  ...ofAccounts(left),
  ...ofSessions(left),
];
