import { mulberry32 } from "./random.ts";

/** What a target can do to its callers. */
export const FAULT_KINDS = ["limit", "unavailable", "slow", "lost_answer"] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

export interface Fault {
  readonly kind: FaultKind;
  /** The paths that begin with it. */
  readonly path: string;
  /** How often it strikes at most; null: for as long as it is set. */
  readonly count: number | null;
  /** 0 to 1, drawn from the seed at every request that it could strike. */
  readonly probability: number;
  /** `limit`: what Retry-After says. `slow`: how long the answer takes. */
  readonly seconds: number;
}

export interface Faults {
  /** Takes the place of all that were set before, and draws from the beginning again. */
  set(seed: number, faults: readonly Fault[]): void;
  /** The fault that strikes this request, which counts as struck. Null: none. */
  strike(path: string, kinds: readonly FaultKind[]): Fault | null;
  state(): readonly (Fault & { readonly struck: number })[];
}

/** The same seed and the same requests give the same faults. */
export function createFaults(): Faults {
  let random = mulberry32(0);
  let set: { readonly fault: Fault; struck: number }[] = [];
  return {
    set(seed, faults) {
      random = mulberry32(seed);
      set = faults.map((fault) => ({ fault, struck: 0 }));
    },
    strike(path, kinds) {
      for (const entry of set) {
        const { kind, count, probability, path: prefix } = entry.fault;
        if (!kinds.includes(kind) || !path.startsWith(prefix)) continue;
        if (count !== null && entry.struck >= count) continue;
        if (probability < 1 && random() >= probability) continue;
        entry.struck += 1;
        return entry.fault;
      }
      return null;
    },
    state: () => set.map(({ fault, struck }) => ({ ...fault, struck })),
  };
}
