export interface Latencies {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly count: number;
}

/** The wall clock, finer than a millisecond and the same in every process of this machine. */
export const nowMs = (): number => performance.timeOrigin + performance.now();

export function latenciesOf(tookMs: readonly number[]): Latencies {
  const sorted = Float64Array.from(tookMs).toSorted();
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return { p50Ms: at(0.5), p99Ms: at(0.99), count: sorted.length };
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
}
