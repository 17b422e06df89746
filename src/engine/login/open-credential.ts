import { randomUUID } from "node:crypto";
import { readClock } from "#db/connection/clock.ts";
import { findLoginSession, findSealedCredential, saveLoginSession } from "#db/credentials/credentials.ts";
import { Secret } from "#lib/secret.ts";
import { readCredential, readWithOrigins, writeWithOrigins } from "#domain/destination.ts";
import type { LoginSession } from "#strategies/define-login.ts";
import type { Destination } from "./destination.ts";
import type { CredentialFields } from "./login-values.ts";
import { mustBeBound, openSealed } from "./open-credential-bytes.ts";
import { recordOpening } from "./record-use.ts";
import type { EngineServices } from "#engine/services.ts";

/**
 * The only module that opens credentials. By a rule in `scripts/layers.ts` only the login may import it, so that no node, expression or
 * output can reach an opened credential.
 */

export interface CredentialReference {
  readonly accountId: string;
  readonly credentialId: string;
  readonly strategyId: string;
  /** The actor, for the audit log. */
  readonly runId: string;
  /** Is restricted to the origins of the opened values. */
  readonly destination: Destination;
}

/** The end user's fields. Undefined when the credential was deleted. Throws RunFailure when it can't be opened. */
export async function openCredential(
  services: EngineServices,
  reference: CredentialReference,
): Promise<Secret<CredentialFields> | undefined> {
  const sealed = await recordOpening(services, reference, "credential", async (tx) =>
    findSealedCredential(tx, reference.accountId, reference.credentialId),
  );
  if (!sealed) return undefined;
  const { fields, origins } = await openSealed(
    services,
    "credential",
    sealed,
    binding("credential", reference),
    readCredential,
  );
  reference.destination.narrow(mustBeBound("credential", reference.credentialId, origins));
  return new Secret(fields);
}

/**
 * The valid cached login of a credential for this version of its strategy, if there is one. Throws RunFailure when it can't be opened,
 * because its bytes were changed, moved or restored.
 */
export async function openCachedLogin(
  services: EngineServices,
  reference: CredentialReference,
  strategyVersion: number,
): Promise<Secret<LoginSession> | undefined> {
  const cached = await recordOpening(services, reference, "cached_login", async (tx) =>
    findLoginSession(tx, reference.credentialId, strategyVersion),
  );
  if (!cached) return undefined;
  const version = loginVersion(strategyVersion, cached);
  const { value, origins } = await openSealed(
    services,
    "cached login",
    cached,
    { ...binding("login_session", reference), version },
    readWithOrigins<LoginSession>,
  );
  // It must belong to this credential and its origins; otherwise, or if an older process stored it, there is a new login.
  return origins !== null && reference.destination.isSame(origins) ? new Secret(value) : undefined;
}

export async function cacheLogin(
  services: EngineServices,
  reference: CredentialReference,
  strategyVersion: number,
  session: Secret<LoginSession>,
  cacheMs: number,
): Promise<void> {
  const plain = Buffer.from(writeWithOrigins(session.reveal(), reference.destination.sealed()), "utf8");
  const login = { expiresAtMs: Math.floor(await readClock(services.db)) + cacheMs, loginId: randomUUID() };
  const version = loginVersion(strategyVersion, login);
  const sealed = await services.vault.seal(plain, { ...binding("login_session", reference), version });
  plain.fill(0);
  const { accountId, credentialId } = reference;
  await saveLoginSession(services.db, {
    accountId,
    credentialId,
    strategyVersion,
    ...login,
    ...sealed,
  });
}

/**
 * Identifies the login within its row, so that an earlier one can't be opened when its bytes are restored, and none beyond its
 * lifetime. `SEALED_PLACES` has the same in SQL.
 */
function loginVersion(
  strategyVersion: number,
  login: { readonly expiresAtMs: number; readonly loginId: string },
): string {
  return [strategyVersion, login.expiresAtMs, login.loginId].join("/");
}

function binding(purpose: "credential" | "login_session", reference: CredentialReference) {
  return {
    purpose,
    accountId: reference.accountId,
    rowId: reference.credentialId,
    strategyId: reference.strategyId,
  };
}
