import pg from "pg";

const int8 = 20;
const int8Array = 1016;

/** `pg`'s own parsers (timestamptz is a Date), but int8 is a number; a bigint where that would not be exact. */
export function typeParser(type: number, format?: "text" | "binary"): (text: string) => unknown {
  if (type === int8) return parseInt8;
  const parse = pg.types.getTypeParser(type, format) as (text: string) => unknown;
  if (type !== int8Array) return parse;
  return (text) => (parse(text) as (string | null)[]).map((item) => (item === null ? null : parseInt8(item)));
}

function parseInt8(text: string): number | bigint {
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : BigInt(text);
}
