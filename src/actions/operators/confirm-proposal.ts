import { applyConfirmed, type PlannedChange } from "#actions/config/apply-config.ts";
import { lockApply } from "#actions/config/lock-apply.ts";
import { checkInThread } from "#actions/config/check-in-thread.ts";
import { discardProposal, requireStatus, takeProposal } from "#actions/config/end-proposal.ts";
import { contentOf, countConfirmations } from "#actions/config/list-proposals.ts";
import { OperatorError } from "#actions/operator-error.ts";
import type { Needs } from "#actions/services.ts";
import { recordAudit } from "#db/audit-entries.ts";
import { listAdminIds } from "#db/operators/operators.ts";
import type { Database } from "#db/connection/pool.ts";
import { saveProposal, type Proposal } from "#db/operators/proposals.ts";
import type { AuditAction } from "#domain/audit-actions.ts";
import { limits } from "#domain/limits.ts";
import { Problem } from "#domain/problem.ts";
import type { ProposalStatus, ProposedDocument } from "#domain/proposal.ts";
import { actorOf, operatorIdOf, type OperatorCaller, type Principal } from "./operator-caller.ts";

interface Confirmed {
  readonly status: "open" | "confirmed" | "applied";
  readonly confirmations_wanted: number;
  readonly changes: {
    kind: PlannedChange["kind"];
    change: PlannedChange["change"];
    account: string;
    id: string;
  }[];
  readonly warnings: string[];
}

/**
 * An admin confirms another operator's proposal. The last confirmation applies documents in the same transaction; a rebinding can then be
 * applied on a machine with the master key. Throws OperatorError if the proposal is closed or the caller's own, or if the documents have
 * changed since, which closes it.
 */
export async function confirmProposal(
  services: Needs<"db" | "secretSources" | "signing">,
  caller: OperatorCaller,
  id: string,
): Promise<Confirmed> {
  const outcome = await services.db.transaction(async (tx) => {
    await lockApply(tx);
    const proposal = await takeProposal(tx, id);
    requireStatus(proposal, ["open"]);
    requireAnother(proposal, caller);
    const confirmedBy = [...proposal.confirmedBy, caller.operatorId];
    const confirmed = { ...proposal, confirmedBy };
    // Earlier confirmations count only while their operators are admins.
    const { wanted } = countConfirmations(confirmed, await listAdminIds(tx, proposal.accountId));
    const status: Confirmed["status"] & ProposalStatus =
      wanted === 0 && proposal.kind === "rebinding" ? "confirmed" : "open";
    const audited = await saveProposal(tx, proposal, {
      status,
      confirmedBy,
      ...(status === "confirmed" ? { forMs: limits.confirmedRebindMs } : {}),
    });
    await record(services, tx, caller, confirmed, "proposal.confirm", { wanted, ...audited });
    const content = contentOf(confirmed);
    if (wanted === 0 && content.kind === "documents")
      return await applyDocuments(services, tx, caller, confirmed, content.documents);
    return { status, confirmations_wanted: wanted, changes: [], warnings: [] };
  });
  if (!("stale" in outcome)) return outcome;
  throw new OperatorError(
    `${outcome.stale.join(" ")} Nothing was applied, and the proposal is closed. Propose the change again.`,
  );
}

function requireAnother({ proposedBy, confirmedBy }: Proposal, { operatorId }: OperatorCaller): void {
  if (proposedBy === operatorId)
    throw new OperatorError("You proposed this yourself. Another admin must confirm it.");
  if (confirmedBy.includes(operatorId))
    throw new OperatorError("You have already confirmed this. Another admin must confirm it too.");
}

async function applyDocuments(
  services: Needs<"secretSources" | "signing">,
  tx: Database,
  caller: OperatorCaller,
  proposal: Proposal,
  documents: readonly ProposedDocument[],
): Promise<Confirmed | { readonly stale: readonly string[] }> {
  const outcome = await applyConfirmed(
    tx,
    services.signing,
    { id: proposal.id, documents },
    {
      actor: actorOf(caller),
      check: async (sources, known) => await checkInThread(caller.sessionId, sources, known),
      inFile: services.secretSources.inFile,
    },
  );
  if (!outcome.ok) {
    const audited = await saveProposal(tx, proposal, { status: "stale" });
    await record(services, tx, caller, proposal, "proposal.stale", audited);
    return { stale: outcome.stale };
  }
  const audited = await saveProposal(tx, proposal, { status: "applied" });
  await record(services, tx, caller, proposal, "proposal.apply", { kind: proposal.kind, ...audited });
  return {
    status: "applied",
    confirmations_wanted: 0,
    changes: outcome.changes.map(({ change, kind, account, id }) => ({ change, kind, account, id })),
    warnings: [...outcome.warnings],
  };
}

async function record(
  { signing }: Needs<"signing">,
  tx: Database,
  caller: OperatorCaller,
  { id, accountId }: Proposal,
  action: AuditAction,
  detail: Readonly<Record<string, string | number | boolean>>,
): Promise<void> {
  await recordAudit(tx, signing.audit, { accountId, actor: actorOf(caller), action, subjectId: id, detail });
}

/** For the operator who proposed it, or any admin. Throws OperatorError, Problem 403. */
export async function discardProposalAs(
  services: Needs<"db" | "signing">,
  caller: Principal,
  id: string,
): Promise<void> {
  await discardProposal(services, actorOf(caller), id, ({ proposedBy }) => {
    // What nobody proposed, by a token or on the command line, is no token's own.
    const isOwn = proposedBy !== null && proposedBy === operatorIdOf(caller);
    if (caller.role !== "admin" && !isOwn)
      throw new Problem(
        "authorization_error",
        "Only an admin or the operator who proposed it can discard it.",
      );
  });
}
