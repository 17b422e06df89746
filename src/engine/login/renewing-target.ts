import { OutboundError } from "#domain/http-exchange.ts";
import { isReadMethod } from "#domain/http-methods.ts";
import type { Secret } from "#lib/secret.ts";
import type { LoginSession } from "#strategies/define-login.ts";
import type { SessionJar } from "#strategies/http/session-jar.ts";
import { RunFailure } from "#engine/run-ended.ts";
import type { TargetSession } from "./target-session.ts";

interface Holding {
  readonly session: Secret<LoginSession>;
  readonly target: TargetSession;
  /** A renewed session that was never accepted is not renewed again: another one would be rejected as well. */
  mayRenew: boolean;
}

/**
 * A target whose session may expire before the run ends, as access tokens do. A 401 renews the session and the request is repeated: the
 * target has not processed it (RFC 9110, 15.5.2; RFC 6750, 3.1), so this is safe for writes as well. Concurrent requests share one
 * renewal.
 */
export function openRenewingTarget(
  first: Secret<LoginSession>,
  open: (session: Secret<LoginSession>, jar?: SessionJar) => TargetSession,
  renew: (refused: Secret<LoginSession>, signal: AbortSignal) => Promise<Secret<LoginSession>>,
): TargetSession {
  let holding: Holding = { session: first, target: open(first), mayRenew: true };
  let renewing: Promise<void> | null = null;
  const renewOnce = async (signal: AbortSignal): Promise<void> => {
    try {
      const session = await renew(holding.session, signal);
      holding = { session, target: open(session, holding.target.jar), mayRenew: false };
    } finally {
      renewing = null;
    }
  };
  return {
    send: async (request, signal, keep, mayLeave) => {
      const used = holding;
      const response = await used.target.send(request, signal, keep, mayLeave);
      if (response.status !== 401) {
        used.mayRenew = true;
        return response;
      }
      // A redirected write was processed: the 401 is for the next page.
      if (response.isRedirected && !isReadMethod(request.method)) return response;
      if (used === holding) {
        if (!used.mayRenew) return response;
        await (renewing ??= renewOnce(signal).catch(asOutbound));
      }
      return await holding.target.send(request, signal, keep, mayLeave);
    },
    originOf: holding.target.originOf,
    jar: holding.target.jar,
    browse: async (...asked) => await holding.target.browse(...asked),
    close: async () => await holding.target.close(),
  };
}

/** Nothing was processed and retrying does not help: nodes treat it as a refusal (a write did not happen). */
function asOutbound(error: unknown): never {
  if (error instanceof RunFailure) throw new OutboundError("refused", error.message, { cause: error });
  throw error;
}
