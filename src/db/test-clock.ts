import type { Database } from "./connection/pool.ts";

/** How far the clock of a schedule's account is ahead. A schedule's times are its account's; when it is looked at is the database's. */
export const CLOCK_AHEAD = `(select clock_ahead_ms * interval '1 ms' from account where account.id = schedule.account_id)`;

/** The account's clock, in milliseconds since 1970: the database's for all but test accounts whose clock was moved. */
export async function readAccountClock(db: Database, accountId: string): Promise<number> {
  const rows = await db.query<{ ms: number }>(
    `select (extract(epoch from app_now()) * 1000)::float8 + clock_ahead_ms as ms from account where id = $1`,
    [accountId],
  );
  return Number(rows[0]?.ms);
}

/** The same; of a test account, whose row stays locked. */
export async function lockTestClock(tx: Database, accountId: string): Promise<number> {
  await tx.query(`select from account where id = $1 and test_of is not null for no key update`, [accountId]);
  return await readAccountClock(tx, accountId);
}

/**
 * What a test account's clock moves, each with what `$2` milliseconds do to it: deadlines come so much sooner. Leases, locks of logins,
 * turns, polls, throttles, deliveries and audit entries go by the database's clock. `test/test-mode/clock.pg.test.ts` has every column.
 */
const SOONER = `- $2::bigint * interval '1 ms'`;
export const MOVED_BY_CLOCK: Readonly<Record<string, string>> = {
  "account.clock_ahead_ms": `update account set clock_ahead_ms = clock_ahead_ms + $2 where id = $1 and test_of is not null`,
  "credential_session.expires_at": `update credential_session set expires_at = expires_at ${SOONER}
    where account_id = $1 and status = 'pending'`,
  "embedded_credential_session.expires_at": `update embedded_credential_session set expires_at = expires_at ${SOONER}
    where account_id = $1 and status = 'pending'`,
  "idempotency_key.expires_at": `update idempotency_key set expires_at = expires_at ${SOONER} where account_id = $1`,
  "login_session.expires_at": `update login_session set expires_at = expires_at ${SOONER} where account_id = $1`,
  "run.retention_ms": `update run set retention_ms = greatest(0, retention_ms - $2) from (
      select id from run where account_id = $1 and ended_at is not null and purged_at is null order by id for no key update
    ) kept where run.id = kept.id`,
  "run.expires_at": `update run set expires_at = expires_at ${SOONER} from (
      select id from run where account_id = $1 and ended_at is null and expires_at is not null order by id for no key update
    ) waiting where run.id = waiting.id`,
  "run_timer.at": `update run_timer set at = at ${SOONER} where run_id in (select id from run where account_id = $1)`,
  "review.expires_at": `update review set expires_at = expires_at ${SOONER}
    where account_id = $1 and status = 'open' and expires_at is not null`,
  "schedule.look_at": `update schedule set look_at = look_at ${SOONER} where account_id = $1 and look_at is not null`,
};

/** Moves the clock of a test account forward, and all that goes by it. */
export async function moveTestClock(tx: Database, accountId: string, byMs: number): Promise<void> {
  for (const text of Object.values(MOVED_BY_CLOCK)) await tx.query(text, [accountId, byMs]);
}
