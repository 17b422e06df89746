import type { Ordered } from "./customers.ts";
import { ANY_FAULT, planFaults, type Fault, type FaultChoice } from "./faults.ts";
import { SeededRandom } from "./seeded-random.ts";
import { WELL } from "./target.ts";

/** Faults come until then; after that everything must end. */
export const FAULTS_MS = 40_000;

/** What a seed is about. */
export interface Scenario {
  readonly name: ScenarioName;
  /** Of ten seeds, how many are of it. */
  readonly weight: number;
  readonly faults: FaultChoice;
  readonly orders: number;
  /** In this time orders come. */
  readonly ordersMs: number;
  /** What is ordered; null: anything. */
  readonly orderOf: (random: SeededRandom, order: number) => Ordered | null;
}

export type ScenarioName = "anything" | "pauses" | "crowd" | "poison";

const SCENARIOS: readonly Scenario[] = [
  {
    name: "anything",
    weight: 5,
    faults: ANY_FAULT,
    orders: 14,
    ordersMs: FAULTS_MS,
    orderOf: () => null,
  },
  {
    // Pauses that are longer than a lease, where they matter most: between a write's intent, its request and its answer.
    name: "pauses",
    weight: 3,
    faults: {
      ...ANY_FAULT,
      least: 3,
      most: 6,
      leastMs: 17_500,
      kinds: ["pause", "pause", "pause", "point", "point", "target", "target"],
      points: [
        "write.before_intent",
        "write.after_intent",
        "write.after_effect",
        "write.after_outcome",
        "run.before_claim",
        "run.before_admit",
        "run.after_claim",
        "run.after_cancel",
        "run.before_complete",
        "run.before_release",
        "review.before_commit",
        "worker.before_take_over",
      ],
      forMs: [22_000, 26_000, 32_000],
      moods: [
        { ...WELL, connectsMs: 4_000 },
        { ...WELL, connectsMs: 2_000, thinksMs: 2_000 },
        { ...WELL, thinksMs: 20_000 },
      ],
    },
    orders: 12,
    ordersMs: 25_000,
    orderOf: (random) => ({ account: "acme", blueprint: random.pick(["sends", "sends", "blind", "gated"]) }),
  },
  {
    // More runs in a throttle's line than have their turn in a run's time.
    name: "crowd",
    weight: 1,
    faults: { ...ANY_FAULT, least: 0, most: 2, kinds: ["news", "store"] },
    orders: 18,
    ordersMs: 3_000,
    orderOf: (_, order) => (order < 14 ? { account: "crowd", blueprint: "crowd" } : null),
  },
  {
    // Runs that end their process, and one that tries again too often.
    name: "poison",
    weight: 1,
    faults: { ...ANY_FAULT, least: 0, most: 2, kinds: ["news", "target", "store"] },
    orders: 12,
    ordersMs: 30_000,
    orderOf: (_, order) =>
      order < 3 ? { account: "rogue", blueprint: order < 2 ? "poison" : "stubborn" } : null,
  },
];

/** What a seed is about, and its faults. */
export function scenarioOf(seed: number): { readonly scenario: Scenario; readonly faults: readonly Fault[] } {
  const random = new SeededRandom(seed).fork("scenario");
  const lots = SCENARIOS.flatMap((each) => Array.from({ length: each.weight }, () => each));
  const scenario = random.pick(lots);
  return { scenario, faults: planFaults(random.fork("faults"), FAULTS_MS, scenario.faults) };
}
