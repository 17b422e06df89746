/** What one account may have; null: as much as it likes. */
export interface Quotas {
  /** Runs that wait, for their turn or for a busy credential. */
  readonly queuedRuns: number | null;
  /** Inputs, and objects of steps and results. */
  readonly storedBytes: number | null;
}
