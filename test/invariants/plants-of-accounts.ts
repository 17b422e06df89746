import type { Left } from "./workload.ts";

/** A violation, planted by SQL: what the checker must find, and nothing else. */
export interface Plant {
  readonly check: string;
  /** A place that it names. */
  readonly place: string;
  readonly sql: readonly string[];
  /** Other checks that the same row has to answer for. */
  readonly also?: RegExp;
}

/** A step of a loop of the other account. */
const TURN = (run: string, blob: string): string =>
  `insert into run_turn (account_id, run_id, node_id, ordinal, epoch, output_kind, blob_key)
   select id, ${run}, 'each.open', 0, 1, 'absent', ${blob} from account where slug = 'other'`;

/** V15: each row that names another, as another account's, or naming nothing. */
export function ofAccounts({ completed, failed, approved, credential, decided }: Left): readonly Plant[] {
  const also = /^account_/;
  const belongs = (child: string, column: string, where: string, value = "'none'"): Plant => ({
    check: `account_${child}_${column}`,
    place: `${child} `,
    sql: [`update ${child} set ${column} = ${value} where ${where}`],
    also,
  });
  const otherAccount = (child: string, column: string, where: string): Plant => ({
    check: `account_${child}_${column}`,
    place: `${child} `,
    sql: [`update ${child} set account_id = (select id from account where slug = 'other') where ${where}`],
    also,
  });
  const ofRun = (run: string): string => `run_id = '${run}'`;
  return [
    otherAccount("run_step", "run_id", ofRun(completed)),
    belongs("run_step", "run_id", ofRun(failed)),
    belongs("run_write", "run_id", `${ofRun(decided)} and ordinal = 0`),
    {
      check: "account_run_poll_run_id",
      place: "run_poll none items 0",
      sql: [
        `insert into run_poll (account_id, run_id, node_id, ordinal) select id, 'none', 'items', 0 from account where slug = 'other'`,
      ],
    },
    {
      check: "account_run_turn_run_id",
      place: "run_turn none each.open 0",
      sql: [TURN("'none'", "null")],
    },
    {
      check: "account_run_turn_blob_key",
      place: "each.open 0",
      sql: [TURN(`'${failed}'`, `(select key from blob where run_id = '${completed}' limit 1)`)],
      also,
    },
    belongs("run_input", "run_id", ofRun(completed)),
    {
      check: "account_run_result_run_id",
      place: "run_result none 0",
      sql: [
        `insert into run_result (account_id, run_id, ordinal, key, total_records, json_bytes, blob_key)
         select account_id, 'none', 0, 'k', 1, 1, blob_key from run_result where blob_key is not null limit 1`,
      ],
      also,
    },
    belongs("run_credential", "run_id", ofRun(completed)),
    belongs("blob", "run_id", `purpose = 'step' and ${ofRun(completed)}`),
    belongs("review", "run_id", ofRun(approved)),
    belongs("audit_entry", "run_id", `action = 'credential.send' and ${ofRun(completed)}`),
    belongs("run_step", "blob_key", ofRun(completed)),
    belongs("run_step", "source_blob_key", `${ofRun(approved)} and node_id = 'gate'`),
    belongs("run_input", "blob_key", ofRun(completed)),
    belongs("run_result", "blob_key", `${ofRun(completed)} and ordinal = 0`),
    otherAccount("login_session", "credential_id", `credential_id = '${credential}'`),
    {
      check: "account_oauth_token_credential_id",
      place: `oauth_token ${credential}`,
      sql: [
        `insert into oauth_token (account_id, credential_id, version, sealed, kid)
         select account.id, '${credential}', 1, '', kid from account, credential where slug = 'other' and credential.id = '${credential}'`,
      ],
    },
    otherAccount("run_credential", "credential_id", ofRun(completed)),
    belongs("run", "api_key_id", `id = '${failed}'`),
    belongs("run", "again_of", `id = '${failed}'`),
    belongs("run", "blueprint_id", `id = '${failed}'`),
    otherAccount("credential", "session_id", `id = '${credential}'`),
    {
      check: "account_oauth_attempt_session_id",
      place: "oauth_attempt sess_",
      sql: [
        `insert into oauth_attempt (state_hash, account_id, session_id, strategy_id, form, expires_at)
         select decode(repeat('00', 32), 'hex'), other.id, session.id, 'strat_it', '', app_now() + interval '1 minute'
         from account other, credential_session session where slug = 'other' limit 1`,
      ],
    },
    belongs("review_change", "review_id", "true"),
    belongs("throttle_slot", "blueprint_id", "true"),
  ];
}
