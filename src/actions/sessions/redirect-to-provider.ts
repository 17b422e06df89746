import type { BeginOutcome } from "./begin-oauth.ts";
import type { Needs } from "#actions/services.ts";

type Leaving = Extract<BeginOutcome, { kind: "leave" }>;

/** The address that a frame opens in a window. */
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

/** The redirect of a window that a frame opened; undefined: no frame opened it. */
export function leave(
  services: Needs<"signing">,
  sessionId: string,
  { state, url, proof }: Departing,
): Leaving | undefined {
  if (!services.signing.verifyDeparture([sessionId, state, url], proof)) return undefined;
  return { kind: "leave", url, state, cookie: services.signing.oauthCookie(state) };
}
