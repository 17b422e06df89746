import { createHash } from "node:crypto";
import { recordAudit } from "#db/audit-entries.ts";
import { listAdminIds } from "#db/operators/operators.ts";
import type { Database } from "#db/connection/pool.ts";
import { insertProposal, lockOverdue, lockWaiting, saveProposal } from "#db/operators/proposals.ts";
import type { AuditActor } from "#domain/audit.ts";
import { ID_PREFIX } from "#domain/ids.ts";
import { limits } from "#domain/limits.ts";
import { ADMINS_WANTED, describeNeed, type ProposalContent } from "#domain/proposal.ts";
import type { AuditKeys } from "#lib/audit-keys.ts";
import { newId } from "#lib/new-id.ts";
import type { Signing } from "#lib/signing.ts";
import { OperatorError } from "#actions/operator-error.ts";

/** A change that was not made and awaits confirmation. */
export interface NewProposal {
  readonly id: string;
  /** Sentences: why it needs two admins. */
  readonly reasons: readonly string[];
  /** How many admins must still confirm it. */
  readonly confirmationsWanted: number;
  readonly expiresAt: Date;
}

/**
 * Records a change for admins to confirm. An admin's own proposal counts as one confirmation. Proposing the same change again returns
 * the open proposal. Throws OperatorError.
 */
export async function createProposal(
  tx: Database,
  signing: Pick<Signing, "audit">,
  actor: AuditActor,
  { accountId, content }: { readonly accountId: string; readonly content: ProposalContent },
): Promise<NewProposal> {
  const text = JSON.stringify(content);
  if (text.length > limits.proposalCharactersMax)
    throw new OperatorError(
      `A change that needs two admins has at most ${limits.proposalCharactersMax} characters. Apply the other documents by themselves.`,
    );
  const admins = await listAdminIds(tx, accountId);
  const reasons = content.needs.map(describeNeed);
  const waiting = await lockWaiting(tx, accountId);
  const same = waiting.find(({ status, ...each }) => status === "open" && each.content === text);
  const wantedAfter = (confirmedBy: readonly string[]): number =>
    Math.max(1, ADMINS_WANTED - confirmedBy.filter((each) => admins.includes(each)).length);
  if (same)
    return {
      id: same.id,
      reasons,
      confirmationsWanted: wantedAfter(same.confirmedBy),
      expiresAt: same.expiresAt,
    };
  if (waiting.length >= limits.proposalsMax)
    throw new OperatorError(
      `${limits.proposalsMax} proposals of this account are already open. Confirm or discard some: latchkey proposals list.`,
    );
  const proposedBy = actor.kind === "operator" ? actor.id : null;
  const confirmedBy = admins.filter((id) => id === proposedBy);
  const id = newId(ID_PREFIX.proposal);
  const { audited, expiresAt } = await insertProposal(
    tx,
    { id, accountId, kind: content.kind, content: text, proposedBy, confirmedBy },
    limits.proposalMs,
  );
  await recordAudit(tx, signing.audit, {
    accountId,
    actor,
    action: "proposal.create",
    subjectId: id,
    detail: {
      kind: content.kind,
      needs: content.needs.length,
      sha256: createHash("sha256").update(text).digest("hex"),
      ...audited,
    },
  });
  return { id, reasons, confirmationsWanted: wantedAfter(confirmedBy), expiresAt };
}

const BATCH = 100;

/** Part of the worker's housekeeping: marks expired proposals. Correctness does not depend on it. */
export async function expireProposals({
  db,
  audit,
}: {
  readonly db: Database;
  readonly audit: AuditKeys;
}): Promise<void> {
  for (let ended = BATCH; ended === BATCH;) {
    ended = await db.transaction(async (tx) => {
      const overdue = await lockOverdue(tx, BATCH);
      for (const proposal of overdue) {
        const audited = await saveProposal(tx, proposal, { status: "expired" });
        await recordAudit(tx, audit, {
          accountId: proposal.accountId,
          actor: { kind: "service" },
          action: "proposal.expire",
          subjectId: proposal.id,
          detail: { from: proposal.status, ...audited },
        });
      }
      return overdue.length;
    });
  }
}
