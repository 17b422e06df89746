/** A calendar month of UTC, such as `2026-08`. */
export interface AuditMonth {
  readonly name: string;
  /** Its first moment, ISO 8601. */
  readonly startsAt: string;
  /** The first moment of the month after it. */
  readonly endsAt: string;
}

/** Undefined: it is no month. */
export function readAuditMonth(text: string): AuditMonth | undefined {
  const [, year, month] = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(text) ?? [];
  if (year === undefined || month === undefined) return undefined;
  const next = month === "12" ? nameOf(Number(year) + 1, 1) : nameOf(Number(year), Number(month) + 1);
  return { name: text, startsAt: firstMoment(text), endsAt: firstMoment(next) };
}

const nameOf = (year: number, month: number): string =>
  `${String(year).padStart(4, "0")}-${String(month).padStart(2, "0")}`;

const firstMoment = (name: string): string => `${name}-01T00:00:00.000Z`;

/**
 * What belongs to a month in one chain: all entries from the first one of this month or a later one up to, but without, the first one of a
 * later month. An entry that was chained late, after one of the next month, belongs to the next month, so that months are ranges of numbers.
 */
export interface AuditSlice {
  readonly chain: string;
  /** The number of its first entry. */
  readonly first: number;
  readonly last: number;
  /** The hash of the entry before the first one, hexadecimal. */
  readonly previous: string;
  /** The hash of the last entry, hexadecimal. */
  readonly head: string;
}

/** What is left of a slice that is no longer in the database. */
export interface DetachedSlice extends AuditSlice {
  readonly month: string;
  /** How many of its entries are still in the database, because signed rows need them. */
  readonly kept: number;
  /** `KeptEntries.digest` of these, hexadecimal. */
  readonly keptSha256: string;
  /** Of the exported file, hexadecimal. */
  readonly fileSha256: string;
}
