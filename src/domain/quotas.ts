/** The quotas of one account; null: no limit. */
export interface Quotas {
  /** Waiting runs: queued, or waiting for a busy credential. */
  readonly queuedRuns: number | null;
  /** Inputs, and objects of steps and results. */
  readonly storedBytes: number | null;
}
