import { Type } from "#lib/type.ts";
import { AUDIT_ACTIONS } from "#domain/audit-actions.ts";
import {
  closed,
  count,
  givenTime,
  missing,
  ofAccount,
  oneOf,
  orNull,
  page,
  paging,
  text,
  time,
  whole,
} from "./fields.ts";
import { operationsOf } from "./operation.ts";

const defineOperation = operationsOf("Audit log");

export const listAudit = defineOperation({
  id: "listAudit",
  method: "get",
  path: "/audit",
  summary: "List the audit log, newest first",
  permission: "audit.read",
  accounts: "own",
  query: closed({
    ...paging,
    account: ofAccount,
    action: Type.Optional(oneOf(AUDIT_ACTIONS, "The action.")),
    operator: Type.Optional(
      Type.String({ maxLength: 320, description: "The email of the operator who acted." }),
    ),
    subject: Type.Optional(Type.String({ maxLength: 200, description: "The id of the subject." })),
    since: Type.Optional(givenTime("Entries at or after this time.")),
    until: Type.Optional(givenTime("Entries before this time.")),
  }),
  answer: page(
    "AuditEntries",
    closed(
      {
        id: text("The entry's id (`aud_...`)."),
        account: orNull(text("The account's name; `null`: of the installation itself.")),
        occurred_at: time("When it happened."),
        action: text("The action; docs/audit.md lists all of them."),
        actor_kind: text(
          "The kind of actor: api_key, end_user, run, operator, operator_token, cli or service.",
        ),
        actor_id: orNull(text("The actor's id; `null` for the command line and the service.")),
        operator: orNull(text("The operator's email.")),
        subject_id: text("The id of the subject."),
        run_id: orNull(text("The run in which it happened.")),
        detail: Type.Unknown({ description: "Names, counts and ids." }),
        sequence: orNull(count("Its number in its chain; `null`: not chained yet.")),
      },
      { title: "AuditEntry" },
    ),
  ),
});

export const listAuditChains = defineOperation({
  id: "listAuditChains",
  method: "get",
  path: "/audit/chains",
  summary: "List the chains of the audit log",
  permission: "audit.read",
  accounts: "own",
  answer: whole(
    "AuditChains",
    closed({
      chain: text("The account's id, or `installation`."),
      account: orNull(text("The account's name; `null`: the installation's own chain.")),
      exported_before: orNull(
        text(
          "Entries before this day (UTC), such as `2026-09-01`, were exported and are no longer in the database; `null`: all are.",
        ),
      ),
    }),
  ),
});

export const verifyAuditChain = defineOperation({
  id: "verifyAuditChain",
  method: "get",
  path: "/audit/chains/{chain}/verify",
  summary: "Verify the next part of a chain",
  description:
    "Repeat the request with `after` until `next` is `null`. Only `latchkey audit verify` compares checkpoint files.",
  permission: "audit.read",
  query: closed({
    after: Type.Optional(
      Type.String({ maxLength: 200, description: "`next` of the previous part; default: from the start." }),
    ),
  }),
  answer: closed(
    {
      checked: count("Entries of this part that were checked."),
      next: orNull(text("Where the next part begins; `null`: this was the last one, or a fault was found.")),
      findings: Type.Array(
        closed({
          fault: text("changed, missing, inserted, moved, truncated or unchained."),
          sequence: orNull(count("The entry's number.")),
          message: text("A description of the fault."),
        }),
        { description: "Empty: no faults." },
      ),
    },
    { title: "VerifiedPart" },
  ),
  failures: [missing("chain")],
});

export const exportAudit = defineOperation({
  id: "exportAudit",
  method: "get",
  path: "/audit/export",
  summary: "Export the audit log",
  description: "The same as `latchkey audit export --json`; it can be verified offline (docs/audit.md).",
  permission: "audit.read",
  query: closed({
    account: ofAccount,
    since: Type.Optional(givenTime("Only entries at or after this time.")),
  }),
  streams: "application/x-ndjson",
  failures: [missing("account")],
});
