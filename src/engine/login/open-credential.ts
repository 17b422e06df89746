import { randomUUID } from "node:crypto";
import { readClock } from "#db/connection/clock.ts";
import { findLoginSession, findSealedCredential, saveLoginSession } from "#db/credentials/credentials.ts";
import { Secret } from "#lib/secret.ts";
import { readCredential, readWithOrigins, writeWithOrigins } from "#domain/destination.ts";
import type { LoginSession } from "#strategies/define-login.ts";
import type { Destination } from "./destination.ts";
import type { CredentialFields } from "./login-context.ts";
import { mustBeBound, openSealed } from "./open-credential-bytes.ts";
import { recordOpening } from "./record-use.ts";
import type { EngineServices } from "#engine/services.ts";

/**
 * The one module that opens secrets. Who may import it is a rule of `scripts/layers.ts`: the login, and nothing else, so that no
 * node, expression or output can reach an opened credential.
 */

export interface CredentialReference {
  readonly accountId: string;
  readonly credentialId: string;
  readonly strategyId: string;
  /** Who opens it. */
  readonly runId: string;
  /** Learns from what is opened where it may be sent. */
  readonly destination: Destination;
}

/** The fields that the end user gave. Undefined when the credential was deleted. Throws RunFailure when it does not open. */
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
 * The cached login of a credential for this version of its strategy, if there is one that still counts. Throws RunFailure
 * when it does not open: bytes that were changed, moved or put back are no reason to go on.
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
  // Made with this credential, and for no other place: of another one, or of an older process, there is a new login.
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
 * Which login of the row it is, so that an earlier one does not open when its bytes are put back, and none longer than it was
 * made for. `SEALED_PLACES` writes the same in SQL.
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
