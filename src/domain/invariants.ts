/**
 * docs/decisions/0025: the invariants that hold at all times, after any crash. `latchkey doctor --deep` finds
 * violations; so does every crash test at its end.
 */
export const INVARIANTS = {
  V1: {
    holds: "every answer kept for replays has exactly the run, session or cancel that it names",
    notChecked: null,
  },
  V2: { holds: "every run has a state of the table, and at most one end", notChecked: null },
  V3: { holds: "every recorded write was begun once, and ended before its run completed", notChecked: null },
  V4: {
    holds: "what the journal holds was written under the run's leases, one after the other",
    notChecked: null,
  },
  V5: { holds: "a completed run has all its results, byte for byte", notChecked: null },
  V6: { holds: "a session is completed if and only if it has its one credential", notChecked: null },
  V7: { holds: "of a deleted credential nothing is left, and nothing was started with it", notChecked: null },
  V8: {
    holds: "no secret is anywhere but in the vault",
    notChecked: "only a test that planted its own secrets knows what to look for",
  },
  V9: { holds: "the audit log verifies, with one entry for each effect", notChecked: null },
  V10: { holds: "every end of a run has its webhooks", notChecked: "webhooks are not built yet" },
  V11: { holds: "nothing is left behind beyond its time", notChecked: null },
  V12: { holds: "an answer kept for replays is the one that was given", notChecked: null },
  V13: { holds: "no run shows less than it has shown before", notChecked: null },
  V14: { holds: "of a purged run only its row is left", notChecked: null },
  V15: { holds: "a row and what it belongs to are of one account", notChecked: null },
} as const satisfies Record<string, { readonly holds: string; readonly notChecked: string | null }>;

export type Invariant = keyof typeof INVARIANTS;

/** A violation of an invariant. Contains the operator's ids and names; never a secret, nothing from a caller. */
export interface InvariantFinding {
  readonly invariant: Invariant;
  /** The check that found it. */
  readonly check: string;
  /** The table and the ids, or the object, or the file. */
  readonly place: string;
  readonly problem: string;
  readonly remedy: string;
}
