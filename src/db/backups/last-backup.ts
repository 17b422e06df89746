import type { Database } from "#db/connection/pool.ts";

/** The last backup by `latchkey backup`, according to the audit log. */
export interface LastBackup {
  /** ISO 8601 */
  readonly takenAt: string;
  readonly ageDays: number;
  readonly rows: number;
  readonly objects: number;
  /** The key to which it is sealed. */
  readonly kid: string;
}

/** Undefined: none was ever made. */
export async function findLastBackup(db: Database): Promise<LastBackup | undefined> {
  const [row] = await db.query<{ detail: string; ageDays: number }>({
    name: "find_last_backup",
    text: `select detail, extract(epoch from app_now() - occurred_at)::float8 / 86400 as "ageDays" from audit_entry
     where action = 'backup.create' order by occurred_at desc, id desc limit 1`,
  });
  if (row === undefined) return undefined;
  const { taken_at: takenAt, rows, objects, kid } = JSON.parse(row.detail) as Record<string, unknown>;
  return {
    takenAt: String(takenAt),
    ageDays: row.ageDays,
    rows: Number(rows),
    objects: Number(objects),
    kid: String(kid),
  };
}
