import { Type } from "#lib/type.ts";
import { PROPOSAL_KINDS, PROPOSAL_STATUSES } from "#domain/proposal.ts";
import { change, difference, kind } from "./config.ts";
import {
  closed,
  conflict,
  count,
  missing,
  ofAccount,
  oneOf,
  orNull,
  page,
  paging,
  text,
  time,
} from "./fields.ts";
import { operationsOf } from "./operation.ts";

const defineOperation = operationsOf("Proposals");

const proposal = {
  id: text("Its id (`prop_...`)."),
  kind: oneOf(PROPOSAL_KINDS, "Documents to apply, or credentials to rebind."),
  account: text("The account's name."),
  status: oneOf(
    PROPOSAL_STATUSES,
    "`open`: awaiting confirmation; `confirmed`: a rebinding that can be applied; the others are final. `stale`: the documents have changed since it was proposed.",
  ),
  proposed_by: orNull(text("The operator's email; `null`: the command line, or an operator token.")),
  confirmed_by: Type.Array(
    text("An admin who has confirmed it; an admin's own proposal counts as confirmed."),
  ),
  confirmations_wanted: count("How many admins must still confirm it, according to the current admins."),
  reasons: Type.Array(text("Why it needs two admins.")),
  created_at: time("When it was proposed."),
  expires_at: time("The deadline for confirming or applying it."),
  ended_at: orNull(time("When it was closed.")),
};

export const listProposals = defineOperation({
  id: "listProposals",
  method: "get",
  path: "/proposals",
  summary: "List proposals, newest first",
  permission: "config.read",
  accounts: "own",
  query: closed({
    ...paging,
    account: ofAccount,
    waiting: Type.Optional(Type.Boolean({ description: "Only open ones." })),
  }),
  answer: page("Proposals", closed(proposal, { title: "Proposal" })),
});

const origins = Type.Array(text("An origin."));

export const readProposal = defineOperation({
  id: "readProposal",
  method: "get",
  path: "/proposals/{proposalId}",
  summary: "Read a proposal with its changes",
  permission: "config.read",
  answer: closed(
    {
      ...proposal,
      origins: Type.Array(text("An origin to which credentials would be sent from then on.")),
      credentials: count("Connected credentials that it affects."),
      documents: Type.Array(
        closed({
          kind,
          account: text("Its account's name."),
          id: text("Its id."),
          is_new: Type.Boolean({ description: "Whether the document is new." }),
          differences: Type.Array(difference),
        }),
      ),
      rebindings: Type.Array(
        closed({
          credential: text("The credential's id (`cred_...`)."),
          strategy: text("Its strategy's id."),
          before: orNull(origins),
          after: origins,
        }),
      ),
    },
    { title: "ProposalDetail" },
  ),
  failures: [missing("proposal"), conflict("This installation did not write the row.")],
});

const OVER =
  "It is closed, it is the caller's own, the caller has already confirmed it, or the documents have changed since.";

export const confirmProposal = defineOperation({
  id: "confirmProposal",
  method: "post",
  path: "/proposals/{proposalId}/confirm",
  summary: "Confirm a proposal",
  description:
    "The last confirmation applies documents immediately. A confirmed rebinding can be applied once within 24 hours, with `latchkey credentials rebind`.",
  permission: "proposal.confirm",
  answer: closed(
    {
      status: oneOf(["open", "confirmed", "applied"], "Its new status."),
      confirmations_wanted: count("How many admins must still confirm it."),
      changes: Type.Array(closed(change)),
      warnings: Type.Array(text("A consequence of the changes.")),
    },
    { title: "ConfirmedProposal" },
  ),
  failures: [missing("proposal"), conflict(OVER)],
});

export const discardProposal = defineOperation({
  id: "discardProposal",
  method: "post",
  path: "/proposals/{proposalId}/discard",
  summary: "Discard a proposal",
  description: "For admins, and the operator who proposed it.",
  permission: "proposal.discard",
  failures: [missing("proposal"), conflict("The proposal is closed.")],
});
