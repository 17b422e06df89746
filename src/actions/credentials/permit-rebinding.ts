import { isDeepStrictEqual } from "node:util";
import { recordAudit } from "#db/audit-entries.ts";
import { findAccountById } from "#db/accounts.ts";
import type { Database } from "#db/connection/pool.ts";
import { lockWaiting, saveProposal } from "#db/operators/proposals.ts";
import { forgetFloors } from "#db/signing/signed-rows.ts";
import { isTwoPerson } from "#db/operators/two-person-rules.ts";
import type { Need, ProposedRebinding } from "#domain/proposal.ts";
import { must } from "#lib/assert.ts";
import type { Signing } from "#lib/signing.ts";
import { lockApply } from "#actions/config/lock-apply.ts";
import { createProposal, type NewProposal } from "#actions/config/create-proposal.ts";
import { contentOf } from "#actions/config/list-proposals.ts";

/** Credentials of one account to rebind. */
export interface RebindingAsked {
  readonly accountId: string;
  readonly credentials: readonly ProposedRebinding[];
}

/** `permitted`: it may be done once now, because two admins confirmed a proposal or the account requires none. */
export type RebindingPermit =
  | { readonly permitted: true; readonly proposalId: string | null }
  | ({ readonly permitted: false } & NewProposal);

/**
 * Takes the permit for a rebinding of exactly these credentials from and to exactly these origins, or proposes it. A credential that
 * was deleted since may be missing. Throws OperatorError.
 */
export async function permitRebinding(
  { db, signing }: { readonly db: Database; readonly signing: Pick<Signing, "audit"> },
  { accountId, credentials }: RebindingAsked,
): Promise<RebindingPermit> {
  return await db.transaction(async (tx) => {
    await lockApply(tx);
    if (!(await isTwoPerson(tx, accountId))) return { permitted: true, proposalId: null };
    forgetFloors(tx);
    for (const proposal of await lockWaiting(tx, accountId)) {
      const content = contentOf(proposal);
      if (proposal.status !== "confirmed" || content.kind !== "rebinding") continue;
      const agreed = content.credentials;
      if (!credentials.every((asked) => agreed.some((each) => isDeepStrictEqual(each, asked)))) continue;
      const audited = await saveProposal(tx, proposal, { status: "applied" });
      await recordAudit(tx, signing.audit, {
        accountId,
        actor: { kind: "cli" },
        action: "proposal.apply",
        subjectId: proposal.id,
        detail: { kind: proposal.kind, credentials: credentials.length, ...audited },
      });
      return { permitted: true, proposalId: proposal.id };
    }
    const content = {
      kind: "rebinding",
      credentials,
      needs: await needsOf(tx, accountId, credentials),
    } as const;
    const made = await createProposal(tx, signing, { kind: "cli" }, { accountId, content });
    return { permitted: false, ...made };
  });
}

async function needsOf(
  tx: Database,
  accountId: string,
  credentials: readonly ProposedRebinding[],
): Promise<readonly Need[]> {
  const { slug: account } = must(await findAccountById(tx, accountId), "the credentials' account");
  const byStrategy = Map.groupBy(credentials, ({ strategyId }) => strategyId);
  return [...byStrategy].map(([id, those]) => ({
    kind: "strategy",
    account,
    id,
    why: "rebinding",
    origins: [
      ...new Set(
        those.flatMap(({ before, after }) => after.filter((origin) => before?.includes(origin) !== true)),
      ),
    ],
    credentials: those.length,
  }));
}
