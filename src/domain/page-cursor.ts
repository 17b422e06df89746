import { limits } from "./limits.ts";
import { invalidField } from "./problem.ts";

/** The last item of a page: lists go by time and id, newest first. */
export interface PageEnd {
  readonly atMs: number;
  readonly id: string;
}

/** What a list asks the database for. */
export interface PageRequest {
  readonly after: PageEnd | null;
  /** One more than is shown, to see whether there is another page. */
  readonly rows: number;
}

const CURSOR = /^(\d{1,15})\.([A-Za-z0-9_]{1,80})$/;

/** Opaque to callers; another text than we gave is refused by name. Throws Problem 422. */
export function readPage(query: { cursor?: string; limit?: number }): PageRequest {
  const rows = (query.limit ?? limits.pageItems) + 1;
  if (query.cursor === undefined) return { after: null, rows };
  const text = Buffer.from(query.cursor, "base64url").toString("utf8");
  const match = CURSOR.exec(text);
  if (!match || Buffer.from(text).toString("base64url") !== query.cursor)
    throw invalidField("cursor", "`cursor` must be the `next_cursor` of an earlier page.");
  return { after: { atMs: Number(match[1]), id: match[2] ?? "" }, rows };
}

/** The items of a page, and where the next one begins. */
export function makePage<Row, Item>(
  rows: readonly Row[],
  page: PageRequest,
  endOf: (row: Row) => PageEnd,
  show: (row: Row) => Item,
): { items: Item[]; next_cursor: string | null } {
  const shown = rows.slice(0, page.rows - 1);
  const last = shown.at(-1);
  const end = rows.length === page.rows && last !== undefined ? endOf(last) : null;
  return {
    items: shown.map(show),
    next_cursor: end && Buffer.from(`${end.atMs}.${end.id}`).toString("base64url"),
  };
}
