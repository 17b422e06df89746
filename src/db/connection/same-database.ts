import type { Database } from "./pool.ts";

/** Whether two connections lead to one database of one server. A server that was started anew between two looks counts as another one. */
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
