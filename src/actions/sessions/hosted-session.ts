import { clockText, lookUpClock, readClock, readClockText } from "#db/connection/clock.ts";
import {
  findAccountById,
  findAccountBySlug,
  type BrandedAccount,
  findLogo as findStoredLogo,
} from "#db/accounts.ts";
import { sealEntry } from "#db/audit-entries.ts";
import { findCachedVersion, findVersion } from "#db/config-documents.ts";
import { completeEmbeddedSession, lockForSlot } from "#db/credentials/embedded-sessions.ts";
import type { Database } from "#db/connection/pool.ts";
import {
  completeSession,
  completeSessionTogether,
  findSessionById,
  findSessionByToken,
  type NewCredential,
  type StoredSession,
} from "#db/credentials/credential-sessions.ts";
import type { AuditEvent } from "#domain/audit.ts";
import { readLogoUrl, type Brand, type Logo } from "#domain/branding.ts";
import { writeCredential } from "#domain/destination.ts";
import { limits } from "#domain/limits.ts";
import { appendSessionId, checkReturnUrl } from "#domain/return-url.ts";
import type { Strategy } from "#domain/strategy.ts";
import { must } from "#lib/assert.ts";
import { failpoint } from "#lib/failpoint.ts";
import type { Needs } from "#actions/services.ts";

/** The parts of a session that the hosted page shows. */
export interface HostedSession {
  readonly session: StoredSession;
  /** The account's name, as its end users know it. */
  readonly brand: Brand;
  readonly accountSlug: string;
  readonly strategy: Strategy;
  /** The URL to which the end user is redirected after submitting; null: the success page. */
  readonly redirectTo: string | null;
  /** Where the end user goes who cancels; null: the form has no such link. */
  readonly cancelTo: string | null;
  /** The customer's page to which an end user may return from a session that is over; null: none is known. */
  readonly backTo: string | null;
}

const NO_BRANDING = { accentColor: null, supportUrl: null, logo: null } as const;
const TOKEN = /^[\w-]{43}$/;

/** The session of a hosted link, in any state; undefined for an unknown link. Changes nothing. */
export async function findHostedSession(
  services: Needs<"db" | "signing">,
  token: string,
): Promise<HostedSession | undefined> {
  if (!TOKEN.test(token)) return undefined;
  const session = await findSessionByToken(services.db, services.signing.tokenLookup(token));
  return session && (await readHosted(services, session));
}

/** Like findHostedSession, by the session's id, and for sessions of embedded flows, too. */
export async function readHostedById(
  services: Needs<"db">,
  accountId: string,
  id: string,
): Promise<HostedSession> {
  return await readHosted(services, must(await findSessionById(services.db, accountId, id), "the session"));
}

/** An account, as its end users see it. */
export const readBrand = (account: Pick<BrandedAccount, "name" | "branding" | "isTest">): Brand => ({
  ...NO_BRANDING,
  ...account.branding,
  name: account.branding?.name ?? account.name,
  isTest: account.isTest,
});

export async function readHosted(services: Needs<"db">, session: StoredSession): Promise<HostedSession> {
  const account = must(await findAccountById(services.db, session.accountId), "the session's account");
  const strategy = must(
    await findVersion(services.db, "strategy", {
      accountId: session.accountId,
      id: session.strategyId,
      version: session.strategyVersion,
    }),
    "the session's strategy",
  );
  // Checked again at the redirect: the allowlist may have changed since the session was created (docs/decisions/0018).
  const admit = (url: string | null): string | null =>
    url !== null && checkReturnUrl(url, account.allowedOrigins).ok ? url : null;
  const wayBack = (url: string | null): string | null => {
    const admitted = admit(url);
    return admitted === null ? null : appendSessionId(admitted, session.id);
  };
  return {
    session,
    brand: readBrand(account),
    accountSlug: account.slug,
    strategy,
    redirectTo: wayBack(session.returnUrl),
    cancelTo: wayBack(session.cancelUrl),
    backTo: admit(session.returnUrl) ?? admit(session.cancelUrl),
  };
}

