import { leavesForTarget } from "#actions/sessions/begin-oauth.ts";
import type { HostedSession } from "#actions/sessions/hosted-session.ts";
import type { Success } from "./pages/message-pages.ts";

/** What is known of the login of a completed session. */
export function howConnected({ strategy, session }: HostedSession): Success["how"] {
  if (leavesForTarget(strategy)) return "signed_in";
  const { loginCheck } = session;
  return loginCheck === "accepted" || loginCheck === "unanswered" ? loginCheck : "stored";
}

/** The same of several: what can be said of all of them. */
export function howAllConnected(hosted: readonly HostedSession[]): Success["how"] {
  const [first = "stored", ...others] = new Set(hosted.map(howConnected));
  if (others.length === 0) return first;
  const isGood = (how: Success["how"]): boolean => how === "signed_in" || how === "accepted";
  return [first, ...others].every(isGood) ? "accepted" : "stored";
}
