/** What came of some seeds. */
export interface Total {
  seeds: number;
  /** Those that were simulated: with `--scenario` others are left out. */
  tried: number;
  virtualMs: number;
  runs: number;
  cpuS: number;
  /** Seeds, each with the oracle that it breaks. */
  readonly failed: string[];
  /** Seeds with more than one trace. */
  readonly odd: number[];
}
