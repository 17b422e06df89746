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

/**
 * Since when effects have their entries in the database: nothing was audited before there was a log, and detached months are gone. An hour
 * more, because an entry and its effect may have times a little apart.
 */
export const AUDITED_SINCE = `(select greatest(applied_at, (select max(month) + interval '1 month 1 hour' from audit_month) at time zone 'UTC')
  from schema_migration where version = 7)`;
