import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { recordAudit } from "#db/audit-entries.ts";
import { findStrategy } from "#db/config-documents.ts";
import { findSealedOf, listCredentialsOf, noteOrigins } from "#db/credentials/credential-binding.ts";
import { deleteLoginSession, releaseLogin, takeLogin, reserveLogin } from "#db/credentials/credentials.ts";
import type { Database } from "#db/connection/pool.ts";
import { replaceSealed } from "#db/credentials/sealed-places.ts";
import { isTwoPerson } from "#db/operators/two-person-rules.ts";
import type { ProposedRebinding } from "#domain/proposal.ts";
import { isSameOrigins, originsIn, UnknownContent } from "#domain/destination.ts";
import { limits } from "#domain/limits.ts";
import { must } from "#lib/assert.ts";
import { newId } from "#lib/new-id.ts";
import type { Signing } from "#lib/signing.ts";
import { credentialOrigins } from "#strategies/registry.ts";
import type { Vault } from "#vault/vault.ts";
import { CREDENTIAL_PLACES, sealWithOrigins } from "./bind-credentials.ts";
import { openRow } from "#actions/vault/check-vault.ts";
import { OperatorError } from "#actions/operator-error.ts";

export interface RebindServices {
  readonly db: Database;
  readonly vault: Vault;
  readonly signing: Signing;
}

/** The credentials: one by its id, or all of a strategy. */
export type RebindChoice =
  | { readonly id: string }
  | { readonly accountId: string; readonly strategyId: string };

export interface Rebinding {
  readonly id: string;
  readonly accountId: string;
  readonly strategyId: string;
  /** The origins in its sealed value; null: none. */
  readonly before: readonly string[] | null;
  /** The origins that its strategy names now. */
  readonly after: readonly string[];
}

export type RebindPlan = Rebinding | { readonly id: string; readonly broken: true };

/** Previews `rebindCredential` for these credentials. Changes nothing. */
export async function planRebinding(
  { db, vault }: RebindServices,
  choice: RebindChoice,
): Promise<readonly RebindPlan[]> {
  const plans: RebindPlan[] = [];
  for (const id of await listCredentialsOf(db, choice)) {
    const plan = await planOne(db, vault, id);
    if (plan) plans.push(plan);
  }
  return plans;
}

/** Whether rebinding would change nothing. */
export const isBoundSo = ({ before, after }: Rebinding): boolean =>
  before !== null && isSameOrigins(before, after);

/** A cached login is not rebound but deleted. */
const PLACES = CREDENTIAL_PLACES.flatMap((place) =>
  place.purpose === "login_session" ? [] : [{ ...place, purpose: place.purpose }],
);

/** The rebinding as the account's admins are asked to confirm it. */
export const proposedOf = ({ id, strategyId, before, after }: Rebinding): ProposedRebinding => ({
  id,
  strategyId,
  before,
  after,
});

/**
 * Seals the strategy's current origins into a credential and its tokens, and deletes its cached login, so that the next run logs in. It
 * holds the login lock, so that no concurrent login stores tokens with the old origins. Undefined: the credential was deleted or can't
 * be opened. `agreed`: the permit of `permitRebinding`; where the account requires a second admin, nothing else is done. Throws when a
 * run holds the login lock for too long.
 */
export async function rebindCredential(
  { db, vault, signing }: RebindServices,
  id: string,
  agreed: { readonly rebinding: Rebinding; readonly proposalId: string | null },
): Promise<Rebinding | undefined> {
  const holder = newId("rebind_");
  await takeTurn(db, id, holder);
  try {
    return await db.transaction(async (tx) => {
      const plan = await planOne(tx, vault, id);
      if (!plan || "broken" in plan) return undefined;
      await requireAgreed(tx, plan, agreed);
      for (const place of PLACES) {
        const row = await findSealedOf(tx, place.purpose, id);
        const plain = row && (await openRow(vault, place, row));
        if (!row || !plain) continue;
        const text = Buffer.from(plain).toString("utf8");
        plain.fill(0);
        const { sealed, kid } = await sealWithOrigins(vault, place, row, text, plan.after);
        must(
          (await replaceSealed(tx, place, kid, [{ was: row, sealed }])) || null,
          "the row that was locked",
        );
      }
      await deleteLoginSession(tx, id);
      await noteOrigins(tx, [{ credentialId: id, origins: plan.after }]);
      await recordAudit(tx, signing.audit, {
        accountId: plan.accountId,
        actor: { kind: "cli" },
        action: "credential.rebind",
        subjectId: id,
        detail: {
          strategy: plan.strategyId,
          before: plan.before?.join(" ") ?? null,
          after: plan.after.join(" "),
          ...(agreed.proposalId === null ? {} : { proposal: agreed.proposalId }),
        },
      });
      return plan;
    });
  } finally {
    await releaseLogin(db, id, { runId: holder, epoch: null });
  }
}

/** The current documents may have changed since the plan. */
async function requireAgreed(
  tx: Database,
  plan: Rebinding,
  { rebinding, proposalId }: { readonly rebinding: Rebinding; readonly proposalId: string | null },
): Promise<void> {
  if (!(await isTwoPerson(tx, plan.accountId))) return;
  if (proposalId !== null && isDeepStrictEqual(proposedOf(plan), proposedOf(rebinding))) return;
  throw new OperatorError(
    `The origins for ${plan.id} have changed in the meantime, and two admins must confirm them. It was not changed; run the command again.`,
  );
}

async function planOne(db: Database, vault: Vault, id: string): Promise<RebindPlan | undefined> {
  const [place] = PLACES;
  const row = await findSealedOf(db, "credential", id);
  if (!row) return undefined;
  const plain = await openRow(vault, must(place, "credentials"), row);
  if (!plain) return { id, broken: true };
  const text = Buffer.from(plain).toString("utf8");
  plain.fill(0);
  const { accountId, strategyId } = row;
  const { strategy } = must(await findStrategy(db, accountId, strategyId), "a credential's strategy");
  try {
    return {
      id,
      accountId,
      strategyId,
      before: originsIn("credential", text),
      after: credentialOrigins(strategy),
    };
  } catch (error) {
    if (error instanceof UnknownContent) return { id, broken: true };
    throw error;
  }
}

const POLL_MS = 100;

async function takeTurn(db: Database, id: string, holder: string): Promise<void> {
  const deadline = performance.now() + limits.rebindWaitMs;
  await reserveLogin(db, id, holder);
  while ((await takeLogin(db, id, { runId: holder, epoch: null }, limits.rebindHoldMs)) !== "taken") {
    if (performance.now() > deadline)
      throw new OperatorError(`A run is still logging in with ${id}. Try again later.`);
    await sleep(POLL_MS);
  }
}
