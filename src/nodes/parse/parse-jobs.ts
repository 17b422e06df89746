import type { JsonObject } from "#domain/json.ts";

/** A job for the parse thread. */
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
  /** A selector for the element to search; null: the whole document. */
  readonly within: string | null;
  /** How to recognise a page without rows. */
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
  /** icalendar: the name of the components that become records; absent: all entries. */
  readonly component?: string | undefined;
}

export type Cell = string | number | boolean | null;

/** Rows of named values, or a problem: a phrase that follows `the HTML`, for example, and contains no data. */
export type ParseReply =
  | {
      readonly names: readonly string[];
      readonly rows: readonly (readonly Cell[])[];
      /** Used instead of rows if records have nested values. */
      readonly records?: readonly JsonObject[];
      /** A description of the page, if no rows were found and the page doesn't state that there are none. */
      readonly missing?: string;
    }
  | { readonly problem: string };

export interface ParseThreadData {
  readonly threadOf: typeof PARSE_THREAD;
  /** The thread stores the kernel's id for it here; 0: it has none, or none yet. */
  readonly threadId: Int32Array;
}

export const PARSE_THREAD = "parse-thread";
/** Limit for all values of a reply. */
export const REPLY_CHARACTERS_MAX = 50_000_000;
