import { recordAudit } from "#db/audit-entries.ts";
import type { Database } from "#db/connection/pool.ts";
import { lockProposal, saveProposal, type Proposal } from "#db/operators/proposals.ts";
import { forgetFloors } from "#db/signing/signed-rows.ts";
import type { AuditActor } from "#domain/audit.ts";
import type { Signing } from "#lib/signing.ts";
import { requireProposal, statusOf } from "./list-proposals.ts";
import { OperatorError } from "#actions/operator-error.ts";

/** Reads and locks the proposal until the transaction ends, verified against the audit log. Throws OperatorError. */
export async function takeProposal(tx: Database, id: string): Promise<Proposal> {
  forgetFloors(tx);
  return await requireProposal(async () => await lockProposal(tx, id), id);
}

/** Discards the proposal. `mayDiscard` throws when the caller may not. Throws OperatorError. */
export async function discardProposal(
  { db, signing }: { readonly db: Database; readonly signing: Pick<Signing, "audit"> },
  actor: AuditActor,
  id: string,
  mayDiscard: (proposal: Proposal) => void = () => {},
): Promise<void> {
  await db.transaction(async (tx) => {
    const proposal = await takeProposal(tx, id);
    mayDiscard(proposal);
    requireStatus(proposal, ["open", "confirmed"]);
    const audited = await saveProposal(tx, proposal, { status: "discarded" });
    await recordAudit(tx, signing.audit, {
      accountId: proposal.accountId,
      actor,
      action: "proposal.discard",
      subjectId: id,
      detail: { from: proposal.status, ...audited },
    });
  });
}

/** Throws OperatorError if it is closed or already confirmed. */
export function requireStatus(proposal: Proposal, statuses: readonly Proposal["status"][]): void {
  const status = statusOf(proposal);
  if (statuses.includes(status)) return;
  throw new OperatorError(`${SAID[status]} Nothing was changed.`);
}

const SAID: Readonly<Record<Proposal["status"], string>> = {
  open: "The proposal awaits confirmation.",
  confirmed: "The proposal is already confirmed; `latchkey credentials rebind` applies it.",
  applied: "The proposal is already applied.",
  discarded: "The proposal was discarded.",
  expired: "The proposal has expired. Propose the change again.",
  stale: "The documents have changed since the proposal was made. Propose the change again.",
};
