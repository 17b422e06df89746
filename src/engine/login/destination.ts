import { isSameOrigins } from "#domain/destination.ts";
import { OutboundError } from "#domain/http-exchange.ts";

/** Where one credential of a run may be sent: the one place that decides it, for its login, its tokens and its nodes. */
export interface Destination {
  /**
   * Something was opened that may reach these origins and no others: of several, those that all of them may reach. Until then
   * nothing may be reached.
   */
  narrow(sealed: readonly string[]): void;
  /** What is sealed from what was opened may reach these. */
  sealed(): readonly string[];
  /** Whether these are the very origins of what was opened. */
  isSame(sealed: readonly string[]): boolean;
  /** Throws OutboundError before anything is sent to an origin that is not among them. */
  admit(hop: URL, isFirst: boolean): void;
}

/** `inForce`: what the strategy names, in the version that the run was triggered with as in the one that is in force. */
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
