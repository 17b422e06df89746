import { createHash } from "node:crypto";
import { findAccountById } from "#db/accounts.ts";
import { listBlueprints, lookUpDocument } from "#db/config-documents.ts";
import { findSessionById, listSlotSessions } from "#db/credentials/credential-sessions.ts";
import {
  countSubmit,
  findEmbeddedSessionById,
  type StoredEmbeddedSession,
} from "#db/credentials/embedded-sessions.ts";
import { findOAuthAttempt } from "#db/credentials/oauth.ts";
import type { Brand } from "#domain/branding.ts";
import { isId } from "#domain/ids.ts";
import type { LocalText } from "#domain/language.ts";
import { limits } from "#domain/limits.ts";
import { must } from "#lib/assert.ts";
import { readHosted, readBrand, type HostedSession } from "./hosted-session.ts";
import { chooseBlueprint } from "./select-blueprint.ts";
import { readClosedMs, readTryState } from "./try-login.ts";
import type { Needs } from "#actions/services.ts";

/** An embedded session, as its frame sees it. */
export interface Flow {
  readonly session: StoredEmbeddedSession;
  readonly brand: Brand;
  readonly accountSlug: string;
}

export interface Choice {
  readonly key: string;
  readonly name: string;
  /** What the Blueprint needs credentials of. */
  readonly targets: readonly Target[];
}

/** A strategy, as its end users know it. */
export type Target = Pick<HostedSession, "accountSlug" | "strategy"> & {
  readonly session: Pick<HostedSession["session"], "strategyId" | "strategyVersion">;
};

/** The step that the frame shows next. It follows from the session's state alone, so that a reloaded page continues here. */
export type FlowStep =
  /** `slot`: the slot of a form that may be open in the frame. */
  | { readonly kind: "expired"; readonly slot: HostedSession | null }
  | { readonly kind: "completed"; readonly slots: readonly HostedSession[] }
  /** The login of this slot is being tried at the target. */
  | { readonly kind: "checking"; readonly slot: HostedSession }
  /** The target has refused so many of its logins that no further one is taken for now. */
  | { readonly kind: "limited"; readonly slot: HostedSession; readonly closedMs: number }
  | { readonly kind: "picker"; readonly choices: readonly Choice[] }
  | {
      readonly kind: "form";
      readonly slot: HostedSession;
      /** Whether the target did not accept the last login. */
      readonly isRefused: boolean;
      /** The number of the Blueprint's slot, from 1. */
      readonly number: number;
      readonly count: number;
      /** What the form after this one connects; null: this is the last one. */
      readonly next: LocalText | null;
      /** Whether the end user may still choose another Blueprint. */
      readonly canChoose: boolean;
    };

/**
 * A session that its one origin may frame, whatever its status; undefined: no page may. Checked again at each request, as a
 * `return_url` is. Whose it is, the origin in its headers tells as well. Changes nothing.
 */
export async function findFrame(services: Needs<"db">, id: string): Promise<Flow | undefined> {
  if (!isId("embeddedCredentialSession", id)) return undefined;
  const session = await findEmbeddedSessionById(services.db, id);
  if (!session) return undefined;
  const account = must(await findAccountById(services.db, session.accountId), "the session's account");
  if (!account.embedOrigins.includes(session.origin)) return undefined;
  return { session, brand: readBrand(account), accountSlug: account.slug };
}

/** The session of a client token; undefined: the token is not valid here. */
export async function findFlow(
  services: Needs<"db" | "signing">,
  id: string,
  token: string,
): Promise<Flow | undefined> {
  return services.signing.verifyClientToken(id, token) ? await findFrame(services, id) : undefined;
}

