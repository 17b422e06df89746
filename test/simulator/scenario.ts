import type { Ordered } from "./customers.ts";
import { ANY_FAULT, planFaults, WORKERS, type Fault, type FaultChoice } from "./faults.ts";
import { SeededRandom } from "./seeded-random.ts";
import { WELL, type Mood } from "./target.ts";

/** Faults come until then; after that everything must end. */
export const FAULTS_MS = 40_000;

interface Cancels {
  readonly count: number;
  readonly fromMs: number;
  readonly untilMs: number;
}
export const CANCELS: Cancels = { count: 3, fromMs: 3_000, untilMs: FAULTS_MS };

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
  /** How many there are; two or three, by the seed, unless given. */
  readonly workers?: number;
  /** Of runs, by those who ordered them; some unless given. */
  readonly cancels?: Cancels;
  /** How the target is while no fault says otherwise. */
  readonly mood?: Mood;
}

export type ScenarioName =
  | "anything"
  | "pauses"
  | "thaw"
  | "crowd"
  | "poison"
  | "suspect"
  | "clocks"
  | "burst"
  | "cancels"
  | "lines"
  | "logins"
  | "pairs";

const NO_FAULTS: FaultChoice = { ...ANY_FAULT, least: 0, most: 0 };
const RARE_FAULTS: FaultChoice = { ...ANY_FAULT, least: 0, most: 2, kinds: ["news", "store"] };
/** Until after the last order: the target is in one of these moods, or the database far away. */
const ALL_ALONG = { atMs: 400, forMs: 44_000 };

export const SCENARIOS: readonly Scenario[] = [
  {
    name: "anything",
    weight: 6,
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
    // Workers that wake up when others have their runs, with something on their tongues: those others are slow, and so is what tells them.
    name: "thaw",
    weight: 3,
    faults: {
      ...ANY_FAULT,
      least: 2,
      most: 4,
      leastMs: 17_500,
      kindsMost: 7,
      kinds: ["point", "point", "point", "pause"],
      points: [
        "write.before_intent",
        "write.after_intent",
        "write.after_intent",
        "write.after_intent",
        "write.after_effect",
        "step.before_finish",
        "step.before_finish",
        "run.before_complete",
        "run.after_claim",
      ],
      does: "pause",
      forMs: [18_000, 20_000, 22_000, 25_000],
      more: (random) => [
        { ...ALL_ALONG, kind: "network", weather: { lossRate: 0, latencyMs: random.pick([2, 40, 100]) } },
        {
          ...ALL_ALONG,
          kind: "target",
          mood: random.pick([
            { ...WELL, connectsMs: 300 },
            { ...WELL, connectsMs: 4_000 },
            { ...WELL, thinksMs: 8_000 },
          ]),
        },
      ],
    },
    orders: 12,
    ordersMs: 22_000,
    orderOf: (random) => ({
      account: "acme",
      blueprint: random.pick(["sends", "sends", "sends", "blind", "paced", "gated"]),
    }),
  },
  {
    // More runs in a throttle's line than have their turn in a run's time.
    name: "crowd",
    weight: 2,
    faults: RARE_FAULTS,
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
  {
    // One that has ended two processes, and whose third request takes longer than others may wait for it.
    name: "suspect",
    weight: 1,
    faults: NO_FAULTS,
    orders: 14,
    ordersMs: 32_000,
    orderOf: (_, order) => (order === 0 ? { account: "rogue", blueprint: "lingers", atMs: 500 } : null),
  },
  {
    // The database's clock steps by more than a lease.
    name: "clocks",
    weight: 1,
    faults: { ...ANY_FAULT, least: 3, most: 6, kinds: ["clock", "clock", "clock", "news"], stepMs: 40_000 },
    orders: 12,
    ordersMs: 30_000,
    orderOf: () => null,
  },
  {
    // More orders at once than an account may have under way, and all workers hear of them.
    name: "burst",
    weight: 1,
    workers: 3,
    faults: { ...ANY_FAULT, least: 0, most: 2, kinds: ["network", "cut", "news"] },
    orders: 20,
    ordersMs: 30_000,
    orderOf: (_, order) => ({ account: "neighbour", blueprint: "sends", atMs: 1_000 + (order % 4) * 8_000 }),
    mood: { ...WELL, thinksMs: 1_500 },
  },
  {
    // Cancels that stop before their COMMIT, beside runs that wait behind the cancelled ones.
    name: "cancels",
    weight: 1,
    faults: {
      ...NO_FAULTS,
      more: () =>
        [1_000, 2_000, 3_000].map((atMs): Fault => ({
          kind: "point",
          point: "run.after_cancel",
          does: "pause",
          atMs,
          forMs: 11_000,
        })),
    },
    orders: 24,
    ordersMs: 15_000,
    orderOf: () => ({ account: "acme", blueprint: "sends" }),
    cancels: { count: 10, fromMs: 12_500, untilMs: 20_000 },
    mood: { ...WELL, thinksMs: 4_000 },
  },
  {
    // Runs in a throttle's line, whose callers lose their connections, or end.
    name: "lines",
    weight: 1,
    faults: {
      ...ANY_FAULT,
      least: 1,
      most: 4,
      kinds: ["crash", "cut", "network", "news"],
      more: (random) => [
        {
          ...ALL_ALONG,
          kind: "network",
          weather: { lossRate: random.pick([0.03, 0.1]), latencyMs: 2 },
        },
      ],
    },
    orders: 12,
    ordersMs: 6_000,
    orderOf: () => ({ account: "acme", blueprint: "paced" }),
  },
  {
    // More runs of a credential than can log in within their time; a session that is kept, and one that the target has forgotten.
    name: "logins",
    weight: 1,
    // Places for as many runs as wait longer than their time if they wait there.
    workers: 3,
    faults: RARE_FAULTS,
    orders: 20,
    ordersMs: 6_000,
    orderOf: (_, order) => ({ account: "vendor", blueprint: order % 3 === 2 ? "portal" : "slow" }),
  },
  {
    // Runs that need two credentials, beside many that need one of them.
    name: "pairs",
    weight: 1,
    faults: RARE_FAULTS,
    orders: 44,
    ordersMs: 14_000,
    orderOf: (random, order) =>
      order === 0
        ? { account: "partner", blueprint: "both", atMs: 3_000 }
        : { account: "partner", blueprint: random.pick(["one", "other"]) },
    mood: { ...WELL, thinksMs: 2_000 },
  },
];

/** What a seed stands for. */
interface Seeded {
  readonly scenario: Scenario;
  /** Names of the workers: two see all that two can, at two thirds of the cost. */
  readonly workers: readonly string[];
  readonly faults: readonly Fault[];
}

export function scenarioOf(seed: number): Seeded {
  const random = new SeededRandom(seed).fork("scenario");
  const lots = SCENARIOS.flatMap((each) => Array.from({ length: each.weight }, () => each));
  const scenario = random.pick(lots);
  const workers = WORKERS.slice(0, scenario.workers ?? random.pick([2, 2, 3]));
  const faults = planFaults(random.fork("faults"), FAULTS_MS, { ...scenario.faults, workers });
  return { scenario, workers, faults };
}