/** A fresh token for one rendered form; it needs no cookie. */
export async function issueCsrf(services: Needs<"db" | "signing">, token: string): Promise<string> {
  return services.signing.csrf(token, await readClock(services.db));
}

/** The image with this hash, which the pages of its account show. */
export async function findLogo(services: Needs<"db">, sha256: Buffer): Promise<Logo | undefined> {
  return await findStoredLogo(services.db, sha256);
}

/** The image with this hash of a version of a strategy. Signed versions never change. */
export async function findTargetLogo(
  { db }: Needs<"db">,
  named: { readonly account: string; readonly strategy: string; readonly version: number },
  sha256: Buffer,
): Promise<Logo | undefined> {
  const account = await findAccountBySlug(db, named.account);
  const key = account && { accountId: account.id, id: named.strategy, version: named.version };
  const logo = key && logoOf(await findCachedVersion(db, "strategy", key));
  return logo?.sha256.equals(sha256) === true ? logo : undefined;
}

/** The image of a strategy's document. */
export function logoOf(strategy: Pick<Strategy, "logoUrl"> | undefined): Logo | undefined {
  const url = strategy?.logoUrl ?? null;
  const read = url === null ? null : readLogoUrl(url);
  return read?.ok === true ? read.logo : undefined;
}

/** `stale`: the token belongs to a form that was rendered for this link, but has expired. */
export async function checkCsrf(
  services: Needs<"db" | "signing">,
  token: string,
  value: string,
): Promise<"good" | "stale" | "bad"> {
  const nowMs = await readClock(services.db);
  const isOurs = (lifetimeMs: number): boolean =>
    services.signing.verifyCsrf(token, value, { nowMs, lifetimeMs });
  if (isOurs(limits.formLifetimeMs)) return "good";
  return isOurs(Infinity) ? "stale" : "bad";
}

/** The sealed part of a new credential: the values, and every origin that may receive them. */
export interface NewContent {
  readonly values: ReadonlyMap<string, string>;
  readonly origins: readonly string[];
}

/** The credential's row: its values are sealed for it alone. */
export async function sealCredential(
  { vault }: Needs<"vault">,
  { accountId, strategyId }: StoredSession,
  id: string,
  { values, origins }: NewContent,
): Promise<NewCredential> {
  const plain = Buffer.from(writeCredential(values, origins), "utf8");
  const sealed = await vault.seal(plain, { purpose: "credential", accountId, rowId: id, strategyId });
  plain.fill(0);
  return { id, ...sealed, origins };
}

/** What the end user of a session did with a credential. */
export const byEndUser = (
  session: StoredSession,
  action: "credential.submit" | "credential.verify",
  credentialId: string,
): AuditEvent => ({
  accountId: session.accountId,
  actor: { kind: "end_user", id: session.embeddedSessionId ?? session.id },
  action,
  subjectId: credentialId,
  detail: { strategy: session.strategyId, strategy_version: session.strategyVersion },
});

/**
 * Seals a new credential and completes its session: with those of concurrent submits in one transaction, or else in one of its own.
 * `alongside` writes in that one.
 */
export async function vaultCredential(
  services: Needs<"db" | "signing" | "vault">,
  { session }: HostedSession,
  id: string,
  content: NewContent,
  alongside: ((tx: Database) => Promise<void>) | null = null,
): Promise<boolean> {
  const { db, signing } = services;
  const credential = await sealCredential(services, session, id, content);
  const submitted = byEndUser(session, "credential.submit", id);
  const isSlot = session.embeddedSessionId !== null;
  if (!isSlot && alongside === null) {
    const entry = sealEntry(signing.audit, submitted, clockText(await lookUpClock(db)));
    if (await completeSessionTogether(db, session, credential, entry)) return true;
  }
  const inOwn = async (tx: Database): Promise<boolean> => {
    if (isSlot && !(await lockForSlot(tx, session))) return false;
    const entry = sealEntry(signing.audit, submitted, await readClockText(tx));
    if (!(await completeSession(tx, session, credential, entry))) return false;
    await failpoint("session.after_complete");
    await alongside?.(tx);
    if (isSlot) await completeEmbeddedSession(tx, session);
    return true;
  };
  return await db.transaction(inOwn, { settle: true });
}
