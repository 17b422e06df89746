import { checkRowsOf } from "#actions/upkeep/check-invariants.ts";
import { inLongSnapshot } from "#db/invariants/invariants.ts";
import type { Database } from "#db/connection/pool.ts";
import type { Customers } from "./customers.ts";
import type { ScriptedTarget } from "./target.ts";
import { PLACES } from "./processes.ts";
import type { World } from "./world.ts";

/** What an oracle looks at. `db` is the real database, beside all simulated processes. */
export interface Seen {
  readonly world: World;
  readonly db: Database;
  readonly target: ScriptedTarget;
  readonly customers: Customers;
}

/** Says what does not hold; nothing: all is well. To add one, see docs/simulator.md. */
export interface Oracle {
  readonly name: string;
  /** `step`: after each event, so it looks at what is in memory. `moment`: now and then, and at the end. `end`: at the end. */
  readonly when: "step" | "moment" | "end";
  look(seen: Seen): Promise<readonly string[]> | readonly string[];
}

/** Waits of the target for the next request of one throttle; a request may come late, and the next one in time. */
const PACE_MS = 2_000;
const BURST = 3;

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

/** The product's own: V1 to V15 as far as rows say it. */
const invariants: Oracle = {
  name: "invariants",
  when: "moment",
  look: async ({ db }) => {
    const findings = await inLongSnapshot(db, checkRowsOf);
    return findings.map(
      ({ invariant, check, place, problem }) => `${invariant} ${check}: ${place}: ${problem}`,
    );
  },
};

/** Spec, Idempotency: one key, one run; what was acknowledged is there. */
const oneRunOfAKey: Oracle = {
  name: "one run of a key",
  when: "moment",
  look: async ({ db, customers }) => {
    const rows = await db.query<{ id: string; key: string | null }>(
      `select run.id, account.slug || '/' || convert_from(run.name, 'UTF8') as key
       from run join account on account.id = run.account_id order by run.id`,
    );
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

/** A state that is terminal is the last one. */
const terminalStays: Oracle = {
  name: "terminal states stay",
  when: "moment",
  look: async ({ db }) => {
    const rows = await db.query<{ runId: string; states: string[] }>(
      `select run_id as "runId", array_agg(state order by at) as states from run_history group by run_id
       having count(*) filter (where state ~ '^(completed|failed|cancelled)') > 1
         or (array_agg(state order by at desc))[1] !~ '^(completed|failed|cancelled)'
           and count(*) filter (where state ~ '^(completed|failed|cancelled)') > 0`,
    );
    return rows.map(({ runId, states }) => `${runId} went on after its end: ${states.join(", ")}`);
  },
};

/** What the journal says of a write, and what the target's books say. */
const booksAndJournal: Oracle = {
  name: "books and journal",
  when: "end",
  look: async ({ db, target }) => {
    const writes = await db.query<{ runId: string; number: string; status: string; by: string | null }>(
      `select run_id as "runId", 'n' || ordinal as number, status, decided_by as by from run_write`,
    );
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

/** A run that completed has written all that it was to write. */
const completedIsWhole: Oracle = {
  name: "what completed is whole",
  when: "end",
  look: async ({ db, target, customers }) => {
    const rows = await db.query<{ id: string; key: string }>(
      `select run.id, account.slug || '/' || convert_from(run.name, 'UTF8') as key
       from run join account on account.id = run.account_id where run.status = 'completed' and run.name is not null`,
    );
    const orders = new Map(customers.orders.map((order) => [`${order.account}/${order.key}`, order]));
    return rows.flatMap(({ id, key }) => {
      const order = orders.get(key);
      if (order === undefined || order.blueprint === "paced" || order.blueprint === "asks") return [];
      return order.numbers
        .filter((number) => !target.has(id, number))
        .map((number) => `${id} (${key}) completed, and the target has no ${number}`);
    });
  },
};

/** Account concurrency: never more runs admitted than the account may have. */
const concurrency: Oracle = {
  name: "account concurrency",
  when: "moment",
  look: async ({ db }) => {
    const rows = await db.query<{ slug: string; count: number; most: number }>(
      `select slug, count(*)::int as count, concurrency as most from account join run on run.account_id = account.id
       where admitted_at is not null and ended_at is null group by account.id having count(*) > concurrency`,
    );
    return rows.map(({ slug, count, most }) => `${slug} has ${count} runs under way, of ${most}`);
  },
};

/** A worker that has not heard of a lease gives it back with its next looks: until then it may have more than it has places. */
const UNHEARD_MS = 20_000;
const crowdedSince = new WeakMap<World, Map<string, number>>();

/** A worker holds no more leases than it has places. */
const places: Oracle = {
  name: "places of a worker",
  when: "moment",
  look: async ({ db, world }) => {
    const rows = await db.query<{ owner: string; count: number }>(
      `select lease_owner as owner, count(*)::int as count from run where lease_owner is not null group by 1
       having count(*) > $1`,
      [PLACES],
    );
    const before = crowdedSince.get(world);
    const since = new Map(rows.map(({ owner }) => [owner, before?.get(owner) ?? world.nowMs]));
    crowdedSince.set(world, since);
    return rows
      .filter(({ owner }) => world.nowMs - (since.get(owner) ?? world.nowMs) > UNHEARD_MS)
      .map(({ owner, count }) => `${owner} has ${count} runs, and ${PLACES} places`);
  },
};

/** docs/nodes/http.md: `throttle`. */
const paceIsKept: Oracle = {
  name: "the throttle's pace is kept",
  when: "end",
  look: ({ target }) => {
    const times = target.reads.filter(({ path }) => path === "/paced").map(({ atMs }) => atMs);
    return times.flatMap((atMs, index) => {
      const last = times[index + BURST];
      if (last === undefined || last - atMs >= (BURST - 1) * PACE_MS) return [];
      return [`${BURST + 1} requests within ${Math.round(last - atMs)} ms, of one each ${PACE_MS} ms`];
    });
  },
};

/** docs/audit.md: no audited effect without its entry, and no entry without its effect. */
const effectsAreAudited: Oracle = {
  name: "effects and audit entries",
  when: "moment",
  look: async ({ db }) => {
    const rows = await db.query<{ place: string }>(
      `select 'run ' || run.id || ' was cancelled, and no entry says by whom' as place from run
         where status = 'cancelled' and not exists (select from audit_entry where run_id = run.id
           and action in ('run.cancel', 'review.decide'))
       union all select 'write ' || ordinal || ' of ' || run_id || ' was decided, and no entry says by whom' from run_write
         where decided_by is not null and not exists (select from audit_entry
           where run_id = run_write.run_id and action = 'write.decide')
       union all select 'review ' || id || ' was decided, and has not one entry but ' || entries from (
         select review.id, count(audit_entry.id) as entries from review
           left join audit_entry on subject_id = review.id and action = 'review.decide'
         where review.status in ('approved', 'rejected', 'timed_out') group by review.id having count(audit_entry.id) <> 1) odd
       union all select 'an entry says that run ' || run.id || ' was cancelled, and it is ' || run.status
         from audit_entry join run on run.id = audit_entry.run_id where action = 'run.cancel' and run.status <> 'cancelled'`,
    );
    return rows.map(({ place }) => place);
  },
};

export const ORACLES: readonly Oracle[] = [
  noSurprise,
  noWriteTwice,
  oneRunOfAKey,
  terminalStays,
  concurrency,
  places,
  invariants,
  booksAndJournal,
  completedIsWhole,
  paceIsKept,
  effectsAreAudited,
];
