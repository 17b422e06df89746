import { FAILPOINTS, type Failpoint } from "#lib/failpoint.ts";
import type { SeededRandom } from "./seeded-random.ts";
import { WELL, type Mood } from "./target.ts";

/** What goes wrong, when, and for how long. A plan is data, so that it can be shown, and made smaller. */
export type Fault = { readonly atMs: number; readonly forMs: number } & (
  | { readonly kind: "crash"; readonly of: string; readonly isForGood: boolean }
  | { readonly kind: "pause" | "cut"; readonly of: string }
  /** The next process that reaches the point crashes, or stands still, there. */
  | { readonly kind: "point"; readonly point: Failpoint; readonly does: "crash" | "pause" }
  | { readonly kind: "network"; readonly lossRate: number; readonly latencyMs: number }
  | { readonly kind: "news"; readonly lossRate: number }
  | { readonly kind: "store" }
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
  { down: 0.2, lies: 0.2, busy: 0.2, silent: 0.1, thinksMs: 3_000 },
];

/** The faults of a seed, in the order of their times; all are over at `untilMs`, and w1 is there again then. */
export function planFaults(random: SeededRandom, untilMs: number): readonly Fault[] {
  const faults = Array.from({ length: random.integer(2, 9) }, (): Fault => {
    const atMs = random.between(1_000, untilMs - 2_000);
    const mostMs = untilMs - atMs;
    const forMs = random.between(500, Math.min(mostMs, random.pick([3_000, 12_000, 40_000])));
    const kinds = [
      "crash",
      "crash",
      "pause",
      "pause",
      "cut",
      "point",
      "point",
      "point",
      "network",
      "news",
      "store",
      "target",
      "target",
      "clock",
    ] as const;
    const kind = random.pick(kinds);
    const of = random.pick([...WORKERS, ...WORKERS, ...APIS]);
    switch (kind) {
      case "crash":
        return { kind, atMs, forMs, of, isForGood: of !== "w1" && of !== "a1" && random.isHit(0.2) };
      case "pause":
      case "cut":
        return { kind, atMs, forMs, of };
      case "point":
        return { kind, atMs, forMs, point: random.pick(POINTS), does: random.pick(["crash", "pause"]) };
      case "network":
        return {
          kind,
          atMs,
          forMs,
          lossRate: random.pick([0, 0.02, 0.1]),
          latencyMs: random.pick([2, 100, 1_500]),
        };
      case "news":
        return { kind, atMs, forMs, lossRate: random.pick([0.3, 1]) };
      case "store":
        return { kind, atMs, forMs };
      case "target":
        return { kind, atMs, forMs, mood: random.pick(MOODS) };
      case "clock":
        return { kind, atMs, forMs, stepMs: Math.round(random.between(-20_000, 20_000)) };
    }
  });
  return faults.toSorted((one, other) => one.atMs - other.atMs);
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
      return `for ${seconds} the database is up to ${fault.latencyMs} ms away, and ${fault.lossRate * 100} % of calls break`;
    case "news":
      return `for ${seconds} ${fault.lossRate * 100} % of notifications are lost`;
    case "store":
      return `for ${seconds} the object store is down`;
    case "target":
      return `for ${seconds} the target is ${Object.entries(fault.mood)
        .map(([name, value]) => `${name} ${value}`)
        .join(", ")}`;
    case "clock":
      return `the database's clock steps by ${fault.stepMs} ms`;
  }
}
