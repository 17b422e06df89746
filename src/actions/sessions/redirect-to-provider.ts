import type { BeginOutcome } from "./begin-oauth.ts";
import type { Needs } from "#actions/services.ts";

type Leaving = Extract<BeginOutcome, { kind: "leave" }>;

/** What a frame is given, for its window to show. */
export interface Departing {
  readonly state: string;
  readonly url: string;
  readonly proof: string;
}

export const prepareToLeave = (
  services: Needs<"signing">,
  sessionId: string,
  { state, url }: Leaving,
): Departing => ({
  state,
  url,
  proof: services.signing.departure([sessionId, state, url]),
});

/** What a window that came from a frame leaves with; undefined: nobody sent it there. */
export function leave(
  services: Needs<"signing">,
  sessionId: string,
  { state, url, proof }: Departing,
): Leaving | undefined {
  if (!services.signing.verifyDeparture([sessionId, state, url], proof)) return undefined;
  return { kind: "leave", url, state, cookie: services.signing.oauthCookie(state) };
}
