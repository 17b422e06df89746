import type { OperatorAnswer } from "#contract/operator/operation.ts";
import type * as contract from "#contract/operator/config.ts";

type Proposed = NonNullable<OperatorAnswer<typeof contract.applyConfig>["proposal"]>;

/** What an answer says was proposed in place of being applied; null: nothing. */
export function proposedIn(answer: unknown): Proposed | null {
  if (typeof answer !== "object" || answer === null || !("proposal" in answer)) return null;
  return answer.proposal as Proposed | null;
}

/** For people. */
export const sayProposed = ({ confirmations_wanted: wanted }: Proposed): string =>
  `Nothing is changed yet: ${wanted === 1 ? "another admin" : "two admins"} must confirm it, under Proposals.`;
