import * as proposals from "#actions/config/list-proposals.ts";
import { confirmProposal, discardProposalAs } from "#actions/operators/confirm-proposal.ts";
import type * as contract from "#contract/operator/proposals.ts";
import type { Handler } from "./context.ts";

export const getProposals: Handler<typeof contract.listProposals> = async ({ services, limit }, { query }) =>
  await proposals.listProposals(services.db, query, limit);

export const getProposal: Handler<typeof contract.readProposal> = async ({ services }, { params }) =>
  await proposals.getProposal(services.db, params["proposalId"] ?? "");

export const postConfirm: Handler<typeof contract.confirmProposal> = async (
  { services, caller },
  { params },
) => await confirmProposal(services, caller, params["proposalId"] ?? "");

export const postDiscard: Handler<typeof contract.discardProposal> = async (
  { services, caller },
  { params },
) => await discardProposalAs(services, caller, params["proposalId"] ?? "");
