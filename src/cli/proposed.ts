import type { NewProposal } from "#actions/config/create-proposal.ts";
import type { Composition } from "./composition.ts";
import { CommandFailed, tell } from "./output.ts";

/** Nothing was done yet: admins must confirm it first. */
const WAITS_FOR_ADMINS = 4;

/** Why, where and by whom a change is confirmed that was proposed in place of being made. */
export function proposedInstead(
  composition: Composition,
  { id, reasons, confirmationsWanted, expiresAt }: NewProposal,
): CommandFailed {
  for (const reason of reasons) tell(reason);
  const admins = confirmationsWanted === 1 ? "One admin" : "Two different admins";
  const url = composition.config().publicUrl ?? "";
  return new CommandFailed(
    `Nothing was changed: the account wants a second admin for this. The command line does not know who types, so it confirms nothing. ` +
      `${admins} must still confirm ${id} in the dashboard (${url}/dashboard/proposals/${id}) by ${expiresAt.toISOString()}. ` +
      `\`latchkey proposals show ${id}\` shows it.`,
    WAITS_FOR_ADMINS,
  );
}
