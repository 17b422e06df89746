/**
 * docs/decisions/0025: the invariants that hold at all times, after any crash. `latchkey doctor --deep` finds
 * violations; so does every crash test at its end.
 */
export const INVARIANTS = {
  V1: {
    holds: "every stored idempotent answer has exactly the run, session or cancellation that it refers to",
    notChecked: null,
  },
  V2: { holds: "every run has a valid state, and ends at most once", notChecked: null },
  V3: {
    holds: "every recorded write was started once, and ended before its run completed",
    notChecked: null,
  },
  V4: {
    holds: "the journal was written only under the run's leases, one after the other",
    notChecked: null,
  },
  V5: { holds: "a completed run has all its results, byte for byte", notChecked: null },
  V6: { holds: "a session is completed if and only if it has its one credential", notChecked: null },
  V7: { holds: "nothing is left of a deleted credential, and nothing was started with it", notChecked: null },
  V8: {
    holds: "no secret is anywhere but in the vault",
    notChecked: "only a test that planted its own secrets knows what to look for",
  },
  V9: { holds: "the audit log verifies, with one entry for each effect", notChecked: null },
  V10: { holds: "every end of a run has its event, and every event its end", notChecked: null },
  V11: { holds: "nothing is kept beyond its time", notChecked: null },
  V12: { holds: "a stored idempotent answer equals the one that was sent", notChecked: null },
  V13: { holds: "the progress of a run never goes back", notChecked: null },
  V14: { holds: "only the row of a purged run is left", notChecked: null },
  V15: { holds: "a row and its parent belong to the same account", notChecked: null },
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
