import Type from "typebox";
import { AUDIT_ACTIONS } from "#domain/audit-actions.ts";
import {
  closed,
  count,
  givenTime,
  missing,
  oneOf,
  orNull,
  page,
  paging,
  text,
  time,
  whole,
} from "./fields.ts";
import { defineOperation } from "./operation.ts";

const TAG = "Audit log";

const account = Type.Optional(Type.String({ maxLength: 200, description: "The account's name." }));

export const listAudit = defineOperation({
  id: "listAudit",
  method: "get",
  path: "/audit",
  tag: TAG,
  summary: "List the audit log, newest first",
  permission: "audit.read",
  query: closed({
    ...paging,
    account,
    action: Type.Optional(oneOf(AUDIT_ACTIONS, "What was done.")),
    operator: Type.Optional(Type.String({ maxLength: 320, description: "The sign-in name of who did it." })),
    subject: Type.Optional(Type.String({ maxLength: 200, description: "The id of what it was done to." })),
    since: Type.Optional(givenTime("Done at this time or later.")),
    until: Type.Optional(givenTime("Done before this time.")),
  }),
  status: 200,
  answer: page(
    "AuditEntries",
    closed(
      {
        id: text("The entry's id (`aud_...`)."),
        account: orNull(text("The account's name; `null`: of the installation itself.")),
        occurred_at: time("When."),
        action: text("What was done; docs/audit.md lists them."),
        actor_kind: text("Who did it: api_key, end_user, run, operator, cli or service."),
        actor_id: orNull(text("Its id; the command line and the service have none.")),
        operator: orNull(text("The sign-in name of an operator.")),
        subject_id: text("The id of what it was done to."),
        run_id: orNull(text("The run that it was done in.")),
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
  tag: TAG,
  summary: "List the chains of the audit log",
  permission: "audit.read",
  status: 200,
  answer: whole(
    "AuditChains",
    closed({
      chain: text("The account's id, or `installation`."),
      account: orNull(text("The account's name; `null`: the installation's own chain.")),
    }),
  ),
});

export const verifyAuditChain = defineOperation({
  id: "verifyAuditChain",
  method: "get",
  path: "/audit/chains/{chain}/verify",
  tag: TAG,
  summary: "Check the next part of a chain",
  description:
    "Ask again with `after` until `next` is `null`. Checkpoint files are compared by `latchkey audit verify` alone.",
  permission: "audit.read",
  query: closed({
    after: Type.Optional(
      Type.String({ maxLength: 200, description: "`next` of the part before; left out: from the start." }),
    ),
  }),
  status: 200,
  answer: closed(
    {
      checked: count("Entries of this part that were checked."),
      next: orNull(text("Where the next part begins; `null`: there is none, or something is wrong.")),
      findings: Type.Array(
        closed({
          fault: text("changed, missing, inserted, moved, truncated or unchained."),
          sequence: orNull(count("The entry's number.")),
          message: text("What is wrong."),
        }),
        { description: "Empty: in order." },
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
  tag: TAG,
  summary: "Export the audit log",
  description: "As `latchkey audit export --json` prints it: it can be checked offline (docs/audit.md).",
  permission: "audit.read",
  query: closed({ account, since: Type.Optional(givenTime("Only entries from this time on.")) }),
  status: 200,
  streams: "application/x-ndjson",
  failures: [missing("account")],
});
