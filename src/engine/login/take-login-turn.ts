import { releaseLogin, takeLogin } from "#db/credentials/credentials.ts";
import { limits } from "#domain/limits.ts";
import type { RunClock } from "#engine/waiting/run-clock.ts";
import { RunQueued, RunStopped } from "#engine/run-ended.ts";
import type { EngineServices } from "#engine/services.ts";

export interface LoginTurnRequest {
  readonly credentialId: string;
  readonly runId: string;
  /** The epoch of the run's claim. */
  readonly epoch: number;
  readonly clock: RunClock;
  /** False: the run keeps its slot while it waits, however long that takes. */
  readonly mayQueue: boolean;
}

/** A login takes from a few milliseconds (a header) to many seconds (a page), so polling starts fast and slows down. */
const POLL_MS = { first: 20, longest: 250 };

/**
 * Takes the login lock of a credential, which one run holds at a time across all processes; returns its release function. Waiting does
 * not count towards the run's timeout. Throws RunQueued when the logins before it take long: then the run queues without holding
 * anything.
 */
export async function takeLoginTurn(
  services: EngineServices,
  request: LoginTurnRequest,
  signal: AbortSignal,
): Promise<() => Promise<void>> {
  const { credentialId, mayQueue, clock: runClock } = request;
  const beganMs = services.clock.now();
  const stand = (): never => {
    throw new RunQueued(credentialId, services.clock.now() - beganMs);
  };
  const patienceMs = mayQueue ? limits.loginPatienceMs : Infinity;
  return await runClock.standStill(async () => {
    // A run that has queued may already hold the lock: it does not wait for runs that came later.
    const mayHaveIt = request.epoch > 1;
    const end = mayHaveIt ? () => {} : await services.loginTurns.take(credentialId, patienceMs, signal);
    if (end === undefined) return stand();
    let isTaken = false;
    try {
      isTaken = await takeSoon(services, request, patienceMs, signal);
    } finally {
      if (!isTaken) end(false);
    }
    if (!isTaken) return stand();
    return async () => {
      try {
        services.news.notifyRunnable(await releaseLogin(services.db, credentialId, request));
      } finally {
        end(true);
      }
    };
  });
}

/** False: a login in another process takes long, or other runs are queued. */
async function takeSoon(
  { db, clock, loginTimeoutMs }: EngineServices,
  request: LoginTurnRequest,
  patienceMs: number,
  signal: AbortSignal,
): Promise<boolean> {
  const untilMs = clock.now() + patienceMs;
  const takenMs = loginTimeoutMs + limits.loginMarginMs;
  for (let pollMs = POLL_MS.first; ; pollMs = Math.min(pollMs * 1.5, POLL_MS.longest)) {
    const taken = await takeLogin(db, request.credentialId, request, takenMs);
    if (taken === "taken") return true;
    if (taken === "lost") throw new RunStopped("lease_lost");
    if (request.mayQueue && (taken === "line" || clock.now() >= untilMs)) return false;
    await clock.sleep(pollMs, signal);
  }
}
