import type { Database } from "./pool.ts";

/** The database's clock as ISO 8601, UTC, milliseconds. */
export async function readClockText(db: Database): Promise<string> {
  return new Date(await readClock(db)).toISOString();
}

/** The database's clock, in milliseconds since 1970. */
export async function readClock(db: Database): Promise<number> {
  const rows = await db.query<{ ms: number }>(`select (extract(epoch from app_now()) * 1000)::float8 as ms`);
  return Number(rows[0]?.ms);
}

/** A time by the database's clock as its text. */
export const clockText = (ms: number): string => new Date(ms).toISOString();
