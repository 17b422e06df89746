import { sealEntry, type SealedEntry } from "#db/audit-entries.ts";
import { findStrategy, lookUpDocument, type StrategyVersion } from "#db/config-documents.ts";
import { clockDate, clockText, lookUpClock, readClock } from "#db/connection/clock.ts";
import type { Database } from "#db/connection/pool.ts";
import {
  insertSession,
  insertSessionTogether,
  type NewSession,
} from "#db/credentials/credential-sessions.ts";
import type { Account } from "#db/accounts.ts";
import type { AuditActor, AuditEvent } from "#domain/audit.ts";
import { projectSession } from "#domain/credential-session.ts";
import { ID_PREFIX } from "#domain/ids.ts";
import { limits } from "#domain/limits.ts";
import { isWellFormedName } from "#domain/names.ts";
import { invalidField } from "#domain/problem.ts";
import { checkReturnUrl } from "#domain/return-url.ts";
import { failpoint } from "#lib/failpoint.ts";
import { newId } from "#lib/new-id.ts";
import { recordOf, type Answer, type Claim } from "#actions/replay-or-run.ts";
import type { Caller, Needs } from "#actions/services.ts";

export interface SessionRequest {
  readonly strategyId: string;
  readonly name: string | null;
  readonly returnUrl: string | null;
  /** The caller's own references, as JSON text. */
  readonly metadata: string | null;
  readonly cancelUrl: string | null;
  /** Null: as long as the account's sessions last. */
  readonly expiresInSeconds: number | null;
}

/** `POST /credential-sessions`, inside the caller's transaction. Throws Problem 422 naming the field. */
export async function createCredentialSession(
  services: Needs<"publicUrl" | "signing">,
  tx: Database,
  caller: Caller,
  request: SessionRequest,
): Promise<Answer> {
  const { answer } = await createSessionBy(services, tx, byKey(caller), request);
  await failpoint("session.after_insert");
  return answer;
}

/** Who creates a session, for which account. */
export interface SessionCreator {
  readonly account: Account;
  readonly actor: AuditActor;
}

const byKey = ({ account, keyId }: Caller): SessionCreator => ({
  account,
  actor: { kind: "api_key", id: keyId },
});

/** The same for anyone who may create one. Throws Problem 422 naming the field. */
export async function createSessionBy(
  services: Needs<"publicUrl" | "signing">,
  tx: Database,
  by: SessionCreator,
  request: SessionRequest,
): Promise<{ readonly id: string; readonly answer: Answer }> {
  const { session, entry, answer } = await planSession(services, by, request, {
    strategy: async (id) => await findStrategy(tx, by.account.id, id),
    nowMs: async () => await readClock(tx),
  });
  await insertSession(tx, session, entry);
  return { id: session.id, answer };
}

/**
 * The same for the sessions of concurrent requests, together with the claims of their keys, in one transaction. null: nothing was
 * written, and the session needs a transaction of its own.
 */
export async function createSessionTogether(
  services: Needs<"db" | "publicUrl" | "signing">,
  caller: Caller,
  request: SessionRequest,
  claim: Claim | null,
): Promise<Answer | null> {
  const { db } = services;
  const { session, entry, answer } = await planSession(services, byKey(caller), request, {
    strategy: async (id) => await lookUpDocument(db, "strategy", caller.account.id, id),
    nowMs: async () => await lookUpClock(db),
  });
  const record = claim && recordOf(services, claim, answer);
  return (await insertSessionTogether(db, session, entry, record)) ? answer : null;
}

/** Looks up what a session is made of, inside the transaction or before it. */
interface Sources {
  strategy(id: string): Promise<StrategyVersion | undefined>;
  /** The database's clock. */
  nowMs(): Promise<number>;
}

interface PlannedSession {
  readonly session: NewSession;
  readonly entry: SealedEntry;
  readonly answer: Answer;
}

async function planSession(
  services: Needs<"publicUrl" | "signing">,
  { account, actor }: SessionCreator,
  { name, returnUrl, cancelUrl, metadata, expiresInSeconds, strategyId }: SessionRequest,
  sources: Sources,
): Promise<PlannedSession> {
  if (name !== null && !isWellFormedName(name)) {
    throw invalidField("name", "`name` must have at most 255 characters and no U+0000.");
  }
  if (returnUrl !== null) {
    const checked = checkReturnUrl(returnUrl, account.allowedOrigins);
    if (!checked.ok) throw invalidField("return_url", checked.reason);
  }
  if (cancelUrl !== null) {
    const checked = checkReturnUrl(cancelUrl, account.allowedOrigins, "cancel_url");
    if (!checked.ok) throw invalidField("cancel_url", checked.reason);
  }
  const lifetimeMs = checkLifetime(expiresInSeconds, account.sessionLifetimeMs);
  // Statements that don't depend on each other are one round trip.
  const [strategy, nowMs] = await Promise.all([sources.strategy(strategyId), sources.nowMs()]);
  if (!strategy || strategy.retired) {
    throw invalidField("strategy_id", "`strategy_id` is not an authentication strategy of this account.");
  }
  const id = newId(ID_PREFIX.credentialSession);
  const session: NewSession = {
    id,
    accountId: account.id,
    strategyId: strategy.strategy.id,
    strategyVersion: strategy.version,
    name,
    returnUrl,
    metadata,
    cancelUrl,
    tokenLookup: services.signing.tokenLookup(services.signing.hostedToken(id)),
    createdAt: clockDate(nowMs),
    expiresAt: clockDate(nowMs + lifetimeMs),
  };
  const event: AuditEvent = {
    accountId: account.id,
    actor,
    action: "session.create",
    subjectId: id,
    detail: { strategy: session.strategyId },
  };
  const made = { ...session, status: "pending", credentialId: null, completedAt: null } as const;
  return {
    session,
    entry: sealEntry(services.signing.audit, event, clockText(nowMs)),
    answer: {
      status: 201,
      body: JSON.stringify(projectSession(made, hostedUrl(services, id))),
      tokenOfSession: id,
    },
  };
}

/** A caller may shorten what the operator has set for the account, and not extend it. Throws Problem 422. */
function checkLifetime(seconds: number | null, accountMs: number): number {
  if (seconds === null) return accountMs;
  const [least, most] = [limits.sessionLifetimeMsMin / 1_000, Math.floor(accountMs / 1_000)];
  if (!Number.isInteger(seconds) || seconds < least || seconds > most)
    throw invalidField(
      "expires_in_seconds",
      `\`expires_in_seconds\` must be a whole number from ${least} to ${most}, the lifetime of this account's sessions.`,
    );
  return seconds * 1_000;
}

/** Spec, Credential session: the form's URL. It is derived from the id and not stored. */
export function hostedUrl(services: Needs<"publicUrl" | "signing">, sessionId: string): string {
  return `${services.publicUrl()}/connect/${services.signing.hostedToken(sessionId)}`;
}
