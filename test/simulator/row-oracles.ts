import { ROW_CHECKS } from "#db/invariants/invariants.ts";
import type { Database } from "#db/connection/pool.ts";
import { must } from "#lib/assert.ts";
import type { Broken } from "./oracle.ts";

/** A run that was passed over three times reserves its credentials; until it has them, others' runs end and begin. */
const OVERTAKEN_MAX = 14;

/** What must hold in rows. `find` gives what does not, as `place`. */
interface RowOracle {
  readonly name: string;
  readonly find: string;
}

/** Asked after each admission, so it must hold at every COMMIT. */
const OF_ADMISSIONS: readonly RowOracle[] = [
  {
    name: "account concurrency",
    find: `select slug || ' has ' || count(*) || ' runs under way, of ' || concurrency as place
      from account join run on run.account_id = account.id
      where admitted_at is not null and ended_at is null group by account.id having count(*) > concurrency`,
  },
];

/** Asked after each effect that has an audit entry, and after each entry. */
const OF_EFFECTS: readonly RowOracle[] = [
  {
    name: "effects and audit entries",
    find: `select 'run ' || run.id || ' was cancelled, and no entry says by whom' as place from run
        where status = 'cancelled' and not exists (select from audit_entry where run_id = run.id
          and action in ('run.cancel', 'review.decide'))
      union all select 'an entry says that run ' || run.id || ' was cancelled, and it is ' || run.status
        from audit_entry join run on run.id = audit_entry.run_id where action = 'run.cancel' and run.status <> 'cancelled'
      union all select 'run ' || run.id || ' was purged by an operator, and has not one entry of it' from run
        where purge_reason = 'operator'
          and (select count(*) from audit_entry where run_id = run.id and action = 'run.purge') <> 1
      union all select 'an entry says that run ' || run.id || ' was purged, and it was not'
        from audit_entry join run on run.id = audit_entry.run_id where action = 'run.purge' and run.purged_at is null
      union all select 'the writes of run ' || run.id || ' have ' || decided.writes || ' decisions, and the log has ' || decided.entries
        from run cross join lateral (
          select (select count(*) from run_write where run_id = run.id and decided_by is not null) as writes,
            (select count(*) from audit_entry where run_id = run.id and action = 'write.decide') as entries
        ) decided where run.purged_at is null and decided.entries < decided.writes
          or run.purged_at is null and decided.writes = 0 and decided.entries > 0
      union all select 'review ' || review.id || ' is ' || review.status || ', and has ' || entries || ' entries' from review
        cross join lateral (select count(*) as entries from audit_entry where subject_id = review.id and action = 'review.decide') logged
        where entries <> (review.status in ('approved', 'rejected', 'timed_out'))::int`,
  },
];

/** What is there once it is there. */
const OF_MOMENTS: readonly RowOracle[] = [
  {
    // Noted by a trigger (simulator/stage.ts).
    name: "leases and ends of runs",
    find: `select run_id || ' ' || what as place from run_breach`,
  },
  {
    name: "no run is overtaken for long",
    find: `select waiting.id || ' needs several credentials, and ' || count(*) || ' later runs have gone before it' as place
      from run waiting join run later on later.account_id = waiting.account_id and later.created_at > waiting.created_at
      where waiting.admitted_at is null and waiting.ended_at is null and later.started_at is not null
        and (select count(*) from run_credential where run_id = waiting.id) > 1
        and exists (select from run_credential mine join run_credential theirs using (credential_id)
          where mine.run_id = waiting.id and theirs.run_id = later.id)
      group by waiting.id having count(*) > ${OVERTAKEN_MAX}`,
  },
];

/** The product's own, V1 to V15 as far as rows say it: to plan them costs a tenth of a seed, so they are asked once. */
const OF_END: readonly RowOracle[] = [
  ...ROW_CHECKS.map(({ invariant, name, find }) => ({ name: `${invariant} ${name}`, find })),
  {
    // The target of these is well, no machine of theirs fails, and the wait for a turn or a login is not a run's time.
    name: "no run times out in line",
    find: `select run.id || ' of ' || slug || ' timed out: ' || coalesce(error_detail, '') as place
      from run join account on account.id = run.account_id where slug in ('crowd', 'vendor') and error_kind = 'timeout'`,
  },
];

export interface RowChecks {
  readonly oracles: readonly RowOracle[];
  readonly statement: { readonly name: string; readonly text: string; readonly values: readonly unknown[] };
}

const together = (name: string, oracles: readonly RowOracle[]): RowChecks => ({
  oracles,
  statement: {
    name,
    text: oracles
      .map(({ find }, at) => `(select ${at} as at, place from (${find}) found_${at} order by place limit 1)`)
      .join(" union all "),
    values: [],
  },
});

export const ADMISSION_CHECKS = together("ask_after_admission", OF_ADMISSIONS);
export const EFFECT_CHECKS = together("ask_after_effect", OF_EFFECTS);
export const MOMENT_CHECKS = together("ask_now_and_then", OF_MOMENTS);
export const END_CHECKS = together("ask_at_end", OF_END);

/** The first thing that does not hold; null: all does. */
export async function findBroken(db: Database, { oracles, statement }: RowChecks): Promise<Broken | null> {
  const [row] = await db.query<{ at: number; place: string }>(statement);
  return row ? { oracle: must(oracles[row.at], "the oracle").name, what: row.place } : null;
}
