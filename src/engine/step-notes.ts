import type { OutboundResponse } from "#domain/http-exchange.ts";
import type { TargetSession } from "./login/target-session.ts";

/** What is written down of a node while it works. */
export interface StepNotes {
  /** JSON, line by line. */
  readonly log: string[];
  /** What its last request was answered; null: nothing, or that is not known because several were under way at once. */
  answer: OutboundResponse | null;
  underWay: number;
  wasAtOnce: boolean;
}

export const newNotes = (): StepNotes => ({ log: [], answer: null, underWay: 0, wasAtOnce: false });

/** The answer that a failure is about, if nothing else says so. */
export const lastAnswer = ({ answer, wasAtOnce }: StepNotes): OutboundResponse | null =>
  wasAtOnce ? null : answer;

/** A target whose answers are remembered: of each node the last. */
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
