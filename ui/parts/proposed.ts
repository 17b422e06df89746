import type { applyConfig } from "../api/operations.ts";
import type { AnswerOf } from "../api/request.ts";

type Proposed = NonNullable<AnswerOf<typeof applyConfig>["proposal"]>;

/** The proposal in an answer, if the change was proposed instead of applied; null: none. */
export function proposedIn(answer: unknown): Proposed | null {
  if (typeof answer !== "object" || answer === null || !("proposal" in answer)) return null;
  return answer.proposal as Proposed | null;
}

/** Describes the proposal for people. */
export const sayProposed = ({ confirmations_wanted: wanted }: Proposed): string =>
  `Proposed. ${wanted === 1 ? "Another admin" : "Two admins"} must confirm it under Proposals before it takes effect.`;
