import { setTimeout as sleep } from "node:timers/promises";
import type { Database } from "#db/connection/pool.ts";
import { SeededRandom } from "../simulator/seeded-random.ts";
import type { HeldSide } from "./held-side.ts";

/** Which of the two sides goes on, statement by statement. */
export type Order = readonly (0 | 1)[];

/** One side goes on until nothing but its COMMIT is left, then the other one: where they want the same rows, one waits. */
export interface HoldOrder {
  readonly holds: 0 | 1;
}

/** One place of an order that was carried out. */
export interface Step {
  readonly side: 0 | 1;
  readonly label: string;
  /** The other side could have gone on here as well. */
  readonly isChoice: boolean;
}

/** The application name of a side's sessions, by which the server tells who waits. */
export const sessionName = (side: string): string => `locks ${side}`;

const LOOK_AFTER_MS = 2;
/** Longer than the longest wait that the product allows a statement. */
const STUCK_MS = 20_000;
const STEPS_MAX = 80;

/** Tells when both sides stand still. */
export class Watch {
  /** How often a side stood still because of a lock of the other one. */
  waits = 0;
  readonly #monitor: Database;
  #changed = Promise.withResolvers<void>();

  constructor(monitor: Database) {
    this.#monitor = monitor;
  }

  readonly onChange = (): void => {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  };

  /**
   * Until each side is held, has ended, or waits for a lock of the other one, which does neither. `mayAllWait`: somebody else holds rows.
   */
  async settle(sides: readonly HeldSide[], mayAllWait = false): Promise<void> {
    const sinceMs = performance.now();
    for (;;) {
      const moving = sides.filter((side) => !side.isStill);
      if (moving.length === 0) return;
      await Promise.race([this.#changed.promise, sleep(LOOK_AFTER_MS)]);
      // Two that wait for each other are the server's to part.
      if ((mayAllWait || moving.length < sides.length) && moving.every((side) => !side.isStill)) {
        const waiting = await this.#listWaiting();
        if (moving.every((side) => waiting.has(sessionName(side.name)) && !side.isStill)) {
          this.waits++;
          return;
        }
      }
      if (performance.now() - sinceMs > STUCK_MS)
        throw new Error(`${moving.map(({ name }) => name).join(" and ")} did not come to an end`);
    }
  }

  async #listWaiting(): Promise<ReadonlySet<string>> {
    const rows = await this.#monitor.query<{ name: string }>({
      name: "list_waiting",
      text: `select application_name as name from pg_stat_activity where datname = current_database()
        and wait_event_type = 'Lock' and cardinality(pg_blocking_pids(pid)) > 0`,
    });
    return new Set(rows.map(({ name }) => name));
  }
}

const opposite = (side: 0 | 1): 0 | 1 => (side === 0 ? 1 : 0);

/** Lets the sides go on in this order, and as they come after its end. Gives what was done. */
export async function follow(
  watch: Watch,
  sides: readonly [HeldSide, HeldSide],
  order: Order | HoldOrder,
): Promise<readonly Step[]> {
  const choose =
    "holds" in order
      ? (): 0 | 1 => (sides[order.holds].next === "commit" ? opposite(order.holds) : order.holds)
      : (at: number): 0 | 1 | undefined => order[at];
  const steps: Step[] = [];
  for (;;) {
    await watch.settle(sides);
    const ready = ([0, 1] as const).filter((side) => sides[side].next !== null);
    const [first] = ready;
    if (first === undefined) {
      if (sides.every(({ ended }) => ended !== null)) return steps;
      // The one that waits gets its lock, now that the other has ended.
      await sleep(LOOK_AFTER_MS);
      continue;
    }
    const wanted = choose(steps.length);
    const side = wanted !== undefined && ready.includes(wanted) ? wanted : first;
    steps.push({ side, label: sides[side].next ?? "", isChoice: ready.length > 1 });
    if (steps.length > STEPS_MAX) throw new Error(`more than ${STEPS_MAX} statements: ${describe(steps)}`);
    sides[side].letGo();
  }
}

/** Rows that somebody holds, one after the other let go. */
export interface HeldRows {
  readonly ids: readonly string[];
  /** The last of them. */
  letLastGo(): Promise<void>;
}

/**
 * Lets both go on until they wait for rows that are held, and then lets the rows go one by one: two statements that take several rows in
 * different orders meet in a deadlock.
 */
export async function followRows(
  watch: Watch,
  sides: readonly [HeldSide, HeldSide],
  rows: HeldRows,
  begin: () => void,
): Promise<void> {
  for (const side of sides) side.setFree();
  begin();
  await watch.settle(sides, true);
  for (const _each of rows.ids) {
    await rows.letLastGo();
    await watch.settle(sides, true);
  }
  while (!sides.every(({ ended }) => ended !== null)) await sleep(LOOK_AFTER_MS);
}

/** `a: begin_write, b: cancel, …` */
export const describe = (steps: readonly Step[]): string =>
  steps.map(({ side, label }) => `${"ab"[side]}: ${label}`).join("\n    ");

/**
 * The orders of two sides' statements, each once: after an order was carried out, those that differ from it at one of its choices. Which
 * of them comes next is chance by the seed, so that the first few are spread over all of them.
 */
export class Orders {
  readonly #open: Order[] = [[]];
  readonly #random: SeededRandom;

  constructor(seed: number) {
    this.#random = new SeededRandom(seed);
  }

  /** How many are known and were not carried out. */
  get left(): number {
    return this.#open.length;
  }

  take(): Order | undefined {
    if (this.#open.length === 0) return undefined;
    const [order] = this.#open.splice(this.#random.integer(0, this.#open.length), 1);
    return order;
  }

  /** What came of an order: the statements after its end were let go as they came. */
  learn(order: Order, steps: readonly Step[]): void {
    const sides = steps.map(({ side }) => side);
    for (const [at, step] of steps.entries()) {
      if (at < order.length || !step.isChoice) continue;
      this.#open.push([...sides.slice(0, at), opposite(step.side)]);
    }
  }
}
