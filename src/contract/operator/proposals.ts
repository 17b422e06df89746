import Type from "typebox";
import { PROPOSAL_KINDS, PROPOSAL_STATUSES } from "#domain/proposal.ts";
import { change, difference, kind } from "./config.ts";
import { closed, conflict, count, missing, oneOf, orNull, page, paging, text, time } from "./fields.ts";
import { defineOperation } from "./operation.ts";

const TAG = "Proposals";

const proposal = {
  id: text("Its id (`prop_...`)."),
  kind: oneOf(PROPOSAL_KINDS, "Documents that would be applied, or credentials that would be bound anew."),
  account: text("The account's name."),
  status: oneOf(
    PROPOSAL_STATUSES,
    "`open`: it waits for admins; `confirmed`: a rebinding that may be carried out; the others are over. `stale`: what it was made on has changed.",
  ),
  proposed_by: orNull(text("The operator's sign-in name; `null`: the command line.")),
  confirmed_by: Type.Array(text("An admin who agrees; one who has proposed it agrees.")),
  confirmations_wanted: count("How many admins must still confirm it, by who is an admin now."),
  reasons: Type.Array(text("Why it needs two admins.")),
  created_at: time("When it was proposed."),
  expires_at: time("Until when it can be confirmed, or carried out."),
  ended_at: orNull(time("When it was over.")),
};

export const listProposals = defineOperation({
  id: "listProposals",
  method: "get",
  path: "/proposals",
  tag: TAG,
  summary: "List changes that need a second admin, the newest first",
  permission: "config.read",
  query: closed({
    ...paging,
    account: Type.Optional(Type.String({ maxLength: 200, description: "The account's name." })),
    waiting: Type.Optional(Type.Boolean({ description: "Only those that wait." })),
  }),
  status: 200,
  answer: page("Proposals", closed(proposal, { title: "Proposal" })),
});

const origins = Type.Array(text("An origin."));

export const readProposal = defineOperation({
  id: "readProposal",
  method: "get",
  path: "/proposals/{proposalId}",
  tag: TAG,
  summary: "Read a proposal with what it would change",
  permission: "config.read",
  status: 200,
  answer: closed(
    {
      ...proposal,
      origins: Type.Array(text("An origin that something is sent to from then on.")),
      credentials: count("Connected credentials that it concerns."),
      documents: Type.Array(
        closed({
          kind,
          account: text("Its account's name."),
          id: text("Its id."),
          is_new: Type.Boolean({ description: "Nothing was in force." }),
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
  failures: [missing("proposal"), conflict("The row was not written by this installation.")],
});

const OVER =
  "It is over, it is the caller's own, the caller has confirmed it already, or what it was made on has changed.";

export const confirmProposal = defineOperation({
  id: "confirmProposal",
  method: "post",
  path: "/proposals/{proposalId}/confirm",
  tag: TAG,
  summary: "Confirm what somebody else has proposed",
  description:
    "With the last confirmation documents are applied at once; a rebinding may be carried out for 24 hours, once, by `latchkey credentials rebind`.",
  permission: "proposal.confirm",
  status: 200,
  answer: closed(
    {
      status: oneOf(["open", "confirmed", "applied"], "What has become of it."),
      confirmations_wanted: count("How many admins must still confirm it."),
      changes: Type.Array(closed(change)),
      warnings: Type.Array(text("What the changes bring with them.")),
    },
    { title: "ConfirmedProposal" },
  ),
  failures: [missing("proposal"), conflict(OVER)],
});

export const discardProposal = defineOperation({
  id: "discardProposal",
  method: "post",
  path: "/proposals/{proposalId}/discard",
  tag: TAG,
  summary: "Discard a proposal",
  description: "By an admin, or by the operator who has proposed it.",
  permission: "proposal.discard",
  status: 204,
  failures: [missing("proposal"), conflict("It is over.")],
});
