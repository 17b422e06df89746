import type { Database } from "#db/connection/pool.ts";

/** What `app_now()` is in an installation whose time nobody moved. */
export const REAL_TIME = "date_trunc('milliseconds', statement_timestamp())";

/** The service's time is this SQL expression from now on. */
export async function setClock(db: Database, expression: string): Promise<void> {
  await db.query(
    `create or replace function app_now() returns timestamptz language sql stable return ${expression}`,
  );
}

/** The service's time, from now on this much later than the real one: `2 hours`. */
export async function moveClock(db: Database, interval: string): Promise<void> {
  await setClock(db, `${REAL_TIME} + interval '${interval}'`);
}