/** `pick`: shows the picker again, while there is a choice. */
export async function readStep(services: Needs<"db">, flow: Flow, pick = false): Promise<FlowStep> {
  const { session } = flow;
  const { accountId, id, status, selectedBlueprintKey: blueprintKey } = session;
  const canChoose = session.blueprintKeys.length > 1 && Object.keys(session.credentialIds).length === 0;
  if (status === "pending" && (blueprintKey === null || (pick && canChoose)))
    return { kind: "picker", choices: await listChoices(services, flow) };
  if (blueprintKey === null) return { kind: "expired", slot: null };
  const slots = await listSlotSessions(services.db, { accountId, id, blueprintKey });
  const at = slots.findIndex((slot) => slot.credentialId === null);
  if (at === -1) {
    const all = await Promise.all(slots.map(async (slot) => await readHosted(services, slot)));
    return { kind: "completed", slots: all };
  }
  const slot = await readHosted(services, must(slots[at], "the next slot"));
  if (status !== "pending") return { kind: "expired", slot };
  const tried = await readTryState(services, slot);
  if (tried === "checking") return { kind: "checking", slot };
  if (tried === "limited") return { kind: "limited", slot, closedMs: await readClosedMs(services, slot) };
  const after = slots.slice(at + 1).find((other) => other.credentialId === null);
  const next = after === undefined ? null : (await readHosted(services, after)).strategy.name;
  const isRefused = tried === "refused";
  return { kind: "form", slot, isRefused, number: at + 1, count: slots.length, next, canChoose };
}

/** The Blueprints that can still be chosen, in the caller's order. */
async function listChoices(
  { db }: Needs<"db">,
  { accountSlug, session: { accountId, blueprintKeys } }: Flow,
): Promise<readonly Choice[]> {
  const found = await listBlueprints(db, accountId, blueprintKeys);
  const usable = found.filter(({ blueprint, retired }) => !retired && blueprint.credentials.length > 0);
  const choices = await Promise.all(
    usable.map(async ({ blueprint: { key, name, credentials } }) => {
      const of = credentials.map(async ({ strategyId }): Promise<Target> => {
        const found = await lookUpDocument(db, "strategy", accountId, strategyId);
        const { strategy, version } = must(found, "a slot's strategy");
        return { accountSlug, strategy, session: { strategyId, strategyVersion: version } };
      });
      return [key, { key, name, targets: await Promise.all(of) }] as const;
    }),
  );
  const byKey = new Map(choices);
  return blueprintKeys.flatMap((key) => byKey.get(key) ?? []);
}

/** Records the end user's choice in the picker. False: the choice no longer exists. */
export async function chooseInFlow(
  services: Needs<"db" | "signing">,
  { session }: Flow,
  key: string,
): Promise<boolean> {
  if (!session.blueprintKeys.includes(key)) return false;
  return await services.db.transaction(async (tx) => {
    const [version] = await listBlueprints(tx, session.accountId, [key]);
    if (!version || version.retired || version.blueprint.credentials.length === 0) return false;
    return await chooseBlueprint(services, tx, session, version);
  });
}

/** The slot of this flow for which a form was rendered; undefined: no slot of this flow. */
export async function findSlot(
  services: Needs<"db">,
  { session }: Flow,
  slotName: string,
): Promise<HostedSession | undefined> {
  const { accountId, id, selectedBlueprintKey: blueprintKey } = session;
  if (blueprintKey === null) return undefined;
  const slots = await listSlotSessions(services.db, { accountId, id, blueprintKey });
  const slot = slots.find((each) => each.slot === slotName);
  return slot && (await readHosted(services, slot));
}

/** docs/decisions/0017: throttled per token. */
export const mayTry = async (services: Needs<"db">, { session }: Flow): Promise<boolean> =>
  await countSubmit(services.db, session, limits.embeddedSubmitsMax);

export type SignInState = "waiting" | "refused" | "failed" | "done";

/** The outcome in the window that was opened with this `state`, for the frame of its flow. Changes nothing. */
export async function readSignIn(
  services: Needs<"db">,
  { session }: Flow,
  state: string,
): Promise<SignInState> {
  const stateHash = createHash("sha256").update(state).digest();
  const attempt = await findOAuthAttempt(services.db, stateHash);
  if (!attempt || attempt.accountId !== session.accountId) return "failed";
  const slot = await findSessionById(services.db, attempt.accountId, attempt.sessionId);
  if (slot?.embeddedSessionId !== session.id) return "failed";
  if (slot.status !== "pending") return "done";
  return attempt.outcome ?? "waiting";
}
