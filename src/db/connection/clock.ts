import { grouped } from "./group.ts";
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

/** The same as a date. */
export const clockDate = (ms: number): Date => new Date(ms);

/** The clock for many callers at once; in milliseconds since 1970, and never before the call. Not in a transaction. */
const readClockTogether = grouped<null, number>(async (db, calls) => {
  const nowMs = await readClock(db);
  return calls.map(() => nowMs);
});

export const lookUpClock = async (db: Database): Promise<number> => await readClockTogether(db, null);
