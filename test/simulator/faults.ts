import { FAILPOINTS, type Failpoint } from "#lib/failpoint.ts";
import type { SeededRandom } from "./seeded-random.ts";
import type { Weather } from "./sim-network.ts";
import type { StoreMood } from "./sim-store.ts";
import { WELL, type Mood } from "./target.ts";

/** What goes wrong, when, and for how long. A plan is data, so that it can be shown, and made smaller. */
export type Fault = { readonly atMs: number; readonly forMs: number } & (
  | { readonly kind: "crash"; readonly of: string; readonly isForGood: boolean }
  | { readonly kind: "pause" | "cut"; readonly of: string }
  /** The next process that reaches the point crashes, or stands still, there. */
  | { readonly kind: "point"; readonly point: Failpoint; readonly does: "crash" | "pause" }
  | { readonly kind: "network"; readonly weather: Weather }
  /** The database stands still; or it is away, and another one is in its place. */
  | { readonly kind: "stall" | "failover" }
  | { readonly kind: "news"; readonly lossRate: number }
  | { readonly kind: "store"; readonly mood: StoreMood }
  | { readonly kind: "target"; readonly mood: Mood }
  | { readonly kind: "clock"; readonly stepMs: number }
);

/** Of the parts that are simulated. */
const POINTS = FAILPOINTS.filter((name) =>
  /^(idempotency|trigger|write|run|step|worker|review|audit)\./.test(name),
);

export const WORKERS = ["w1", "w2", "w3"] as const;
export const APIS = ["a1", "a2"] as const;

const MOODS: readonly Mood[] = [
  { ...WELL, down: 0.8 },
  { ...WELL, lies: 0.5 },
  { ...WELL, busy: 0.5 },
  { ...WELL, silent: 0.3 },
  { ...WELL, thinksMs: 20_000 },
  { ...WELL, connectsMs: 4_000 },
  { down: 0.2, lies: 0.2, busy: 0.2, silent: 0.1, thinksMs: 3_000, connectsMs: 2_000 },
];

const STORE_MOODS: readonly StoreMood[] = [
  { isDown: true, slowMs: 0 },
  { isDown: true, slowMs: 3_000 },
  { isDown: false, slowMs: 10_000 },
];

const KINDS = [
  "crash",
  "crash",
  "pause",
  "pause",
  "cut",
  "point",
  "point",
  "point",
  "network",
  "stall",
  "failover",
  "news",
  "store",
  "target",
  "target",
  "clock",
] as const satisfies readonly Fault["kind"][];

/** What may go wrong in one simulation. */
export interface FaultChoice {
  readonly least: number;
  readonly most: number;
  readonly kinds: readonly Fault["kind"][];
  readonly points: readonly Failpoint[];
  /** What a process does at a point; either unless given. */
  readonly does?: "crash" | "pause";
  /** Of so many of `kinds`, chosen by the seed, all faults of it are; of all unless given. */
  readonly kindsMost?: number;
  /** The database's clock steps by up to so much, forwards or back. */
  readonly stepMs: number;
  /** What happens besides. */
  readonly more?: (random: SeededRandom) => readonly Fault[];
  /** Workers that there are. */
  readonly workers: readonly string[];
  /** Shortest of one. */
  readonly leastMs: number;
  /** Longest of one: one of these. */
  readonly forMs: readonly number[];
  readonly moods: readonly Mood[];
}

export const ANY_FAULT: FaultChoice = {
  least: 2,
  most: 8,
  kinds: KINDS,
  points: POINTS,
  leastMs: 500,
  forMs: [3_000, 12_000, 40_000],
  stepMs: 20_000,
  workers: WORKERS,
  kindsMost: 3,
  moods: MOODS,
};

/** The faults of a seed, in the order of their times; all are over at `untilMs`, and w1 is there again then. */
export function planFaults(random: SeededRandom, untilMs: number, choice: FaultChoice): readonly Fault[] {
  const count = random.integer(choice.least, choice.most + 1);
  const kinds = pickSome(random, choice.kinds, choice.kindsMost ?? choice.kinds.length);
  const faults = Array.from({ length: count }, (): Fault => planFault(random, untilMs, { ...choice, kinds }));
  return [...faults, ...(choice.more?.(random) ?? [])].toSorted((one, other) => one.atMs - other.atMs);
}

/** Few kinds of faults, and these often, meet what a little of each never meets. */
function pickSome<T>(random: SeededRandom, given: readonly T[], most: number): readonly T[] {
  if (most >= given.length) return given;
  return Array.from({ length: random.integer(1, most + 1) }, () => random.pick(given));
}

function planFault(random: SeededRandom, untilMs: number, choice: FaultChoice): Fault {
  const atMs = random.between(500, untilMs - choice.leastMs - 1_500);
  const forMs = random.between(choice.leastMs, Math.min(untilMs - atMs, random.pick(choice.forMs)));
  const kind = random.pick(choice.kinds);
  const of = random.pick([...choice.workers, ...choice.workers, ...APIS]);
  switch (kind) {
    case "crash":
      return { kind, atMs, forMs, of, isForGood: of !== "w1" && of !== "a1" && random.isHit(0.2) };
    case "pause":
    case "cut":
      return { kind, atMs, forMs, of };
    case "point": {
      const does = choice.does ?? random.pick(["crash", "pause"] as const);
      return { kind, atMs, forMs: random.pick(choice.forMs), point: random.pick(choice.points), does };
    }
    case "network": {
      const weather = { lossRate: random.pick([0, 0.02, 0.1]), latencyMs: random.pick([2, 100, 1_500]) };
      return { kind, atMs, forMs, weather };
    }
    case "stall":
    case "failover":
      return { kind, atMs, forMs };
    case "news":
      return { kind, atMs, forMs, lossRate: random.pick([0.3, 1]) };
    case "store":
      return { kind, atMs, forMs, mood: random.pick(STORE_MOODS) };
    case "target":
      return { kind, atMs, forMs, mood: random.pick(choice.moods) };
    case "clock":
      return { kind, atMs, forMs, stepMs: Math.round(random.between(-choice.stepMs, choice.stepMs)) };
  }
}

export function describeFault(fault: Fault): string {
  const seconds = `${(fault.forMs / 1_000).toFixed(1)} s`;
  switch (fault.kind) {
    case "crash":
      return `${fault.of} crashes${fault.isForGood ? " for good" : `, and is back after ${seconds}`}`;
    case "pause":
      return `${fault.of} stands still for ${seconds}`;
    case "cut":
      return `${fault.of} loses its connections to the database`;
    case "point":
      return `the next process at ${fault.point} ${fault.does === "crash" ? "crashes" : `stands still for ${seconds}`}`;
    case "network":
      return `for ${seconds} the database is up to ${fault.weather.latencyMs} ms away, and ${fault.weather.lossRate * 100} % of calls break`;
    case "stall":
      return `the database stands still for ${seconds}`;
    case "failover":
      return `the database is gone, and another one is in its place after ${seconds}`;
    case "news":
      return `for ${seconds} ${fault.lossRate * 100} % of notifications are lost`;
    case "store":
      return `for ${seconds} the object store is ${fault.mood.isDown ? "down" : `up to ${fault.mood.slowMs} ms slow`}`;
    case "target":
      return `for ${seconds} the target is ${Object.entries(fault.mood)
        .map(([name, value]) => `${name} ${value}`)
        .join(", ")}`;
    case "clock":
      return `the database's clock steps by ${fault.stepMs} ms`;
  }
}
