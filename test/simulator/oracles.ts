import { checkManifests } from "#actions/upkeep/check-invariants.ts";
import { limits } from "#domain/limits.ts";
import { must } from "#lib/assert.ts";
import { STUBBORN_ROWS } from "./customers.ts";
import type { Broken, Oracle, Seen, When } from "./oracle.ts";
import {
  ADMISSION_CHECKS,
  EFFECT_CHECKS,
  END_CHECKS,
  findBroken,
  MOMENT_CHECKS,
  type RowChecks,
} from "./row-oracles.ts";
import { fairness, fences, members, oneLoginAtATime, placesOfWorkers } from "./worker-oracles.ts";

/** Waits of the target for the next request of one throttle; a request may come late, and the next one in time. */
const PACE_MS = 2_000;
const BURST = 3;
/** Between a slot and its request: the slot's answer, then leaving the queue and calling the next runs, three statements there and back. */
const WAYS_AFTER_SLOT = 7;

const noSurprise: Oracle = {
  name: "no surprise",
  when: "step",
  look: ({ world }) => world.surprises,
};

/** docs/nodes/http.md: "each write is sent at most once", unless it was looked up and is not there. */
const noWriteTwice: Oracle = {
  name: "no write twice",
  when: "step",
  look: ({ target }) => {
    const last = target.writes.at(-1);
    if (last === undefined) return [];
    const same = target.writes.filter(({ run, number }) => run === last.run && number === last.number);
    if (same.length < 2) return [];
    const times = same.map(({ atMs, from }) => `at ${(atMs / 1_000).toFixed(3)} s by ${from}`).join(", ");
    return [`the target has taken ${last.number} of ${last.run} ${same.length} times: ${times}`];
  },
};

/** Spec, Idempotency: one key, one run; what was acknowledged is there. */
const oneRunOfAKey: Oracle = {
  name: "one run of a key",
  when: "moment",
  look: async ({ db, customers }) => {
    const rows = await db.query<{ id: string; key: string | null }>({
      name: "list_runs",
      text: `select run.id, account.slug || '/' || convert_from(run.name, 'UTF8') as key
       from run join account on account.id = run.account_id order by run.id`,
    });
    const there = new Set(rows.map(({ id }) => id));
    const byKey = Map.groupBy(rows, ({ key }) => key);
    return customers.orders.flatMap(({ key, account, acknowledged }) => {
      // A run whose data was deleted has no name any more.
      const ids = new Set([...acknowledged, ...(byKey.get(`${account}/${key}`) ?? []).map(({ id }) => id)]);
      const strange = acknowledged.filter((id) => !there.has(id));
      return [
        ...(ids.size > 1 ? [`${key} has ${ids.size} runs: ${[...ids].join(", ")}`] : []),
        ...strange.map((id) => `${key} was acknowledged as ${id}, which is not there`),
      ];
    });
  },
};

/** What the journal says of a write, and what the target's books say. */
const booksAndJournal: Oracle = {
  name: "books and journal",
  when: "end",
  look: async ({ db, target }) => {
    const writes = await db.query<{ runId: string; number: string; status: string; by: string | null }>({
      name: "list_all_writes",
      text: `select run_id as "runId", 'n' || ordinal as number, status, decided_by as by from run_write`,
    });
    return writes.flatMap(({ runId, number, status, by }) => {
      const isBooked = target.has(runId, number);
      if (status === "done" && !isBooked)
        return [`${number} of ${runId} is done, and the target has not got it`];
      if (status === "refused" && isBooked)
        return [`${number} of ${runId} was refused${by ?? ""}, and the target has it`];
      return [];
    });
  },
};

/** Blueprints that write one number for each row. */
const WRITES = new Set(["sends", "blind", "gated"]);

