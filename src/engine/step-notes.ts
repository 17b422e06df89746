import type { OutboundResponse } from "#domain/http-exchange.ts";
import type { TargetSession } from "./login/target-session.ts";

/** Notes on a node while it executes. */
export interface StepNotes {
  /** The log, one JSON line per entry. */
  readonly log: string[];
  /** The answer to its last request; null: none, or unknown because several requests were in progress. */
  answer: OutboundResponse | null;
  underWay: number;
  wasAtOnce: boolean;
}

export const newNotes = (): StepNotes => ({ log: [], answer: null, underWay: 0, wasAtOnce: false });

/** The answer that caused a failure, if nothing else identifies it. */
export const lastAnswer = ({ answer, wasAtOnce }: StepNotes): OutboundResponse | null =>
  wasAtOnce ? null : answer;

/** A target that remembers each node's last answer. */
export function watchAnswers(target: TargetSession, notes: StepNotes): TargetSession {
  return {
    ...target,
    send: async (...asked) => {
      notes.answer = null;
      notes.underWay++;
      if (notes.underWay > 1) notes.wasAtOnce = true;
      try {
        return (notes.answer = await target.send(...asked));
      } finally {
        notes.underWay--;
      }
    },
  };
}
