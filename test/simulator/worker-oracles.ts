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

/** ARCHITECTURE.md: "No write of a worker that has lost its lease". */
export const fences: Oracle = {
  name: "no write after a takeover",
  when: "step",
  look: ({ around }) => around.server.leases.breaches,
};

/** docs/strategies.md: "Logins with one credential run one at a time", but beside one that was left by a process that stood still. */
export const oneLoginAtATime: Oracle = {
  name: "one login at a time",
  when: "step",
  look: ({ target }) => target.loginsTogether,
};

/** In this time a worker that was taken over hears of it, lets its runs go, and joins again. */
const MEMBER_MS = 16_000;

/** A worker that others have taken over notices, and is one of the workers again. */
export const members: Oracle = {
  name: "what works is a member",
  when: "moment",
  look: async ({ db, fleet, around, world }) => {
    if (world.nowMs - calmSinceMs(around) < MEMBER_MS) return [];
    const rows = await db.query<{ id: string }>({ name: "list_members", text: "select id from worker" });
    const there = new Set(rows.map(({ id }) => id));
    return fleet.workers().flatMap(({ self, running }) => {
      const id = around.server.leases.memberOf(self.name);
      const isCalm = self.isUp && world.nowMs - self.disturbedAtMs > MEMBER_MS;
      if (running === null || !isCalm || id === undefined || there.has(id)) return [];
      return [`${self.name} works on as ${id}, which was taken over`];
    });
  },
};

/**
 * A look for waiting runs each four seconds (SimProcess.clock), one that was missed, and a row that a stopped process keeps locked; and
 * where no worker has stopped, and no notification was lost.
 */
const WAIT_MS = { disturbed: 12_000, calm: 5_000 };
const waitingSince = new WeakMap<Seen, Map<string, number>>();

/**
 * No run waits while its account may have more under way and a worker that nothing has disturbed has free places: no account waits for
 * another, no run for another one's locked row, and no wake-up is lost for longer than to the next look.
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
    const waitMs = areAllCalm(seen) ? WAIT_MS.calm : WAIT_MS.disturbed;
    return [...since]
      .filter(([, sinceMs]) => world.nowMs - sinceMs > waitMs)
      .map(([id, sinceMs]) => `${id} waits for ${Math.round(world.nowMs - sinceMs)} ms, beside free places`);
  },
};

/** Those whose own rows are locked wait for that. */
const WAITING = {
  name: "list_waiting",
  text: `select run.id from run join account on account.id = run.account_id
    where admitted_at is null and ended_at is null and parked_at is null and waits_for is null and concurrency > (
      select count(*) from run other where other.account_id = account.id and admitted_at is not null and ended_at is null)
    order by run.id for no key update of run skip locked`,
  values: [],
};

const calmSinceMs = ({ network, server }: Seen["around"]): number =>
  Math.max(network.roughUntilMs(), server.troubledUntilMs());

function hasFreeWorker({ world, fleet, around }: Seen): boolean {
  if (world.nowMs - calmSinceMs(around) < WAIT_MS.disturbed) return false;
  return fleet
    .workers()
    .some(
      ({ self, running }) =>
        self.isUp &&
        world.nowMs - self.disturbedAtMs > WAIT_MS.disturbed &&
        running !== null &&
        running.activeCount < PLACES,
    );
}

function areAllCalm({ world, fleet, around }: Seen): boolean {
  if (world.nowMs - around.news.lostUntilMs() < WAIT_MS.disturbed) return false;
  return fleet
    .everyWorker()
    .every(({ self }) => self.isUp && world.nowMs - self.disturbedAtMs > WAIT_MS.disturbed);
}
