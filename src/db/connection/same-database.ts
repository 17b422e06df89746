import type { Database } from "./pool.ts";

/** Whether two connections reach the same database of the same server. A server restarted between the two checks counts as another one. */
export async function areSameDatabase(one: Database, other: Database): Promise<boolean> {
  const [first, second] = await Promise.all([look(one), look(other)]);
  return first === second;
}

async function look(db: Database): Promise<string> {
  const [row] = await db.query<{ found: string }>(
    `select oid || ' ' || pg_postmaster_start_time() || ' ' || current_setting('server_version') as found
     from pg_database where datname = current_database()`,
  );
  return row?.found ?? "";
}