/** A run that completed has written all that it was to write. */
const completedIsWhole: Oracle = {
  name: "what completed is whole",
  when: "end",
  look: async ({ db, target, customers }) => {
    const rows = await db.query<{ id: string; key: string }>({
      name: "list_completed_runs",
      text: `select run.id, account.slug || '/' || convert_from(run.name, 'UTF8') as key
       from run join account on account.id = run.account_id where run.status = 'completed' and run.name is not null`,
    });
    const orders = new Map(customers.orders.map((order) => [`${order.account}/${order.key}`, order]));
    return rows.flatMap(({ id, key }) => {
      const order = orders.get(key);
      if (order === undefined || !WRITES.has(order.blueprint)) return [];
      return order.numbers
        .filter((number) => !target.has(id, number))
        .map((number) => `${id} (${key}) completed, and the target has no ${number}`);
    });
  },
};

/** docs/nodes/http.md: `throttle`. */
const paceIsKept: Oracle = {
  name: "the throttle's pace is kept",
  when: "end",
  look: ({ target, around }) => {
    // Requests are late by these ways, each by others, and the later ones may be late by none.
    const lateMs = WAYS_AFTER_SLOT * around.network.slowestMs;
    const leastMs = Math.min((BURST - 1) * PACE_MS, BURST * PACE_MS - lateMs);
    const paths = ["/paced", "/crowd"].map((path) =>
      // When they were sent: a connection may take longer than a slot.
      target.reads
        .filter((read) => read.path === path)
        .map(({ sentMs }) => sentMs)
        .toSorted((one, other) => one - other),
    );
    return paths.flatMap((times) =>
      times.flatMap((sentMs, index) => {
        const last = times[index + BURST];
        if (last === undefined || last - sentMs >= leastMs) return [];
        return [`${BURST + 1} requests within ${Math.round(last - sentMs)} ms, of one each ${PACE_MS} ms`];
      }),
    );
  },
};

/** Workers that a run loses before it fails, and its first. */
const LOST_MAX = limits.lostLeasesMax + 1;

/** docs/blueprints.md: "a run has 100 retries over all its nodes". A request that was lost with its worker is no retry. */
const retriesAreCounted: Oracle = {
  name: "retries of a run",
  when: "moment",
  look: ({ target }) => {
    const byRun = Map.groupBy(
      target.reads.filter(({ path }) => path === "/stubborn"),
      ({ run }) => run,
    );
    return [...byRun]
      .filter(([, { length }]) => length > limits.retriesMax + LOST_MAX * STUBBORN_ROWS)
      .map(([run, { length }]) => `${run} has sent ${length} requests, with ${limits.retriesMax} retries`);
  },
};

/** V5: what completed has the results of its Blueprint. */
const manifests: Oracle = {
  name: "V5",
  when: "end",
  look: async ({ db }) => {
    const findings = await checkManifests(db);
    return findings.map(({ place, problem }) => `${place}: ${problem}`);
  },
};

const ORACLES: readonly Oracle[] = [
  noSurprise,
  noWriteTwice,
  placesOfWorkers,
  fences,
  oneLoginAtATime,
  members,
  oneRunOfAKey,
  fairness,
  booksAndJournal,
  completedIsWhole,
  paceIsKept,
  manifests,
  retriesAreCounted,
];

/** Asks all oracles of a time together. The first thing that does not hold; null: all does. */
export async function ask(seen: Seen, when: When): Promise<Broken | null> {
  if (when === "step") return askInMemory(seen);
  const asked = ORACLES.filter((oracle) => oracle.when === when);
  const ofRows = OF_ROWS[when];
  const [broken, ...answers] = await Promise.all([
    ofRows === null ? null : findBroken(seen.db, ofRows),
    ...asked.map(async (oracle) => await oracle.look(seen)),
  ]);
  for (const [at, [what]] of answers.entries())
    if (what !== undefined) return { oracle: must(asked[at], "the oracle").name, what };
  return broken;
}

const OF_STEPS = ORACLES.filter(({ when }) => when === "step");

/** After each event, so nothing is awaited. */
function askInMemory(seen: Seen): Broken | null {
  for (const oracle of OF_STEPS) {
    const [what] = oracle.look(seen) as readonly string[];
    if (what !== undefined) return { oracle: oracle.name, what };
  }
  return null;
}

const OF_ROWS: Readonly<Record<When, RowChecks | null>> = {
  step: null,
  admissions: ADMISSION_CHECKS,
  effects: EFFECT_CHECKS,
  moment: MOMENT_CHECKS,
  end: END_CHECKS,
};
