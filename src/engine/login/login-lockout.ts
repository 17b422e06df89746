import {
  clearRejectedLogins,
  countRejectedLogin,
  findLoginLockout,
  type LoginLockout,
} from "#db/credentials/login-lockouts.ts";
import { noteRefusedCandidate } from "#db/credentials/login-candidates.ts";
import type { StrategyVersion } from "#db/config-documents.ts";
import { lockRemedy } from "#domain/labels/states.ts";
import { RunFailure } from "#engine/run-ended.ts";
import type { EngineServices } from "#engine/services.ts";

export interface LockoutRequest {
  readonly credentialId: string;
  readonly runId: string;
  readonly strategyId: string;
  readonly strategy: Pick<StrategyVersion, "version" | "strategy">;
}

/**
 * The circuit breaker of logins: targets lock users out after some wrong passwords, which scheduled runs would soon reach. After a few
 * rejected logins in a row, no login is attempted for a while. The caller holds the login lock, so that waiting runs see the outcome
 * of the previous one. Throws RunFailure.
 */
export async function refuseIfLocked(
  services: EngineServices,
  request: LockoutRequest,
): Promise<LoginLockout | undefined> {
  const { strategy } = request.strategy;
  const state = await findLoginLockout(services.db, request.credentialId);
  if (strategy.lockout === null || !state?.lockedUntil) return state;
  throw new RunFailure(
    "login",
    `${strategy.id}: not tried: the target rejected the last ${state.rejections} logins of ${request.credentialId}, and more ` +
      `could lock the account there. ${lockRemedy(state.lockedUntil.toISOString(), request.credentialId)}`,
  );
}

/** Counts a rejection. Returns a note for the operator when the credential is now locked. */
export async function countRejection(services: EngineServices, request: LockoutRequest): Promise<string> {
  const { lockout } = request.strategy.strategy;
  const { credentialId, runId, strategyId } = request;
  if (lockout === null) {
    // The end user who waits is told.
    await noteRefusedCandidate(services.db, credentialId, runId);
    return "";
  }
  const state = await countRejectedLogin(services.db, { credentialId, runId, ...lockout });
  if (!state?.lockedUntil) return "";
  const { rejections } = state;
  const lockedUntil = state.lockedUntil.toISOString();
  services.log.warn(
    { runId, credentialId, strategyId, rejections, lockedUntil },
    "logins of a credential locked",
  );
  return ` (${rejections === 1 ? "a rejected login" : `${rejections} rejected logins in a row`}: no further one is tried. ${lockRemedy(lockedUntil, credentialId)})`;
}

export async function clearRejections(
  services: EngineServices,
  request: LockoutRequest,
  state: LoginLockout | undefined,
): Promise<void> {
  if (state && state.rejections > 0)
    await clearRejectedLogins(services.db, request.credentialId, request.runId);
}
