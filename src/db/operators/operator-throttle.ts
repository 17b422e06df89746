import type { Database } from "#db/connection/pool.ts";
import { limits } from "#domain/limits.ts";

/**
 * Counts an attempt before anything is compared, so that concurrent attempts gain nothing over sequential ones: a few are free,
 * then the wait doubles from one second up to the maximum. `isUnknown`: the name does not exist. If the counter is blocked,
 * returns for how long, and counts nothing.
 */
export async function countSignIn(
  db: Database,
  { hash, isUnknown }: { readonly hash: Uint8Array; readonly isUnknown: boolean },
): Promise<{ readonly blockedMs: number }> {
  const counted = await db.query(
    `insert into operator_throttle as throttle (name_hash, failures, blocked_until, last_at, is_unknown)
       values ($1, 1, app_now(), app_now(), $4)
     on conflict (name_hash) do update set failures = least(throttle.failures + 1, 1000000), last_at = app_now(),
       is_unknown = excluded.is_unknown,
       blocked_until = app_now() + case when throttle.failures < $2 then 0
         else least(1000 * 2 ^ least(throttle.failures - $2, 30), $3) end * interval '1 ms'
     where throttle.blocked_until <= app_now() returning 1`,
    [hash, limits.signInFree, limits.signInWaitMsMax, isUnknown],
  );
  if (counted.length > 0) return { blockedMs: 0 };
  const rows = await db.query<{ blockedMs: number }>(
    `select greatest((extract(epoch from blocked_until - app_now()) * 1000)::float8, 1) as "blockedMs"
     from operator_throttle where name_hash = $1`,
    [hash],
  );
  return rows[0] ?? { blockedMs: 1 };
}

/** After a sign-in. */
export async function forgetSignIns(db: Database, hash: Uint8Array): Promise<void> {
  await db.query(`delete from operator_throttle where name_hash = $1`, [hash]);
}

/** Deletes counters older than a day, and all but the newest counters of unknown names. */
export async function forgetOldSignIns(db: Database, unknownMax: number): Promise<void> {
  await db.query(
    `delete from operator_throttle where last_at < app_now() - interval '1 day'
       or (is_unknown and last_at <= (select last_at from operator_throttle where is_unknown
         order by last_at desc offset $1 limit 1))`,
    [unknownMax],
  );
}
