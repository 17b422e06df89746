import type { Plant } from "./plants-of-accounts.ts";
import type { Left } from "./workload.ts";

const flow = (id: string, columns: string, values: string): string =>
  `insert into embedded_credential_session (id, account_id, origin, blueprint_keys, expires_at${columns})
   select '${id}', id, 'https://app.example', '{one}', now() + interval '1 hour'${values} from account order by slug limit 1`;

const audited = (id: string): string =>
  `insert into audit_entry (id, account_id, occurred_at, actor_kind, actor_id, action, subject_id, detail, seal)
   select 'aud_${id}', account_id, now(), actor_kind, actor_id, 'embedded_session.create', '${id}', '{}', seal
   from audit_entry where action = 'session.create' limit 1`;

/** Of embedded flows, and of logins that are tried. */
export const ofSessions = ({ credential }: Left): readonly Plant[] => [
  {
    check: "candidate_session",
    place: `credential ${credential}`,
    sql: [`update credential set candidate_at = app_now() where id = '${credential}'`],
  },
  {
    check: "embedded_session_shape",
    place: "embedded_credential_session ecs_planted",
    sql: [
      flow(
        "ecs_planted",
        ", selected_blueprint_key, status, credential_id, completed_at",
        ", 'one', 'completed', 'cred_x', now()",
      ),
      audited("ecs_planted"),
    ],
  },
  {
    check: "embedded_session_entry",
    place: "embedded_credential_session ecs_planted (0)",
    sql: [flow("ecs_planted", "", "")],
  },
  { check: "entry_without_embedded_session", place: "of ecs_gone", sql: [audited("ecs_gone")] },
  {
    check: "account_credential_session_embedded_session_id",
    place: "credential_session sess_",
    sql: [
      flow("ecs_planted", "", ""),
      audited("ecs_planted"),
      "update embedded_credential_session set account_id = 'acct_other'",
      `update credential_session set embedded_session_id = 'ecs_planted', blueprint_key = 'one', slot = 'it', slot_position = 1
       where credential_id = '${credential}'`,
    ],
    also: /^(entry_without_session|embedded_session_entry)$/,
  },
];
