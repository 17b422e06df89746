import type { JsonObject } from "#domain/json.ts";

/** What the thread that parses is asked. */
export type ParseJob = MarkupJob | SheetJob | PdfJob | CalendarJob;

/** One column of a row: the first element that `css` finds in it (null: the row itself), its attribute or its text. */
export interface MarkupColumn {
  readonly name: string;
  readonly css: string | null;
  readonly attribute: string | null;
}

export interface MarkupJob {
  readonly format: "html" | "xml";
  readonly text: string;
  readonly rows: string;
  readonly columns: readonly MarkupColumn[];
  /** Where the rows are looked for; null: in all of it. */
  readonly within: string | null;
  /** What a page without rows has. */
  readonly empty: { readonly css?: string | undefined; readonly text?: string | undefined } | null;
}

export interface SheetJob {
  readonly format: "xlsx";
  readonly bytes: Uint8Array;
  /** Its name, or its number from 1. */
  readonly sheet: string | number;
}

export interface PdfJob {
  readonly format: "pdf";
  readonly bytes: Uint8Array;
  /** A regular expression, or null. */
  readonly rows: string | null;
}

export interface CalendarJob {
  readonly format: "icalendar" | "vcard";
  readonly text: string;
  /** icalendar: the name of the components that are records; absent: all that are entries. */
  readonly component?: string | undefined;
}

export type Cell = string | number | boolean | null;

/** Rows of values under their names; or what is wrong, to follow `the HTML` and the like. Holds nothing of the data. */
export type ParseReply =
  | {
      readonly names: readonly string[];
      readonly rows: readonly (readonly Cell[])[];
      /** Instead of rows, where records are more than values under names. */
      readonly records?: readonly JsonObject[];
      /** There are no rows, and nothing says that there are none: what the page is instead. */
      readonly missing?: string;
    }
  | { readonly problem: string };

export interface ParseThreadData {
  readonly threadOf: typeof PARSE_THREAD;
  /** The thread writes here what the kernel calls it; 0: it has no such name, or none yet. */
  readonly threadId: Int32Array;
}

export const PARSE_THREAD = "parse-thread";
/** Of all values that a reply holds. */
export const REPLY_CHARACTERS_MAX = 50_000_000;
