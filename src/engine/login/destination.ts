import { isSameOrigins } from "#domain/destination.ts";
import { OutboundError } from "#domain/http-exchange.ts";

/** Decides where one credential of a run may be sent, for its login, its tokens and its nodes. */
export interface Destination {
  /**
   * Restricts to these origins, because something was opened that may only reach them: after several calls, to the intersection. Until
   * the first call nothing may be reached.
   */
  narrow(sealed: readonly string[]): void;
  /** Origins for values that are sealed from the opened ones. */
  sealed(): readonly string[];
  /** Whether these are exactly the origins of the opened values. */
  isSame(sealed: readonly string[]): boolean;
  /** Throws OutboundError before anything is sent to an origin that is not among them. */
  admit(hop: URL, isFirst: boolean): void;
}

/** `inForce`: origins in both the run's version and the current version of the strategy. */
export function openDestination(credentialId: string, inForce: readonly string[]): Destination {
  let opened: readonly string[] | null = null;
  return {
    narrow: (sealed) => {
      opened = opened?.filter((origin) => sealed.includes(origin)) ?? sealed;
    },
    sealed: () => opened ?? [],
    isSame: (sealed) => opened !== null && isSameOrigins(opened, sealed),
    admit: ({ origin }, isFirst) => {
      if (inForce.includes(origin) && opened?.includes(origin) === true) return;
      const reason = inForce.includes(origin)
        ? `the credential ${credentialId} was not connected for ${origin}, which its strategy names by now. The end user connects ` +
          `again, or \`latchkey credentials rebind ${credentialId}\` binds it to what the strategy names`
        : `the strategy does not name ${origin} in the version that is in force`;
      throw isFirst
        ? new OutboundError("refused", `the request was refused: ${reason}`)
        : new OutboundError("redirect_outside", `a redirect was refused: ${reason}`);
    },
  };
}
