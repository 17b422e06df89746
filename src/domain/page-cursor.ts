import { limits } from "./limits.ts";
import { invalidField } from "./problem.ts";

/** The last item of a page: lists are ordered by time and id, newest first. */
export interface PageEnd {
  readonly atMs: number;
  readonly id: string;
}

/** The parameters of a list's query. */
export interface PageRequest {
  readonly after: PageEnd | null;
  /** One more than is shown, to see whether there is another page. */
  readonly rows: number;
}

const CURSOR = /^(\d{1,15})\.([A-Za-z0-9_]{1,80})$/;

/** Opaque to callers; any other string is refused. Throws Problem 422. */
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

/** A page of a list in the order of names, such as an account's and its own; `after`: the names of the last item shown. */
export interface NamedPage {
  readonly after: readonly string[] | null;
  readonly rows: number;
}

/** Like readPage; a cursor contains as many names as an item of the list has. Throws Problem 422. */
export function readNamedPage(query: { cursor?: string; limit?: number }, names: number): NamedPage {
  const rows = (query.limit ?? limits.pageItems) + 1;
  if (query.cursor === undefined) return { after: null, rows };
  const after = Buffer.from(query.cursor, "base64url").toString("utf8").split("/");
  const isOurs = after.length === names && after.every((name) => CURSOR_NAME.test(name));
  if (!isOurs || writeNames(after) !== query.cursor)
    throw invalidField("cursor", "`cursor` must be the `next_cursor` of an earlier page.");
  return { after, rows };
}

/** Names of documents, and numbers of their versions. */
const CURSOR_NAME = /^[\w.-]{1,200}$/;
const writeNames = (names: readonly string[]): string => Buffer.from(names.join("/")).toString("base64url");

/** Like makePage. */
export function makeNamedPage<Row, Item>(
  rows: readonly Row[],
  page: NamedPage,
  namesOf: (row: Row) => readonly string[],
  show: (row: Row) => Item,
): { items: Item[]; next_cursor: string | null } {
  const shown = rows.slice(0, page.rows - 1);
  const last = shown.at(-1);
  const isMore = rows.length === page.rows && last !== undefined;
  return { items: shown.map(show), next_cursor: isMore ? writeNames(namesOf(last)) : null };
}
