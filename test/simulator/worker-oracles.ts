import type { Oracle, Seen } from "./oracle.ts";
import { PLACES } from "./processes.ts";

/** A worker carries no more runs than it has places. */
export const placesOfWorkers: Oracle = {
  name: "places of a worker",
  when: "step",
  look: ({ fleet }) =>
    fleet
      .workers()
      .filter(({ running }) => (running?.activeCount ?? 0) > PLACES)
      .map(
        ({ self, running }) => `${self.name} executes ${running?.activeCount} runs, but has ${PLACES} places`,
      ),
};

/** A look for waiting runs each four seconds (SimProcess.clock), one that was missed, and a row that a stopped process keeps locked. */
const WAIT_MS = 12_000;
const waitingSince = new WeakMap<Seen, Map<string, number>>();

/**
 * No run waits while its account may have more under way and a worker that nothing has disturbed has free places: no account waits for
 * another, and no wake-up is lost for longer than to the next look.
 */
export const fairness: Oracle = {
  name: "no run waits beside free places",
  when: "moment",
  look: async (seen) => {
    const { db, world } = seen;
    const rows = await db.query<{ id: string }>(WAITING);
    const before = waitingSince.get(seen);
    const isServed = hasFreeWorker(seen);
    const since = new Map(
      rows.map(({ id }) => [id, isServed ? (before?.get(id) ?? world.nowMs) : world.nowMs]),
    );
    waitingSince.set(seen, since);
    return [...since]
      .filter(([, sinceMs]) => world.nowMs - sinceMs > WAIT_MS)
      .map(([id, sinceMs]) => `${id} waits for ${Math.round(world.nowMs - sinceMs)} ms, beside free places`);
  },
};

const WAITING = {
  name: "list_waiting",
  text: `select run.id from run join account on account.id = run.account_id
    where admitted_at is null and ended_at is null and parked_at is null and waits_for is null and concurrency > (
      select count(*) from run other where other.account_id = account.id and admitted_at is not null and ended_at is null)
    order by run.id`,
  values: [],
};

function hasFreeWorker({ world, fleet, around }: Seen): boolean {
  const calmSinceMs = Math.max(around.network.roughUntilMs(), around.server.troubledUntilMs());
  if (world.nowMs - calmSinceMs < WAIT_MS) return false;
  return fleet
    .workers()
    .some(
      ({ self, running }) =>
        self.isUp &&
        world.nowMs - self.disturbedAtMs > WAIT_MS &&
        running !== null &&
        running.activeCount < PLACES,
    );
}
