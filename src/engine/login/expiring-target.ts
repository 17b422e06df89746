import { StepFailure } from "#answers/browser/step-failure.ts";
import type { Secret } from "#lib/secret.ts";
import type { LoginSession } from "#strategies/define-login.ts";
import type { SessionJar } from "#strategies/http/session-jar.ts";
import type { TargetSession } from "./target-session.ts";

/**
 * A target whose browsers may meet a page that says that the session has ended (`expired` of the login): the run logs in again, once,
 * and the steps start again with the new session. They only read, so nothing happens twice.
 */
export function openExpiringTarget(
  first: Secret<LoginSession>,
  open: (session: Secret<LoginSession>, jar?: SessionJar) => TargetSession,
  renew: (expired: Secret<LoginSession>, signal: AbortSignal) => Promise<Secret<LoginSession>>,
): TargetSession {
  const opened = open(first);
  let target = opened;
  let hasRenewed = false;
  return {
    send: async (...asked) => await target.send(...asked),
    originOf: opened.originOf,
    jar: opened.jar,
    browse: async (signal, ...rest) => {
      try {
        return await target.browse(signal, ...rest);
      } catch (error) {
        if (!(error instanceof StepFailure) || error.code !== "expired" || hasRenewed) throw error;
        hasRenewed = true;
        target = open(await renew(first, signal));
        return await target.browse(signal, ...rest);
      }
    },
    close: async () => {
      await target.close();
      if (target !== opened) await opened.close();
    },
  };
}
