import type { Invariant } from "#domain/invariants.ts";

/** A question to the database that a healthy one answers with no row. */
export interface RowCheck {
  readonly invariant: Invariant;
  readonly name: string;
  readonly problem: string;
  readonly remedy: string;
  /** Gives the places, as `place`. */
  readonly find: string;
  /** What it finds may be only just under way: it counts when it is there still at a second look. */
  readonly isPassing?: true;
}

/** The remedy where there is none by a command. */
export const NOT_BY_US =
  "nothing of the service makes such a row: undo what was changed by hand, or restore a backup; if nobody changed anything, report this line as a defect";
