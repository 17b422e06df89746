import type { Invariant } from "#domain/invariants.ts";

/** A query that returns no rows from a healthy database. */
export interface RowCheck {
  readonly invariant: Invariant;
  readonly name: string;
  readonly problem: string;
  readonly remedy: string;
  /** Returns the places, as `place`. */
  readonly find: string;
  /** A finding may be an operation in progress: it only counts if a second look finds it again. */
  readonly isPassing?: true;
}

/** The remedy if there is no command for it. */
export const NOT_BY_US =
  "nothing of the service makes such a row: undo what was changed by hand, or restore a backup; if nobody changed anything, report this line as a defect";
