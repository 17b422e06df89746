import type { NewProposal } from "#actions/config/create-proposal.ts";
import { CommandFailed, EXIT_CODES, tell } from "./output.ts";

/** The message for a change that was proposed instead of made: why, who must confirm it, and where. `url`: the service's. */
export function proposedInstead(
  url: string,
  { id, reasons, confirmationsWanted, expiresAt }: NewProposal,
): CommandFailed {
  for (const reason of reasons) tell(reason);
  const admins = confirmationsWanted === 1 ? "One admin" : "Two different admins";
  return new CommandFailed(
    `Nothing was changed: the account requires a second admin for this. The command line can't tell who is using it, so it can't confirm. ` +
      `${admins} must still confirm ${id} in the dashboard (${url}/dashboard/proposals/${id}) by ${expiresAt.toISOString()}. ` +
      `\`latchkey proposals show ${id}\` shows it.`,
    EXIT_CODES.proposed,
  );
}
