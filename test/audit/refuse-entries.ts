import type { Database } from "#db/connection/pool.ts";

/** From now on the audit log takes no entry; or takes them again. */
export async function refuseEntries(db: Database, isRefused: boolean): Promise<void> {
  await db.query(
    isRefused
      ? `create or replace function refuse_audit() returns trigger language plpgsql as $$ begin raise exception 'no audit'; end $$;
         create or replace trigger refuse_audit before insert on audit_entry for each row execute function refuse_audit()`
      : "drop trigger if exists refuse_audit on audit_entry",
  );
}
